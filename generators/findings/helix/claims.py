"""What is claimed of the position curve: rules, numbers and sentences."""

from typing import Literal

from generators.findings.contract import Chance, Measurements, Rule, Tested, Untested
from generators.findings.helix.measure import LATE, Metrics, Plane
from generators.findings.nulls import chance, pair
from generators.maths.curve import FEWEST_FOR_START, OUTLIER_FACTOR
from generators.maths.curve_statistics import TOP_ENERGY

THREE, THREE_PARTLY = 0.90, 0.70  # share of variance
FEWEST_TURNS = 1.0
FRAYED = 0.02  # share of variance
EVEN, EVEN_PARTLY = 0.05, 0.10  # std/mean
EXACTLY_EVEN = 1e-5  # std/mean; norms that differ by rounding only
GAIN, GAIN_PARTLY = 0.5, 0.25  # over standing still
LOW_RANK, LOW_RANK_PARTLY = 0.99, 0.95  # share of energy
LOW_RANK_FACTOR = 1.5  # times the energy that Gaussian rows have


def _unless_chance_does(
    said: str,
    tested: Tested,
    null: Chance | None,
    sense: Literal["at least", "at most"],
    holds: float,
    partly: float | None = None,
) -> Tested | Untested:
    """Return what is tested against a null, or that it can't be where what the null gives reaches the threshold.

    What does not even reach it partly fails, whatever chance does: that needs no comparison.
    """
    least = holds if partly is None else partly

    def reached(value: float, threshold: float) -> bool:
        return value >= threshold if sense == "at least" else value <= threshold

    if null is None or tested.value is None or not reached(null.median, holds):
        return tested
    if reached(tested.value, least):
        return Untested(f"{said}. That says nothing here: at least half of {null.null} reach the threshold themselves.")
    return Tested(tested.value, tested.answers, baseline=null.median, interval=tested.interval)


