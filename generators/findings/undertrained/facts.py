from collections.abc import Iterator

from generators.base.text import share
from generators.findings.facts import EntityNote, Fact, Facts, rows
from generators.findings.measured import Measurements
from generators.findings.undertrained.measure import TokenRow, UndertrainedMetrics


def tokens(found: Measurements[UndertrainedMetrics], count: int | None) -> Iterator[Fact]:
    for row in rows(found, "candidates", TokenRow):
        says = f"It looks under-trained: its probability never exceeds {share(row['largest_probability'])}."
        yield EntityNote(row["id"], says, named=False)


FACTS = Facts(entities={"token": tokens})
