from collections.abc import Callable, Sequence

from generators.base.text import share, two
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Chance, Measurements
from generators.findings.nulls import chance, pair
from generators.findings.position_reading.measure import HeadReading, PositionReadingMetrics

FEWEST_HEADS = 3  # heads needed for one to stand out from the median
STRONG = 5.0  # multiple of the median head from which a head reads positions strongly
TIMES_CHANCE = 2.0  # multiple of chance that the strongest head must also reach
OF_REST = 0.5  # fraction of the way from chance to 1
TURNED = 0.67
ALL_OF_P = 0.99  # share of P's variance in the plane above which any reading lies in it
MOST_NAMED = 4


def strong_heads(heads: Sequence[HeadReading]) -> list[HeadReading]:
    """Return the heads that read positions at least five times as strongly as the median head, strongest first."""
    found = [head for head in heads if (head["times_median"] or 0) >= STRONG]
    return sorted(found, key=lambda head: -(head["times_median"] or 0))


def needed_strength(chance_median: float) -> float:
    """Return how many times as strongly as the median head the strongest must read positions."""
    return max(STRONG, TIMES_CHANCE * chance_median)


def _position_heads(measured: Measurements[PositionReadingMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, found = metrics["effects"]["times_median"], chance(metrics["chance"]["times_median"])
    if metrics["n_heads"] < FEWEST_HEADS:
        return Untested(f"The first layer has {metrics['n_heads']} heads; at least {FEWEST_HEADS} are needed.")
    if value is None or found is None:
        return Untested("Most heads of the first layer don't read positions at all.")
    strong = strong_heads(metrics["heads"])
    top = max(metrics["heads"], key=lambda head: head["times_median"] or 0)
    named = ", ".join(f"L0H{head['head']}: {two(head['times_median'] or 0)}" for head in strong[1:MOST_NAMED])
    others = f" ({named})" if named else ""
    needed = needed_strength(found.median)
    return Tested(
        value,
        f"L0H{top['head']} reads positions {two(value)} times as strongly as the median head{others}; "
        f"{_chance(found, two)}.",
        form=lambda *values: f"{two(*values)} times",
        chance=found,
        interval=pair(metrics["intervals"]["times_median"]),
        holds_at=needed,
    )


def _reads_main_plane(measured: Measurements[PositionReadingMetrics]) -> Tested | Untested:
    metrics, whole = measured.metrics, measured.metrics["plane"]["share"]
    found = Chance(**metrics["chance"]["in_plane"])
    if whole >= ALL_OF_P:
        return Untested(f"The main plane holds {share(whole)} of the variance of P, so any reading lies in it.")
    value = metrics["effects"]["in_plane"]
    needed = found.median + OF_REST * (1 - found.median)
    return Tested(
        value,
        f"{share(value)} of the first layer's reading of positions lies in the main plane (which holds "
        f"{share(whole)} of the variance of P without outlier positions); {_chance(found, share)}.",
        form=share,
        chance=found,
        interval=pair(metrics["intervals"]["in_plane"]),
        holds_at=needed,
    )


def _turned(measured: Measurements[PositionReadingMetrics]) -> Tested:
    metrics = measured.metrics
    value, found = metrics["effects"]["turned"], Chance(**metrics["chance"]["turned"])
    return Tested(
        value,
        f"A rotation accounts for {share(metrics['rotation'])} of the reading in the main plane{_where(metrics)}. "
        f"{share(value)} of that reading compares rows a quarter turn apart; {_chance(found, share)}.",
        form=share,
        chance=found,
        interval=pair(metrics["intervals"]["turned"]),
    )


def _where(metrics: PositionReadingMetrics) -> str:
    top = max(metrics["heads"], key=lambda head: head["times_median"] or 0)
    tokens = top["tokens_back"]
    if tokens is None or top["degrees_back"] is None:
        return ""
    side = "back" if tokens > 0 else "ahead"
    far = f"{abs(tokens):.0f} token{'' if round(abs(tokens)) == 1 else 's'}"
    return f" (L0H{top['head']}: {abs(top['degrees_back']):.0f}°, best match {far} {side})"


def _chance(found: Chance, how: Callable[[float], str]) -> str:
    return f"{found.null} would give {how(found.median)} (99th percentile {how(found.limit)})"


RULES = (
    Rule(
        id="position-heads",
        short="position heads",
        statement="Some head of the first layer reads positions far more than the median head.",
        value="how strongly the strongest head reads the position curve, in times the median head",
        unit="times",
        holds_as=f"{STRONG:g} times, and {TIMES_CHANCE:g} times chance",
        test=_position_heads,
    ),
    Rule(
        id="reads-main-plane",
        short="reads main plane",
        statement="The first layer reads positions in the main plane of their curve.",
        value="share of what all heads read of positions that lies in the curve's two leading components",
        unit="share",
        holds_as=f"{OF_REST:g} of the way from chance to 1",
        test=_reads_main_plane,
    ),
    Rule(
        id="reads-rotated",
        short="reads rotated",
        statement="The first layer compares positions about a quarter turn apart in the main plane.",
        value="share of what is read there that compares rows a quarter turn apart",
        unit="share",
        holds=TURNED,
        test=_turned,
    ),
)
