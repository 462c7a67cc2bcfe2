from collections.abc import Iterator

import numpy as np

from generators.base.text import share
from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts
from generators.findings.induction.measure import InductionHeadRow, InductionMetrics
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements

COPIES = 0.05  # share of attention from which a head copies
HALF, MARGIN = 0.5, 0.25  # shares of the benefit
PREVIOUS = 0.15  # smallest attention of a previous-token head to the previous token
FEWEST_ERRORS = 3
RARE = 0.05  # share of sets of heads, this one included, that may do as much


def best_of(m: InductionMetrics) -> InductionHeadRow:
    return m["heads"][m["best"]]


@claim("some-head-copies", holds=0.1, partly=COPIES, form=share)
def copies(m: InductionMetrics) -> Evidence:
    head = best_of(m)
    interval = (head["low"], head["high"])
    return Evidence(
        head["copying"], {"head": head}, baseline=m["uniform"], chance=m["other_distances"], interval=interval
    )


@claim("repeats-need-that-head", form=share, half=HALF, margin=MARGIN)
def needed(m: InductionMetrics) -> Evidence | Untested:
    head, found = best_of(m), m["copying"]
    if found is None or head["copying"] < COPIES:
        return Untested("no-copying")
    if found["benefit"]["mean"] <= FEWEST_ERRORS * found["benefit"]["standard_error"]:
        return Untested("no-benefit")
    median = float(np.median(found["others"]))
    return Evidence(
        found["lost"],
        {"head": head, "median": median},
        baseline=median,
        interval=(found["low"], found["high"]),
        holds_at=max(HALF, median + MARGIN),
        partly_at=median + MARGIN,
    )


@claim("fed-by-previous-token", holds=0.5, partly=0.25, form=share, rare=RARE)
def fed(m: InductionMetrics) -> Evidence | Untested:
    head, found = best_of(m), m["feeding"]
    if head["copying"] < COPIES or found is None:
        return Untested("nothing-fed")
    if found["strongest"] < PREVIOUS:
        return Untested("no-feeder")
    if 1 / (1 + len(found["others"])) > RARE:
        return Untested("few-others", {"sets": len(found["others"])})
    others = found["others"]
    median, as_much = float(np.median(others)), sum(other >= found["drop"] for other in others)
    p = (1 + as_much) / (1 + len(others))
    return Evidence(
        found["drop"],
        {"head": head, "median": median, "p": p},
        baseline=median,
        interval=(found["low"], found["high"]),
        extra_condition_met=p <= RARE,
    )


def heads(found: Measurements[InductionMetrics], count: int | None) -> Iterator[Fact]:
    rows, best = found.metrics["heads"], best_of(found.metrics)
    if len(rows) != count:
        return
    copying = [row["copying"] for row in rows]
    yield EntityNumbers("attention to what followed, tokens read twice", copying, "induction-heads", "largest")
    if best["copying"] >= COPIES:
        yield EntityNote(
            found.metrics["best"],
            f"It copies more than any other head: on random tokens read twice, it gives {share(best['copying'])} of "
            "its attention to the token after the current token's first occurrence.",
        )


FACTS: Facts[InductionMetrics] = Facts(entities={"head": heads})
