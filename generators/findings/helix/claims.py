from collections.abc import Callable

from generators.base.sentences import listed, many
from generators.base.text import share, two
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
SMOOTH = 0.5  # correlation of neighbors below which rows form no curve
EVEN, EVEN_PARTLY = 0.05, 0.10  # std/mean
ALL = 1 - 1e-6  # share of the variance
EXACTLY_EVEN = 1e-5  # std/mean; norms that differ by rounding only
ROUNDED_EVEN = 1e-3  # std/mean; the same for a table of sines stored in 16 bits
GAIN, GAIN_PARTLY = 0.5, 0.25  # gain over predicting no movement
EXACT_GAIN = 1.0
NOTHING = 0.005  # smaller values would be shown as 0.00
LOW_RANK, LOW_RANK_PARTLY = 0.99, 0.95  # share of energy
LOW_RANK_FACTOR = 1.5  # multiple of the energy of Gaussian rows


def _three_components(measured: Measurements[HelixMetrics]) -> Tested:
    metrics = measured.metrics
    value, cleaned = metrics["explained_variance_3d"]["no_first"], metrics["explained_variance_3d_kept"]
    null = strictest(metrics["chance"]["explained_variance_3d"].values())
    walk = metrics["beside"]["explained_variance_3d"]["walk"]["median"]
    said = f"{share(value, THREE, THREE_PARTLY)} of the variance of positions 1 to {metrics['n_positions'] - 1}"
    by_chance = f"{_by_chance(null, share)}random walks {share(walk)}"
    answer = f"Three components hold {said}; {by_chance}."
    partly = fails = f"{answer} It takes {many(metrics['components_for_90'], 'component')} to reach 90 %."
    beside = f"only {share(cleaned, THREE, THREE_PARTLY)} without outlier positions"
    without = f"Three components hold {said}, but {beside}; {by_chance}."
    if cleaned < THREE <= value:
        partly = f"{without} Both must reach {THREE:.0%} to hold."
    if cleaned < THREE_PARTLY <= value:
        fails = f"{without} Both must reach {THREE_PARTLY:.0%}."
    return Tested(
        value,
        {"holds": answer, "partly": partly, "fails": fails},
        form=share,
        chance=null,
        interval=pair(metrics["intervals"]["explained_variance_3d"]),
        extra_condition_met=cleaned >= THREE,
        partly_condition_met=cleaned >= THREE_PARTLY,
    )


def _by_chance(null: Chance | None, form: Callable[[float], str], limit: str = "99th percentile") -> str:
    return "" if null is None else f"{null.null} {form(null.median)} ({limit} {form(null.limit)}), "


def winding_planes(metrics: HelixMetrics) -> list[StoredPlane]:
    """Return the planes that wind more than the strongest one of a random curve does, strongest first."""
    null = strictest(metrics["chance"]["winding"].values())
    return [plane for plane in metrics["planes"] if null is None or plane["winding"] > null.limit]


def winds(metrics: HelixMetrics) -> bool:
    planes = winding_planes(metrics)
    return metrics["sines"] is not None or (
        metrics["winding"] >= FEWEST_TURNS and bool(planes) and _steady(planes[0])
    )


def _steady(plane: StoredPlane) -> bool:
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
        f"The curve turns {_times(plane)} over positions {first} to {last} in its strongest plane. Its "
        f"winding score (turns × {share(plane['share'])} of the variance × steadiness {two(plane['steadiness'])}) is "
        f"{plane['winding']:.2f}; {null.null} would reach {two(null.median)} (99th percentile {two(null.limit)})"
    )
    fails = f"{said}."
    if not steady:
        fails = f"{said}. It turns back and forth, as rows in random order do; a steadiness of a third is needed."
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
        extra_condition_met=steady,
    )


