from collections.abc import Iterator

from generators.base.text import share
from generators.findings.facts import EntityNumbers, Fact, Facts
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements, StoredChance
from generators.findings.rotary_use.measure import RotaryUseMetrics, three_quarters

FEWEST_ERRORS = 3  # standard errors that stopping all pairs must cost for shares to be meaningful
FEW_HEADS = 6
TWICE = 2 / 3  # share of the slower half where it has twice what the faster half has


def _stopped(m: RotaryUseMetrics, turning: int, by_chance: StoredChance | None, few_sets: str) -> Evidence | Untested:
    """Return the damage of stopping all but the fastest pairs, beside random pairs.

    To hold, it must be less than with 99 % of the sets of random pairs; for `partly`, than with half of them.
    """
    if m["stopped"]["mean"] <= FEWEST_ERRORS * m["stopped"]["standard_error"]:
        return Untested("no-cost")
    found = next(row for row in m["damages"] if (row["which"], row["turning"]) == ("fastest", turning))
    said = {"found": found, "still": m["pairs"] - turning}
    if by_chance is None:
        return Untested(few_sets, said)
    return Evidence(
        found["damage"],
        said,
        chance=by_chance,
        partly_limit=by_chance["median"],
        interval=(found["low"], found["high"]),
    )


@claim("slow-pairs-idle", sense="at most", holds=0.01, form=share)
def slow_quarter(m: RotaryUseMetrics) -> Evidence | Untested:
    return _stopped(m, three_quarters(m["pairs"]), m["quarter_by_chance"], "few-sets-slow")


@claim("fast-half-enough", sense="at most", holds=0.1, partly=0.25, form=share)
def fast_half(m: RotaryUseMetrics) -> Evidence | Untested:
    return _stopped(m, m["pairs"] // 2, m["half_by_chance"], "few-sets-fast")


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


@claim("length-in-slow-pairs", holds=TWICE, partly=0.5, form=share)
def slow_lengths(m: RotaryUseMetrics) -> Evidence | Untested:
    if m["lengths"] is None:
        return Untested("no-lengths")
    found = m["lengths"]["slow_share"]
    longest = max(m["lengths"]["pairs"], key=lambda row: row["share"])
    interval = (found["low"], found["high"])
    return Evidence(found["mean"], {"longest": longest}, chance=m["lengths"]["by_chance"], interval=interval)


def heads(found: Measurements[RotaryUseMetrics], count: int | None) -> Iterator[Fact]:
    rows = found.metrics["heads"]
    if rows is not None and len(rows) == count:
        shares = [row["fast_share"] for row in rows]
        yield EntityNumbers("share of scores from fast rotary pairs", shares, order="largest")


FACTS: Facts[RotaryUseMetrics] = Facts(entities={"head": heads})
