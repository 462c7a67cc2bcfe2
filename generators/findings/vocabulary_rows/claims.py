from collections.abc import Iterator

from generators.base.text import share
from generators.findings import facts
from generators.findings.judging import Evidence, claim
from generators.findings.measured import Measurements
from generators.findings.vocabulary_rows.measure import IDENTICAL, VocabularyRowsMetrics


@claim("shared-rows", holds=0.001, form=share)
def shared(m: VocabularyRowsMetrics) -> Evidence:
    return Evidence((m["zeros"] + m["identical"]) / m["rows"], baseline=0, partly_at=1 / m["rows"])


def tokens(found: Measurements[VocabularyRowsMetrics], count: int | None) -> Iterator[facts.Fact]:
    ids = (found.arrays["kinds"] >= IDENTICAL).nonzero()[0].tolist()
    if ids:
        yield facts.EntityGroup("Its row is zeros or identical to another.", "No other row equals its own.", ids)


FACTS = facts.Facts(entities={"token": tokens})