def _others(metrics: HelixMetrics) -> str:
    others = winding_planes(metrics)[1:]
    if not others:
        return "No other plane winds more than chance."
    each = [f"{_times(plane)} in a plane with {share(plane['share'])} of the variance" for plane in others]
    return f"It also turns {listed(each)}."


def _times(plane: StoredPlane) -> str:
    turns = two(plane["turns"])
    return f"{turns} {'time' if turns == '1' else 'times'}"


def _formula(metrics: HelixMetrics) -> str:
    computed = metrics["by_formula"] or metrics["sines"]
    return " P is computed by a formula, so this holds by construction." if computed else ""


def _many_circles(table: Sines) -> str:
    series = " in a geometric series" if table["geometric"] else ""
    return (
        f"P is a table of sines, not learned: {table['circles']} circles with periods from "
        f"{two(table['shortest_period'])} to {two(table['longest_period'])} positions{series}. No circle holds more "
        f"than {share(table['largest_share'])} of the variance. Their combined winding score is "
        f"{two(table['turns'])}, by construction."
    )


def _fraying(measured: Measurements[HelixMetrics]) -> Tested | Untested:
    value, null = measured.metrics["fraying"], strictest(measured.metrics["chance"]["fraying"].values())
    if value is None or null is None:
        return Untested(f"With fewer than {FEWEST_FOR_START} positions, there is no start to leave out.")
    if measured.metrics["explained_variance_3d"]["no_first"] >= ALL:
        return Untested("Three components hold all of the curve, so nothing can fray.")
    points = f"{100 * abs(value):.{2 if abs(value) < 0.1 else 1}f} percentage points"
    said = (
        f"Three components hold {points} {'more' if value >= 0 else 'less'} of the variance without the first {LATE} "
        f"positions than without the last {LATE}; for {null.null}, the difference would be {_points(null.median)} "
        f"(99th percentile {_points(null.limit)})"
    )
    lag_one = measured.metrics["smoothness"]["lag_one"]
    why = f"; neighbors correlate at only {two(lag_one)}, so there is no smooth curve" if lag_one < SMOOTH else ""
    return Tested(
        value,
        {"holds": f"The start is off the curve. {said}.", "fails": f"{said}{why}."},
        form=lambda *values: f"{two(*(100 * each for each in values))} points",
        chance=null,
        interval=pair(measured.metrics["intervals"]["fraying"]),
        extra_condition_met=lag_one >= SMOOTH,
    )


def _points(value: float) -> str:
    return f"{100 * value:+z.1f}"


def _first_position(measured: Measurements[HelixMetrics]) -> Tested:
    metrics = measured.metrics
    value, null = metrics["first_position_distance"], strictest(metrics["chance"]["first_position_distance"].values())
    far = two(value, OUTLIER_FACTOR)
    said = f"The distance from position 0 to position 1 is {far} times the typical distance between neighbors"
    others = "" if null is None else f"; for other positions, the 99th percentile is {two(null.limit)}"
    return Tested(
        value,
        f"{said}{others}.",
        form=two,
        chance=null,
        interval=pair(metrics["intervals"]["first_position_distance"]),
    )


