"""What is claimed of the use of rotary pairs: rules, numbers and sentences."""

from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements, StoredChance
from generators.findings.nulls import chance
from generators.findings.rotary_use.measure import RotaryUseMetrics, TurningRow, Which, three_quarters

IDLE = 0.01  # of the cost of stopping all pairs
MOSTLY = {"holds": 0.1, "partly": 0.25}
FEWEST_ERRORS = 3  # standard errors that stopping all pairs must cost before shares of it mean anything
FEW_HEADS = 6


def damage_of(metrics: RotaryUseMetrics, which: Which, turning: int) -> TurningRow:
    """Return what it costs if only these pairs turn."""
    return next(row for row in metrics["damages"] if (row["which"], row["turning"]) == (which, turning))


def _tested(
    metrics: RotaryUseMetrics, turning: int, worst: float, by_chance: StoredChance | None, what: str
) -> Tested | Untested:
    """Return the damage of all but the fastest pairs standing still, `what` in words, beside random pairs.

    To hold, it must be less than with 99 % of the sets of random pairs; for `partly`, than with half of them.
    """
    stopped = metrics["stopped"]
    if stopped["mean"] <= FEWEST_ERRORS * stopped["standard_error"]:
        return Untested("Stopping all pairs costs this model nothing that these windows can show.")
    found = damage_of(metrics, "fastest", turning)
    if by_chance is None and found["damage"] <= worst:
        return Untested(
            f"{what} costs {_percent(found['damage'])} of stopping all {metrics['pairs']} pairs, but there are too "
            "few other sets of pairs to show that speed is the reason."
        )
    beside = ""
    if by_chance is not None:
        median, limit = _percent(by_chance["median"]), _percent(by_chance["limit"])
        beside = f"; with random pairs the median is {median}, and 1 in 100 costs less than {limit}"
    return Tested(
        found["damage"],
        f"{what} costs {_percent(found['damage'])} of what it costs to stop all {metrics['pairs']} pairs{beside}.",
        form="{:.1%}",
        chance=chance(by_chance),
        partly_limit=None if by_chance is None else by_chance["median"],
        interval=(found["low"], found["high"]),
    )


def _percent(share: float) -> str:
    return f"{round(share, 3) + 0.0:.1%}"  # no sign before a zero


def _slow_quarter(measured: Measurements[RotaryUseMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    turning = three_quarters(metrics["pairs"])
    still = metrics["pairs"] - turning
    what = f"Stopping the slowest {f'{still} pairs' if still > 1 else 'pair'}"
    return _tested(metrics, turning, IDLE, metrics["quarter_by_chance"], what)


def _fast_half(measured: Measurements[RotaryUseMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    turning = metrics["pairs"] // 2
    what = f"Turning only the fastest {turning} pairs"
    return _tested(metrics, turning, MOSTLY["partly"], metrics["half_by_chance"], what)


def _fast_heads(measured: Measurements[RotaryUseMetrics]) -> Tested | Untested:
    rows, found = measured.metrics["heads"], measured.metrics["fast_heads"]
    if rows is None or found is None:
        return Untested("The weights don't give the queries and keys that the model compares.")
    if len(rows) < FEW_HEADS:
        return Untested(f"There are only {len(rows)} heads, too few to correlate.")
    best = max(rows, key=lambda row: row["previous"])
    return Tested(
        found["rho"],
        f"Over {len(rows)} heads, attention to the previous token and the share of scores from the faster half of "
        f"the pairs correlate at {found['rho']:+.2f} (ranks); with heads exchanged within layers, 1 in 100 draws "
        f"reaches {found['by_chance']['limit']:+.2f}. L{best['layer']}H{best['head']} looks most at the previous "
        f"token and gets {best['fast_share']:.0%} of its scores from them.",
        form="{:+.2f}",
        chance=chance(found["by_chance"]),
        interval=(found["low"], found["high"]),
    )


RULES = (
    Rule(
        id="slow-pairs-idle",
        short="slow quarter idle",
        statement="The slowest quarter of the rotary pairs can stand still.",
        value="cost of stopping the slowest quarter, as a share of stopping all",
        sense="at most",
        holds=IDLE,
        unit="of stopping all pairs",
        also="and less than with 99 % of random quarters",
        test=_slow_quarter,
    ),
    Rule(
        id="fast-half-enough",
        short="fast half does it",
        statement="The fastest half of the rotary pairs does most of the work.",
        value="cost if only the fastest half turns, as a share of stopping all",
        sense="at most",
        holds=MOSTLY["holds"],
        partly=MOSTLY["partly"],
        unit="of stopping all pairs",
        also="and less than with 99 % of random halves (partly: with half of them)",
        test=_fast_half,
    ),
    Rule(
        id="previous-token-fast",
        short="previous token, fast",
        statement="Previous-token heads use fast pairs.",
        value="rank correlation over heads of attention to the previous token with the fast half's share of scores",
        holds=0.5,
        unit="rank correlation",
        over="over heads",
        test=_fast_heads,
    ),
)
