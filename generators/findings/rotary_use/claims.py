from collections.abc import Iterator

from generators.base.text import share
from generators.findings.facts import EntityNumbers, Fact, Facts
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements, StoredChance
from generators.findings.rotary_use.measure import RotaryUseMetrics, TurningRow, Which, three_quarters

IDLE = 0.01  # share of the cost of stopping all pairs
WORST = 0.25  # share that half of the pairs may cost
FEWEST_ERRORS = 3  # standard errors that stopping all pairs must cost for shares to be meaningful
FEW_HEADS = 6


def damage_of(m: RotaryUseMetrics, which: Which, turning: int) -> TurningRow:
    return next(row for row in m["damages"] if (row["which"], row["turning"]) == (which, turning))


def _stopped(
    m: RotaryUseMetrics, turning: int, worst: float, by_chance: StoredChance | None, few_sets: str
) -> Evidence | Untested:
    """Return the damage of stopping all but the fastest pairs, beside random pairs.

    To hold, it must be less than with 99 % of the sets of random pairs; for `partly`, than with half of them.
    """
    if m["stopped"]["mean"] <= FEWEST_ERRORS * m["stopped"]["standard_error"]:
        return Untested("no-cost")
    found = damage_of(m, "fastest", turning)
    said = {"found": found, "still": m["pairs"] - turning}
    if by_chance is None and found["damage"] <= worst:
        return Untested(few_sets, said)
    return Evidence(
        found["damage"],
        said,
        chance=by_chance,
        partly_limit=None if by_chance is None else by_chance["median"],
        interval=(found["low"], found["high"]),
    )


@claim("slow-pairs-idle", sense="at most", holds=IDLE, form=share)
def slow_quarter(m: RotaryUseMetrics) -> Evidence | Untested:
    return _stopped(m, three_quarters(m["pairs"]), IDLE, m["quarter_by_chance"], "few-sets-slow")


@claim("fast-half-enough", sense="at most", holds=0.1, partly=WORST, form=share)
def fast_half(m: RotaryUseMetrics) -> Evidence | Untested:
    return _stopped(m, m["pairs"] // 2, WORST, m["half_by_chance"], "few-sets-fast")


@claim("previous-token-fast", holds=0.5, form="{:+.2f}")
def fast_heads(m: RotaryUseMetrics) -> Evidence | Untested:
    rows, found = m["heads"], m["fast_heads"]
    if rows is None or found is None:
        return Untested("no-queries")
    if len(rows) < FEW_HEADS:
        return Untested("few-heads")
    best = max(rows, key=lambda row: row["previous"])
    interval = (found["low"], found["high"])
    return Evidence(found["rho"], {"best": best}, chance=found["by_chance"], interval=interval)


def heads(found: Measurements[RotaryUseMetrics], count: int | None) -> Iterator[Fact]:
    rows = found.metrics["heads"]
    if rows is not None and len(rows) == count:
        shares = [row["fast_share"] for row in rows]
        yield EntityNumbers("share of scores from fast rotary pairs", shares, "rotary-pairs", "largest")


RULES = (slow_quarter, fast_half, fast_heads)
FACTS: Facts[RotaryUseMetrics] = Facts(entities={"head": heads})
