"""What is claimed of the position curve: rules, numbers and sentences."""

from generators.base.sentences import listed, many
from generators.findings.helix.measure import LATE, HelixMetrics, StoredPlane
from generators.findings.judging import Rule, Tested, Untested, strictest
from generators.findings.measured import Chance, Measurements
from generators.findings.nulls import pair
from generators.maths.curve import FEWEST_FOR_START, OUTLIER_FACTOR
from generators.maths.curve_statistics import TOP_ENERGY
from generators.maths.sines import Sines
from generators.maths.turning import JUDGED_OFFSETS

THREE, THREE_PARTLY = 0.90, 0.70  # share of variance
FEWEST_TURNS = 1.0
STEADY = 1 / 3  # net angle over summed steps: two steps on for each one back; rows in any order have 1 / sqrt(n)
FRAYED = 0.02  # share of variance
SMOOTH = 0.5  # correlation of neighbours, below which rows are no curve that a start could lie off
EVEN, EVEN_PARTLY = 0.05, 0.10  # std/mean
ALL = 1 - 1e-6  # of the variance
EXACTLY_EVEN = 1e-5  # std/mean; norms that differ by rounding only
ROUNDED_EVEN = 1e-3  # the same of a table of sines that is kept in 16 bits
GAIN, GAIN_PARTLY = 0.5, 0.25  # over predicting no movement
EXACT_GAIN = 1.0
NOTHING = 0.005  # it would be shown as 0.00
LOW_RANK, LOW_RANK_PARTLY = 0.99, 0.95  # share of energy
LOW_RANK_FACTOR = 1.5  # times the energy that Gaussian rows have


def _three_components(measured: Measurements[HelixMetrics]) -> Tested:
    metrics = measured.metrics
    value, cleaned = metrics["explained_variance_3d"]["no_first"], metrics["explained_variance_3d_kept"]
    null = strictest(metrics["chance"]["explained_variance_3d"].values())
    walk = metrics["beside"]["explained_variance_3d"]["walk"]["median"]
    said = f"{value:.1%} of the variance of positions 1 to {metrics['n_positions'] - 1}"
    by_chance = f"{_by_chance(null, '.1%')}random walks {walk:.1%}"
    answer = f"Three components hold {said}; {by_chance}."
    partly = fails = f"{answer} {many(metrics['components_for_90'], 'component')} reach 90 %."
    without = f"Three components hold {said}, but only {cleaned:.1%} without outlier positions; {by_chance}."
    if cleaned < THREE <= value:
        partly = f"{without} Both must reach {THREE:.0%} to hold."
    if cleaned < THREE_PARTLY <= value:
        fails = f"{without} Both must reach {THREE_PARTLY:.0%}."
    return Tested(
        value,
        {"holds": answer, "partly": partly, "fails": fails},
        form="{:.0%}",
        chance=null,
        interval=pair(metrics["intervals"]["explained_variance_3d"]),
        also=cleaned >= THREE,
        also_partly=cleaned >= THREE_PARTLY,
    )


def _by_chance(null: Chance | None, form: str, limit: str = "99th percentile") -> str:
    """Return what a null gives, as the beginning of a list; nothing without one."""
    return "" if null is None else f"{null.null} {null.median:{form}} ({limit} {null.limit:{form}}), "


def winding_planes(metrics: HelixMetrics) -> list[StoredPlane]:
    """Return the planes that wind more than the strongest one of a featureless curve does, strongest first."""
    null = strictest(metrics["chance"]["winding"].values())
    return [plane for plane in metrics["planes"] if null is None or plane["winding"] > null.limit]


def winds(metrics: HelixMetrics) -> bool:
    """Return whether the claim about winding holds."""
    planes = winding_planes(metrics)
    return metrics["sines"] is not None or (
        metrics["winding"] >= FEWEST_TURNS and bool(planes) and _steady(planes[0])
    )


def _steady(plane: StoredPlane) -> bool:
    """Return whether a curve turns in a plane rather than to and fro."""
    return plane["steadiness"] >= STEADY