def _constant_norms(measured: Measurements[HelixMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, null = metrics["norm_cv"], strictest(metrics["chance"]["norm_cv"].values(), "at most")
    if metrics["explained_variance_3d"]["late"] is None and metrics["n_positions"] >= FEWEST_FOR_START:
        return Untested("All later positions are equal, so their norms can't vary.")
    if null is None or value <= EXACTLY_EVEN or (metrics["sines"] and value <= ROUNDED_EVEN):
        return Tested(value, f"All later positions have the same norm.{_formula(metrics)}")
    said = f"The norms of later positions vary by {share(value, EVEN, EVEN_PARTLY)} of their mean"
    by_chance = f"those of {null.null} would vary by {share(null.median)} (1st percentile {share(null.limit)})"
    return Tested(
        value,
        f"{said}; {by_chance}.",
        form=share,
        chance=null,
        interval=pair(metrics["intervals"]["norm_cv"]),
    )


def _look_back(measured: Measurements[HelixMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, null = metrics["median_gain"], strictest(metrics["chance"]["median_gain"].values())
    if metrics["sines"]:
        return Tested(EXACT_GAIN, "P is a table of sines, so a step of any length rotates each circle exactly.")
    if value is None or null is None:
        first, last = metrics["rows_without_outliers"]
        return Untested(
            f"Positions {first} to {last}, the longest run without an outlier, are too few to test looking back."
        )
    judged = [look for look in metrics["look_back"] if look["k"] in JUDGED_OFFSETS]
    offsets, gains = listed([str(look["k"]) for look in judged]), _at_each([look["gain"] for look in judged], value)
    most = max(look["translation_gain"] for look in judged)
    changes = f"removes {share(value, GAIN, GAIN_PARTLY)} of" if value >= 0 else f"adds {share(-value)} to"
    said = (
        f"A rotation fitted on half of the positions {changes} the error of predicting no movement on the other half "
        f"({gains} at {offsets} {'token' if offsets == '1' else 'tokens'} back). On {null.null}, it would "
        f"{_removed_by_chance(null)}. A translation removes "
        f"{'nothing' if most < NOTHING else f'at most {share(most)}'}"
    )
    return Tested(
        value,
        {"holds": f"{said}.{_formula(metrics)}", "fails": f"{said}."},
        form=share,
        chance=null,
        interval=pair(metrics["intervals"]["median_gain"]),
    )


def _at_each(gains: list[float], like: float) -> str:
    if all((gain >= 0) == (like >= 0) for gain in gains):
        return listed([share(abs(gain)) for gain in gains])
    return "error " + listed([("−" if gain >= 0 else "+") + share(abs(gain)) for gain in gains])


def _removed_by_chance(null: Chance) -> str:
    median, limit = share(abs(null.median)), share(abs(null.limit))
    if null.median >= 0:
        return f"remove {median} (99th percentile {limit})"
    if null.limit < 0:
        return f"add {median} (in the best 1 %, add less than {limit})"
    return f"add {median}, and remove more than {limit} in 1 % of cases"


def _low_rank(measured: Measurements[HelixMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, null = metrics["energy_top30"], strictest(metrics["chance"]["energy_top30"].values())
    smooth, least = metrics["beside"]["energy_top30_smooth"], LOW_RANK_FACTOR * (0.0 if null is None else null.median)
    said = f"P's top {TOP_ENERGY} directions hold {share(value, LOW_RANK, LOW_RANK_PARTLY)} of its energy; "
    said += _by_chance(null, share).removesuffix(", ")
    if least > 1:
        needed = f"{LOW_RANK_FACTOR:g} times the share of Gaussian rows"
        return Untested(f"{said}. To pass, P would need {needed}, which is more than 100 %.")
    said = f"{said}, random curves as smooth as P {share(smooth)}"
    holds, partly = max(LOW_RANK, least), max(LOW_RANK_PARTLY, least)
    return Tested(
        value,
        f"{said}.",
        form=share,
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
        unit="winding score",
        also="and with a steadiness of a third or more; partly where it exceeds chance",
        test=_winding,
    ),
    Rule(
        id="fraying",
        short="frayed start",
        statement="The start frays.",
        value=f"share of variance in three components without the first {LATE} rows, minus that without the last",
        holds=FRAYED,
        unit="share of variance",
        also=f"and neighbors must correlate at {SMOOTH:g} or more",
        test=_fraying,
    ),
    Rule(
        id="first-position",
        short="first position",
        statement="The first position stands apart.",
        value="distance of row 0 to row 1, in median neighbor distances",
        holds=OUTLIER_FACTOR,
        unit="times the median distance",
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
        value="median share of the error of predicting no movement that a rotation removes, 1, 5 and 10 tokens back",
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