def _three_components(measured: Measurements[Metrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, null = metrics["explained_variance_3d"]["no_first"], metrics["chance"]["explained_variance_3d"]
    walk = metrics["featureless"]["random_walk"]["explained_variance_3d"]["median"]
    share = f"{value:.1%} of the variance of positions 1 to {metrics['n_positions'] - 1}"
    by_chance = (
        f"a curve as smooth, with as long a memory but without features, has {null['median']:.1%} there "
        f"(1 in 100 more than {null['limit']:.1%}), a random walk {walk:.1%}"
    )
    needed = f"It takes {metrics['components_for_90']} components to reach 90 %"
    fails = f"Three components hold only {share}; {by_chance}. {needed}."
    if value >= THREE_PARTLY:
        fails = f"Three components hold {share}, but that is no more than smoothness gives: {by_chance}."
    tested = Tested(
        value,
        {
            "holds": f"Three components hold {share}; {by_chance}.",
            "partly": f"Three components hold {share}, most but not nearly all; {by_chance}. {needed}.",
            "fails": fails,
        },
        chance=chance(null),
        interval=pair(metrics["intervals"]["explained_variance_3d"]),
    )
    said = f"Three components hold {share}"
    return _unless_chance_does(said, tested, chance(null), "at least", THREE, THREE_PARTLY)


def winding_planes(metrics: Metrics) -> list[Plane]:
    """Return the planes that wind more than the strongest one of a featureless curve does, strongest first."""
    limit = metrics["chance"]["winding"]["limit"]
    return [plane for plane in metrics["planes"] if plane["winding"] > limit]


def winds(metrics: Metrics) -> bool:
    """Return whether the claim about winding holds."""
    return metrics["winding"] >= FEWEST_TURNS and bool(winding_planes(metrics))


def _winding(measured: Measurements[Metrics]) -> Tested | Untested:
    metrics = measured.metrics
    null, planes = metrics["chance"]["winding"], metrics["planes"]
    if not planes:
        return Tested(0.0, "The curve turns in no plane: it is a line.", chance=chance(null))
    by_chance = f"a featureless curve as smooth reaches {null['median']:.2f} (1 in 100 more than {null['limit']:.2f})"
    strongest = f"In its strongest plane{_in_words(planes[0])}; {by_chance}"
    tested = Tested(
        metrics["winding"],
        {
            "holds": f"{strongest}. {_others(metrics)}{_formula(metrics)}",
            "partly": f"{strongest}: more than chance, but less than one turn of the whole. {_others(metrics)}",
            "fails": f"{strongest}.{_many_circles(metrics)}",
        },
        chance=chance(null),
        interval=pair(metrics["intervals"]["winding"]),
    )
    said = f"In its strongest plane{_in_words(planes[0])}"
    return _unless_chance_does(said, tested, chance(null), "at least", FEWEST_TURNS, null["limit"])


def _in_words(plane: Plane) -> str:
    period = plane["tokens_per_turn"]
    pace = "" if period is None else f", once every {period:.3g} positions"
    return (
        f", which holds {plane['share']:.0%} of the variance, the curve turns {plane['turns']:.1f} times{pace}, with a "
        f"steadiness of {plane['steadiness']:.2f}: that makes {plane['winding']:.2f} turns of the whole"
    )


def _others(metrics: Metrics) -> str:
    """Return whether the strongest plane is alone in winding more than chance."""
    others = winding_planes(metrics)[1:]
    if not others:
        return "No other plane winds more than chance."
    each = " and ".join(f"{plane['turns']:.1f} times in one with {plane['share']:.0%}" for plane in others)
    return f"It also turns {each}."


def _formula(metrics: Metrics) -> str:
    return " P is computed by a formula: it does so by construction." if metrics["by_formula"] else ""


def _many_circles(metrics: Metrics) -> str:
    table = metrics["sines"]
    if table is None:
        return ""
    series = " in a geometric series" if table["geometric"] else ""
    return (
        f" P is a table of sines, {table['circles']} circles with periods from {table['shortest_period']:.3g} to "
        f"{table['longest_period']:.3g} positions{series}: each turns steadily, but none holds more than "
        f"{table['largest_share']:.1%} of the variance. Together they turn the average of it {table['turns']:.1f} times."
    )


def _fraying(measured: Measurements[Metrics]) -> Tested | Untested:
    value, null = measured.metrics["fraying"], chance(measured.metrics["chance"]["fraying"])
    if value is None or null is None:
        return Untested(f"With fewer than {FEWEST_FOR_START} positions there is no start to leave out.")
    dropped = (
        f"Leaving out the first {LATE} positions instead of the last {LATE} changes what three components hold by "
        f"{value:+.3f} of the variance; 1 in 100 featureless curves as smooth would change it by more than "
        f"{null.limit:+.3f}"
    )
    fails = "the start lies on the curve no worse than the end"
    if value >= FRAYED:
        fails = "that is within what the ends of such a curve differ by"
    return Tested(
        value,
        {"holds": f"{dropped}: the start lies off the curve of the rest.", "fails": f"{dropped}: {fails}."},
        chance=null,
        interval=pair(measured.metrics["intervals"]["fraying"]),
    )


def _first_position(measured: Measurements[Metrics]) -> Tested:
    metrics = measured.metrics
    value, null = metrics["first_position_distance"], metrics["chance"]["first_position_distance"]
    far = f"Position 0 lies {value:.1f} median neighbour distances from position 1"
    others = f"1 in 100 steps between other neighbours is longer than {null['limit']:.1f}"
    fails = f"{far}, no outlier by the factor of {OUTLIER_FACTOR:g}; {others}."
    if value > OUTLIER_FACTOR:
        fails = f"{far}, but other positions stand apart as far: {others}."
    return Tested(
        value,
        {"holds": f"{far}; {others}.", "fails": fails},
        chance=chance(null),
        interval=pair(metrics["intervals"]["first_position_distance"]),
        also=0 in metrics["outlier_positions"],
    )


def _constant_norms(measured: Measurements[Metrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, null = metrics["norm_cv"], metrics["chance"]["norm_cv"]
    spread = f"The norms of later positions vary by {value:.1%} of their mean"
    if value <= EXACTLY_EVEN:
        return Tested(value, f"The norms of later positions are all the same.{_formula(metrics)}", baseline=null["median"])
    by_chance = (
        f"those of a featureless curve as smooth, with P's mean and spread in every channel, by {null['median']:.1%} "
        f"(1 in 100 by less than {null['limit']:.1%})"
    )
    fails = f"{spread}; {by_chance}."
    if value <= EVEN_PARTLY:
        fails = f"{spread}, which is not less than chance: {by_chance}."
    tested = Tested(
        value,
        {"holds": f"{spread}; {by_chance}.", "partly": f"{spread}, nearly constant; {by_chance}.", "fails": fails},
        chance=chance(null),
        interval=pair(metrics["intervals"]["norm_cv"]),
    )
    return _unless_chance_does(spread, tested, chance(null), "at most", EVEN, EVEN_PARTLY)


def _look_back(measured: Measurements[Metrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, null = metrics["median_gain"], chance(metrics["chance"]["median_gain"])
    if value is None or null is None:
        first, last = metrics["rows_without_outliers"]
        return Untested(f"Positions {first} to {last}, the longest run without an outlier, are too few to look back on.")
    judged = [look for look in metrics["look_back"] if look["k"] in (1, 5, 10)]
    offsets, gains = (_listed([form(look) for look in judged]) for form in (_offset, _gain))
    fit = (
        f"A rotation fitted on one half of the positions, tried on the other, explains {gains} of what standing still "
        f"leaves {offsets} tokens back (median {value:.2f}; a featureless curve as smooth has {null.median:.2f}, 1 in "
        f"100 more than {null.limit:.2f})"
    )
    moved = max(judged, key=lambda look: abs(look["translation_gain"]))
    line = f"A translation, which is what a straight line would need, explains at most {moved['translation_gain']:.0%}"
    if moved["translation_gain"] < 0:
        line = "A translation, which is what a straight line would need, explains nothing of it"
    fails = f"{fit}: what fits one half does not carry over to the other."
    if value >= GAIN_PARTLY:
        fails = f"{fit}: no more than smoothness gives."
    tested = Tested(
        value,
        {"holds": f"{fit}. {line}.{_formula(metrics)}", "partly": f"{fit}: a fair fit. {line}.", "fails": fails},
        chance=null,
        interval=pair(metrics["intervals"]["median_gain"]),
    )
    return _unless_chance_does(fit, tested, null, "at least", GAIN, GAIN_PARTLY)


def _low_rank(measured: Measurements[Metrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, null = metrics["energy_top30"], metrics["chance"]["energy_top30"]
    smooth = metrics["featureless"]["smooth_energy_top30"]
    share = f"{value:.2%} of P's energy lies in its top {TOP_ENERGY} directions; Gaussian rows have {null['median']:.1%}"
    if LOW_RANK_FACTOR * null["median"] > 1:
        return Untested(f"{share}, and nothing can have {LOW_RANK_FACTOR:g} times as much.")
    why = f"a curve as smooth, without features, {smooth:.1%}"
    if smooth >= value:
        why += ": being smooth is enough"
    return Tested(
        value,
        {"holds": f"{share}, {why}.", "partly": f"{share}, {why}.", "fails": f"Only {share}, {why}."},
        chance=chance(null),
        interval=pair(metrics["intervals"]["energy_top30"]),
        also=value >= LOW_RANK_FACTOR * null["median"],
    )


RULES = (
    Rule(
        id="three-components",
        short="3-D curve",
        statement="Three components hold the positions.",
        value="share of variance in three components, without position 0 (explained_variance_3d.no_first)",
        sense="at least",
        holds=THREE,
        partly=THREE_PARTLY,
        unit="share of variance",
        test=_three_components,
    ),
    Rule(
        id="winding",
        short="winding",
        statement="Positions wind.",
        value="turns in the strongest plane x its share of the variance x steadiness (winding)",
        sense="at least",
        holds=FEWEST_TURNS,
        unit="turns of the whole",
        also="partly where it is more than chance gives",
        test=_winding,
    ),
    Rule(
        id="fraying",
        short="frayed start",
        statement="The start frays.",
        value=f"gain of three components without the first {LATE} rows over without the last (fraying)",
        sense="at least",
        holds=FRAYED,
        unit="share of variance",
        test=_fraying,
    ),
    Rule(
        id="first-position",
        short="first position",
        statement="The first position stands apart.",
        value="distance of row 0 to row 1, in median neighbour distances (first_position_distance)",
        sense="at least",
        holds=OUTLIER_FACTOR,
        unit="median distances",
        test=_first_position,
    ),
    Rule(
        id="constant-norms",
        short="even norms",
        statement="Norms are constant after the start.",
        value="std/mean of the later norms (norm_cv)",
        sense="at most",
        holds=EVEN,
        partly=EVEN_PARTLY,
        unit="std/mean",
        also="exactly equal norms hold",
        test=_constant_norms,
    ),
    Rule(
        id="look-back",
        short="look-back",
        statement="Looking back is a rotation.",
        value="median gain of the rotation over standing still, 1, 5 and 10 tokens back, from half to half (median_gain)",
        sense="at least",
        holds=GAIN,
        partly=GAIN_PARTLY,
        unit="of what standing still leaves",
        test=_look_back,
    ),
    Rule(
        id="low-rank",
        short="low rank",
        statement="P is low rank.",
        value=f"share of energy in the top {TOP_ENERGY} directions (energy_top30)",
        sense="at least",
        holds=LOW_RANK,
        partly=LOW_RANK_PARTLY,
        unit="share of energy",
        also=f"and at least {LOW_RANK_FACTOR:g} times its value for Gaussian rows",
        test=_low_rank,
    ),
)
