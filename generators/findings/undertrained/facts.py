"""Which tokens look under-trained, and how probable each ever gets."""

from collections.abc import Iterator

from generators.base.text import number
from generators.findings.facts import EntityNote, Fact, Facts, rows
from generators.findings.measured import Measurements
from generators.findings.undertrained.measure import TokenRow, UndertrainedMetrics


def tokens(found: Measurements[UndertrainedMetrics], count: int | None) -> Iterator[Fact]:
    """Yield a sentence on every candidate."""
    for row in rows(found, "candidates", TokenRow):
        most = number(row["largest_probability"])
        says = f"It looks under-trained; the largest probability it gets anywhere is {most}."
        yield EntityNote(row["id"], says, named=False)


FACTS = Facts(entities={"token": tokens}, search=("glitch token", "glitch tokens", "SolidGoldMagikarp"))
