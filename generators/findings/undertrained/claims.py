from collections.abc import Iterator

from generators.base.text import share
from generators.findings.facts import EntityNote, Fact, Facts, rows
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements
from generators.findings.undertrained.measure import FREQUENT, MOST, REPEATS, SPEAKABLE, TokenRow, UndertrainedMetrics

RARE = 0.01
FEWEST = 3  # candidates
PASSING = 0.2  # share of controls above which being unspeakable says nothing of candidates


@claim(
    "candidates-unspeakable",
    holds=0.8,
    drawn=MOST,
    form=share,
    speakable=SPEAKABLE,
    repeats=REPEATS,
    asked=FREQUENT,
    most=PASSING,
)
def unspeakable(m: UndertrainedMetrics) -> Evidence | Untested:
    from scipy.stats import binomtest, hypergeom

    passing, count = m["controls_unspeakable"] / m["controls"], m["candidates"]
    if m["repeats"] is None:
        return Untested("not-asked")
    if m["repeats"] < REPEATS:
        return Untested("cannot-repeat", {"found": m["repeats"]})
    if passing > PASSING:
        return Untested("controls-pass", {"passing": passing, "m": m})
    # Were candidates and controls alike, how many of all the unspeakable would be candidates? (Fisher's exact test)
    every, unspeakable = count + m["controls"], m["unspeakable"] + m["controls_unspeakable"]
    if count < FEWEST or hypergeom.pmf(count, every, count + m["controls_unspeakable"], count) > RARE:
        return Untested("few-tokens", {"m": m})
    limit = float(hypergeom.ppf(1 - RARE, every, unspeakable, count)) / count
    found = binomtest(m["unspeakable"], count).proportion_ci(method="wilson")
    null = "candidates and controls exchanged, by Fisher's exact test"
    return Evidence(
        m["unspeakable"] / count,
        chance={"null": null, "median": passing, "limit": limit, "draws": m["controls"]},
        interval=(float(found.low), float(found.high)),
    )


def tokens(found: Measurements[UndertrainedMetrics], count: int | None) -> Iterator[Fact]:
    for row in rows(found, "candidates", TokenRow):
        says = f"It looks under-trained: its probability never exceeds {share(row['largest_probability'])}."
        yield EntityNote(row["id"], says, named=False)


FACTS = Facts(entities={"token": tokens})