def _winding(measured: Measurements[HelixMetrics]) -> Tested:
    metrics = measured.metrics
    null, planes = strictest(metrics["chance"]["winding"].values()), metrics["planes"]
    interval = pair(metrics["intervals"]["winding"])
    if metrics["sines"]:
        return Tested(metrics["sines"]["turns"], _many_circles(metrics["sines"]))
    if not planes or null is None:
        return Tested(0.0, "The curve turns in no plane: it is a line.", chance=null, interval=interval)
    first, last = metrics["rows_without_outliers"]
    plane, steady = planes[0], _steady(planes[0])
    said = (
        f"The curve turns {plane['turns']:.1f} times over positions {first} to {last} in its strongest plane. Its "
        f"winding score (turns × {plane['share']:.0%} of the variance × steadiness {plane['steadiness']:.2f}) is "
        f"{plane['winding']:.2f}; {null.null} reach {null.median:.2f} (99th percentile {null.limit:.2f})"
    )
    fails = f"{said}."
    if not steady:
        fails = f"{said}. It turns to and fro, as rows in any order do: its steadiness must reach a third."
    return Tested(
        metrics["winding"],
        {
            "holds": f"{said}. {_others(metrics)}{_formula(metrics)}",
            "partly": f"{said}: more than chance. {_others(metrics)}",
            "fails": fails,
        },
        form="{:.2f}",
        chance=null,
        interval=interval,
        partly_at=null.limit,
        also=steady,
    )


def _others(metrics: HelixMetrics) -> str:
    """Return whether the strongest plane is alone in winding more than chance."""
    others = winding_planes(metrics)[1:]
    if not others:
        return "No other plane winds more than chance."
    each = [f"{plane['turns']:.1f} times in a plane with {plane['share']:.0%}" for plane in others]
    return f"It also turns {listed(each)}."


def _formula(metrics: HelixMetrics) -> str:
    computed = metrics["by_formula"] or metrics["sines"]
    return " P is computed by a formula: it does so by construction." if computed else ""


def _many_circles(table: Sines) -> str:
    series = " in a geometric series" if table["geometric"] else ""
    return (
        f"P is a table of sines, not learned: {table['circles']} circles with periods from "
        f"{table['shortest_period']:.3g} to {table['longest_period']:.3g} positions{series}. None holds more than "
        f"{table['largest_share']:.1%} of the variance; together they make {table['turns']:.1f} turns of the whole, "
        f"by construction."
    )


def _fraying(measured: Measurements[HelixMetrics]) -> Tested | Untested:
    value, null = measured.metrics["fraying"], strictest(measured.metrics["chance"]["fraying"].values())
    if value is None or null is None:
        return Untested(f"With fewer than {FEWEST_FOR_START} positions there is no start to leave out.")
    if measured.metrics["explained_variance_3d"]["no_first"] >= ALL:
        return Untested("Three components hold all of the curve: no part of it can lie off them.")
    said = (
        f"Three components hold {value:+z.3f} of the variance more without the first {LATE} positions than without "
        f"the last {LATE}; {null.null} {null.median:+z.3f} (99th percentile {null.limit:+z.3f})"
    )
    lag_one = measured.metrics["smoothness"]["lag_one"]
    why = f": neighbors correlate at only {lag_one:z.2f}, so there is no curve to lie off" if lag_one < SMOOTH else ""
    return Tested(
        value,
        {"holds": f"The start lies off the curve of the rest. {said}.", "fails": f"{said}{why}."},
        form="{:+.2f}",
        chance=null,
        interval=pair(measured.metrics["intervals"]["fraying"]),
        also=lag_one >= SMOOTH,
    )


def _first_position(measured: Measurements[HelixMetrics]) -> Tested:
    metrics = measured.metrics
    value, null = metrics["first_position_distance"], strictest(metrics["chance"]["first_position_distance"].values())
    said = f"Position 0 lies {value:.1f} median neighbor distances from position 1"
    others = "" if null is None else f"; the 99th percentile of other positions is {null.limit:.1f}"
    return Tested(
        value,
        f"{said}{others}.",
        form="{:.2g}",
        chance=null,
        interval=pair(metrics["intervals"]["first_position_distance"]),
    )


