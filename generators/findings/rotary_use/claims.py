from generators.base.text import share
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements, StoredChance
from generators.findings.nulls import chance
from generators.findings.rotary_use.measure import RotaryUseMetrics, TurningRow, Which, three_quarters

IDLE = 0.01  # share of the cost of stopping all pairs
MOSTLY = {"holds": 0.1, "partly": 0.25}
FEWEST_ERRORS = 3  # standard errors that stopping all pairs must cost for shares to be meaningful
FEW_HEADS = 6


def damage_of(metrics: RotaryUseMetrics, which: Which, turning: int) -> TurningRow:
    return next(row for row in metrics["damages"] if (row["which"], row["turning"]) == (which, turning))


def _tested(
    metrics: RotaryUseMetrics, turning: int, worst: float, by_chance: StoredChance | None, what: str
) -> Tested | Untested:
    """Return the damage of stopping all but the fastest pairs, `what` in words, beside random pairs.

    To hold, it must be less than with 99 % of the sets of random pairs; for `partly`, than with half of them.
    """
    stopped = metrics["stopped"]
    if stopped["mean"] <= FEWEST_ERRORS * stopped["standard_error"]:
        return Untested("Stopping all pairs has no measurable cost on these windows.")
    found = damage_of(metrics, "fastest", turning)
    if by_chance is None and found["damage"] <= worst:
        return Untested(
            f"{what} costs {share(found['damage'])} of what stopping all {metrics['pairs']} pairs costs, but there "
            "are too few other sets of pairs to show that speed is the reason."
        )
    beside = ""
    if by_chance is not None:
        median, limit = share(by_chance["median"]), share(by_chance["limit"])
        beside = f"; with random pairs, it would be {median} (1st percentile {limit})"
    return Tested(
        found["damage"],
        f"{what} costs {share(found['damage'])} of what stopping all {metrics['pairs']} pairs costs{beside}.",
        form=share,
        chance=chance(by_chance),
        partly_limit=None if by_chance is None else by_chance["median"],
        interval=(found["low"], found["high"]),
    )


def _slow_quarter(measured: Measurements[RotaryUseMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    turning = three_quarters(metrics["pairs"])
    still = metrics["pairs"] - turning
    what = f"Stopping the slowest {f'{still} pairs' if still > 1 else 'pair'}"
    return _tested(metrics, turning, IDLE, metrics["quarter_by_chance"], what)


def _fast_half(measured: Measurements[RotaryUseMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    turning = metrics["pairs"] // 2
    what = f"Rotating only the fastest {turning} pairs"
    return _tested(metrics, turning, MOSTLY["partly"], metrics["half_by_chance"], what)


def _fast_heads(measured: Measurements[RotaryUseMetrics]) -> Tested | Untested:
    rows, found = measured.metrics["heads"], measured.metrics["fast_heads"]
    if rows is None or found is None:
        return Untested("The weights don't give the queries and keys that this model compares.")
    if len(rows) < FEW_HEADS:
        return Untested(f"There are only {len(rows)} heads, too few to correlate.")
    best = max(rows, key=lambda row: row["previous"])
    return Tested(
        found["rho"],
        f"Over {len(rows)} heads, attention to the previous token and the share of scores from the faster half of "
        f"the pairs have a rank correlation of {found['rho']:+.2f}; heads shuffled within layers "
        f"would give {found['by_chance']['median']:+.2f} (99th percentile {found['by_chance']['limit']:+.2f}). "
        f"L{best['layer']}H{best['head']} attends most to the previous token and gets {share(best['fast_share'])} of "
        "its scores from these pairs.",
        form="{:+.2f}",
        chance=chance(found["by_chance"]),
        interval=(found["low"], found["high"]),
    )


RULES = (
    Rule(
        id="slow-pairs-idle",
        short="slow quarter unused",
        statement="The slowest quarter of the rotary pairs is not needed.",
        value="cost of stopping the slowest quarter, as a share of stopping all",
        sense="at most",
        holds=IDLE,
        unit="of stopping all pairs",
        also="and less than with 99 % of random quarters",
        test=_slow_quarter,
    ),
    Rule(
        id="fast-half-enough",
        short="fast half suffices",
        statement="The fastest half of the rotary pairs does most of the work.",
        value="cost if only the fastest half rotates, as a share of stopping all",
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
