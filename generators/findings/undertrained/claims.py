from collections.abc import Iterator

from generators.base.text import share
from generators.findings.facts import EntityNote, Fact, Facts, rows
from generators.findings.judging import Evidence, claim
from generators.findings.measured import Measurements
from generators.findings.undertrained.measure import SPEAKABLE, TokenRow, UndertrainedMetrics


@claim("candidates-unspeakable", holds=0.8, form=share, speakable=SPEAKABLE)
def unspeakable(m: UndertrainedMetrics) -> Evidence:
    from scipy.stats import binom, binomtest

    expected = m["others_unspeakable"] / m["others"]
    found = binomtest(m["unspeakable"], m["candidates"]).proportion_ci(method="wilson")
    limit = float(binom.ppf(0.99, m["candidates"], expected)) / m["candidates"]
    return Evidence(
        m["unspeakable"] / m["candidates"],
        chance={
            "null": "other tokens in place of candidates (binomial)",
            "median": expected,
            "limit": limit,
            "draws": m["others"],
        },
        interval=(float(found.low), float(found.high)),
    )


def tokens(found: Measurements[UndertrainedMetrics], count: int | None) -> Iterator[Fact]:
    for row in rows(found, "candidates", TokenRow):
        says = f"It looks under-trained: its probability never exceeds {share(row['largest_probability'])}."
        yield EntityNote(row["id"], says, named=False)


RULES = (unspeakable,)
FACTS = Facts(entities={"token": tokens})