def _constant_norms(measured: Measurements[HelixMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, null = metrics["norm_cv"], strictest(metrics["chance"]["norm_cv"].values(), "at most")
    if metrics["explained_variance_3d"]["late"] is None and metrics["n_positions"] >= FEWEST_FOR_START:
        return Untested("All later positions are alike: there is nothing to keep constant.")
    if null is None or value <= EXACTLY_EVEN or (metrics["sines"] and value <= ROUNDED_EVEN):
        return Tested(value, f"The norms of later positions are all the same.{_formula(metrics)}")
    said = f"The norms of later positions vary by {value:.1%} of their mean"
    by_chance = f"{null.null} {null.median:.1%} (1st percentile {null.limit:.1%})"
    return Tested(
        value,
        f"{said}; {by_chance}.",
        form="{:.1%}",
        chance=null,
        interval=pair(metrics["intervals"]["norm_cv"]),
    )


def _look_back(measured: Measurements[HelixMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, null = metrics["median_gain"], strictest(metrics["chance"]["median_gain"].values())
    if metrics["sines"]:
        return Tested(EXACT_GAIN, "P is a table of sines: a step of any length turns each of its circles, exactly.")
    if value is None or null is None:
        first, last = metrics["rows_without_outliers"]
        return Untested(
            f"Positions {first} to {last}, the longest run without an outlier, are too few to look back on."
        )
    judged = [look for look in metrics["look_back"] if look["k"] in JUDGED_OFFSETS]
    offsets, gains = (listed([text.format(**look) for look in judged]) for text in ("{k}", "{gain:z.2f}"))
    most = max(look["translation_gain"] for look in judged)
    said = (
        f"A rotation fitted on half of the positions removes a share of {value:z.2f} of the error of predicting no "
        f"movement on the other half ({gains} at {offsets} {'token' if offsets == '1' else 'tokens'} back); "
        f"{null.null} {null.median:z.2f} (99th percentile {null.limit:z.2f}), a translation "
        f"{'nothing' if most < NOTHING else f'{most:.2f} at most'}"
    )
    return Tested(
        value,
        {"holds": f"{said}.{_formula(metrics)}", "fails": f"{said}."},
        form="{:.2f}",
        chance=null,
        interval=pair(metrics["intervals"]["median_gain"]),
    )


def _low_rank(measured: Measurements[HelixMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, null = metrics["energy_top30"], strictest(metrics["chance"]["energy_top30"].values())
    smooth, least = metrics["beside"]["energy_top30_smooth"], LOW_RANK_FACTOR * (0.0 if null is None else null.median)
    said = f"{value:.2%} of P's energy lies in its top {TOP_ENERGY} directions; "
    said += _by_chance(null, ".1%").removesuffix(", ")
    if least > 1:
        return Untested(f"{said}, and nothing can have {LOW_RANK_FACTOR:g} times as much.")
    said = f"{said}, featureless curves as smooth as P {smooth:.1%}{', as much' if smooth >= value else ''}"
    holds, partly = max(LOW_RANK, least), max(LOW_RANK_PARTLY, least)
    return Tested(
        value,
        f"{said}.",
        form="{:.0%}",
        chance=null,
        interval=pair(metrics["intervals"]["energy_top30"]),
        holds_at=holds,
        partly_at=partly,
    )


RULES = (
    Rule(
        id="three-components",
        short="3-D curve",
        statement="Three components hold the positions.",
        value="share of variance in three components, without position 0",
        holds=THREE,
        partly=THREE_PARTLY,
        unit="share of variance",
        test=_three_components,
    ),
    Rule(
        id="winding",
        short="winding",
        statement="Positions wind.",
        value="turns in the strongest plane × its share of the variance × steadiness",
        holds=FEWEST_TURNS,
        unit="turns of the whole",
        also="and with a steadiness of a third or more; partly where it is more than chance gives",
        test=_winding,
    ),
    Rule(
        id="fraying",
        short="frayed start",
        statement="The start frays.",
        value=f"share of variance in three components without the first {LATE} rows, minus that without the last",
        holds=FRAYED,
        unit="share of variance",
        also=f"and neighbours must correlate at {SMOOTH:g} or more",
        test=_fraying,
    ),
    Rule(
        id="first-position",
        short="first position",
        statement="The first position stands apart.",
        value="distance of row 0 to row 1, in median neighbour distances",
        holds=OUTLIER_FACTOR,
        unit="median distances",
        test=_first_position,
    ),
    Rule(
        id="constant-norms",
        short="even norms",
        statement="Norms are constant after the start.",
        value="standard deviation of the later norms over their mean",
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
        statement="Looking back is mostly a rotation.",
        value="median gain of a rotation over predicting no movement, 1, 5 and 10 tokens back, half to half",
        holds=GAIN,
        partly=GAIN_PARTLY,
        unit="of the error of predicting no movement",
        test=_look_back,
    ),
    Rule(
        id="low-rank",
        short="low rank",
        statement="P is low rank.",
        value=f"share of energy in the top {TOP_ENERGY} directions",
        holds=LOW_RANK,
        partly=LOW_RANK_PARTLY,
        unit="share of energy",
        also=f"and at least {LOW_RANK_FACTOR:g} times its value for Gaussian rows",
        test=_low_rank,
    ),
)
