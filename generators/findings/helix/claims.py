"""What is claimed of the position curve: rules, numbers and sentences."""

from dataclasses import replace

from generators.base.sentences import listed, many
from generators.findings.helix.measure import LATE, HelixMetrics, StoredPlane
from generators.findings.judging import Rule, Sense, Tested, Untested, strictest
from generators.findings.measured import Measurements
from generators.findings.nulls import pair
from generators.maths.curve import FEWEST_FOR_START, OUTLIER_FACTOR
from generators.maths.curve_statistics import TOP_ENERGY
from generators.maths.sines import Sines
from generators.maths.turning import JUDGED_OFFSETS

THREE, THREE_PARTLY = 0.90, 0.70  # share of variance
FEW_OUTLIERS = 4  # or one position in a hundred: among more, the first is one of many
FEWEST_TURNS = 1.0
STEADY = 1 / 3  # net angle over summed steps: two steps on for each one back; rows in any order have 1 / sqrt(n)
FRAYED = 0.02  # share of variance
SMOOTH = 0.5  # correlation of neighbours, below which rows are no curve that a start could lie off
EVEN, EVEN_PARTLY = 0.05, 0.10  # std/mean
ALL = 1 - 1e-6  # of the variance
EXACTLY_EVEN = 1e-5  # std/mean; norms that differ by rounding only
ROUNDED_EVEN = 1e-3  # the same of a table of sines that is kept in 16 bits
GAIN, GAIN_PARTLY = 0.5, 0.25  # over standing still
EXACT_GAIN = 1.0
NOTHING = 0.005  # of what standing still leaves: it would be shown as 0.00
LOW_RANK, LOW_RANK_PARTLY = 0.99, 0.95  # share of energy
LOW_RANK_FACTOR = 1.5  # times the energy that Gaussian rows have


def _unless_chance_does(said: str, tested: Tested, sense: Sense, holds: float) -> Tested | Untested:
    """Return what is tested against chance, or that it can't be where what chance gives reaches the threshold.

    What does not reach it although chance does fails: it is on the wrong side of both.
    """

    def reached(value: float, threshold: float) -> bool:
        return value >= threshold if sense == "at least" else value <= threshold

    null, value = tested.chance, tested.value
    if null is None or value is None or not reached(null.median, holds):
        return tested
    if reached(value, holds):
        return Untested(f"{said}, but that says nothing here: at least half of {null.null} reach the threshold too.")
    return replace(tested, chance=None, baseline=null.median, also=False, also_partly=False)


def _three_components(measured: Measurements[HelixMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, cleaned = metrics["explained_variance_3d"]["no_first"], metrics["explained_variance_3d_kept"]
    null = strictest(metrics["chance"]["explained_variance_3d"].values())
    walk = metrics["beside"]["explained_variance_3d"]["walk"]["median"]
    share = f"{value:.1%} of the variance of positions 1 to {metrics['n_positions'] - 1}"
    by_chance = "" if null is None else f"{null.null} have {null.median:.1%} there, "
    by_chance += f"random walks {walk:.1%}"
    needed = f"It takes {many(metrics['components_for_90'], 'component')} to reach 90 %"
    fails = f"Three components hold only {share}; {by_chance}. {needed}."
    if value >= THREE_PARTLY:
        fails = f"Three components hold {share}, but that is within what chance gives: {by_chance}."
    partly = f"Three components hold {share}, most but not nearly all; {by_chance}. {needed}."
    if value >= THREE:
        partly = f"Three components hold {share}, but only {cleaned:.1%} without outlier positions; {by_chance}."
    if cleaned < THREE_PARTLY <= value:
        fails = f"Three components hold {share}, but only {cleaned:.1%} without outlier positions."
    tested = Tested(
        value,
        {"holds": f"Three components hold {share}; {by_chance}.", "partly": partly, "fails": fails},
        chance=null,
        interval=pair(metrics["intervals"]["explained_variance_3d"]),
        also=cleaned >= THREE,
        also_partly=cleaned >= THREE_PARTLY,
    )
    return _unless_chance_does(f"Three components hold {share}", tested, "at least", THREE)


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


def _winding(measured: Measurements[HelixMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    null, planes = strictest(metrics["chance"]["winding"].values()), metrics["planes"]
    interval = pair(metrics["intervals"]["winding"])
    if metrics["sines"]:
        return Tested(metrics["sines"]["turns"], _many_circles(metrics["sines"]))
    if not planes or null is None:
        return Tested(0.0, "The curve turns in no plane: it is a line.", chance=null, interval=interval)
    said = f"In its strongest plane ({planes[0]['share']:.0%} of the variance) the curve turns {_turns(planes[0])}"
    beyond = f"{said}; {null.null} make {null.median:.2f}, 1 in 100 more than {null.limit:.2f}"
    why = ": no more than chance" if metrics["winding"] >= FEWEST_TURNS else ""
    if not _steady(planes[0]):
        why = ": to and fro, as rows in any order do"
    tested = Tested(
        metrics["winding"],
        {
            "holds": f"{beyond}. {_others(metrics)}{_formula(metrics)}",
            "partly": f"{beyond}: more than chance, but less than one turn of the whole. {_others(metrics)}",
            "fails": f"{beyond}{why}.",
        },
        chance=null,
        interval=interval,
        partly_at=null.limit,
        also=_steady(planes[0]),
        also_partly=_steady(planes[0]),
    )
    return _unless_chance_does(said, tested, "at least", FEWEST_TURNS)


def _turns(plane: StoredPlane) -> str:
    period = plane["tokens_per_turn"]
    pace = "" if period is None else f"once every {period:.3g} positions, "
    return (
        f"{plane['turns']:.1f} times, {pace}with steadiness {plane['steadiness']:.2f}: "
        f"{plane['winding']:.2f} turns of the whole"
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
    dropped = (
        f"Leaving out the first {LATE} positions instead of the last {LATE} changes what three components hold by "
        f"{value:+z.3f} of the variance; 1 in 100 {null.null} changes it by more than {null.limit:+z.3f}"
    )
    fails = "the start lies on the curve no worse than the end"
    if value >= FRAYED:
        fails = "the two ends of such a curve differ as much by chance"
    lag_one = measured.metrics["smoothness"]["lag_one"]
    if lag_one < SMOOTH:
        fails = f"but neighbours correlate at {lag_one:z.2f} only, so there is no curve to lie off"
    return Tested(
        value,
        {"holds": f"{dropped}: the start lies off the curve of the rest.", "fails": f"{dropped}: {fails}."},
        chance=null,
        interval=pair(measured.metrics["intervals"]["fraying"]),
        also=lag_one >= SMOOTH,
    )


def _first_position(measured: Measurements[HelixMetrics]) -> Tested:
    metrics = measured.metrics
    value, null = metrics["first_position_distance"], strictest(metrics["chance"]["first_position_distance"].values())
    far = f"Position 0 lies {value:.1f} median neighbour distances from position 1"
    others = "" if null is None else f"; 1 in 100 other positions is farther than {null.limit:.1f} from the next"
    fails = f"{far}, no outlier by the factor of {OUTLIER_FACTOR:g}{others}."
    outliers, few = metrics["outlier_positions"], max(FEW_OUTLIERS, metrics["n_positions"] // 100)
    if len(outliers) > few:
        fails = f"{far}, but {len(outliers)} of {metrics['n_positions']} positions stand apart from both neighbours."
    elif value > OUTLIER_FACTOR:
        fails = f"{far}, but other positions stand apart as far{others}."
    return Tested(
        value,
        {"holds": f"{far}{others}.", "fails": fails},
        chance=null,
        interval=pair(metrics["intervals"]["first_position_distance"]),
        also=0 in outliers and len(outliers) <= few,
    )


def _constant_norms(measured: Measurements[HelixMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, null = metrics["norm_cv"], strictest(metrics["chance"]["norm_cv"].values(), "at most")
    spread = f"The norms of later positions vary by {value:.1%} of their mean"
    if metrics["explained_variance_3d"]["late"] is None and metrics["n_positions"] >= FEWEST_FOR_START:
        return Untested("All later positions are alike: there is nothing to keep constant.")
    if null is None or value <= EXACTLY_EVEN or (metrics["sines"] and value <= ROUNDED_EVEN):
        return Tested(value, f"The norms of later positions are all the same.{_formula(metrics)}")
    by_chance = f"those of {null.null} by {null.median:.1%} (1 in 100 by less than {null.limit:.1%})"
    fails = f"{spread}; {by_chance}."
    if null.median < value:
        fails = f"{spread}, more than chance makes: {by_chance}."
    elif value <= EVEN_PARTLY:
        fails = f"{spread}, but that is nothing beyond chance: {by_chance}."
    tested = Tested(
        value,
        {"holds": f"{spread}; {by_chance}.", "partly": f"{spread}, nearly constant; {by_chance}.", "fails": fails},
        chance=null,
        interval=pair(metrics["intervals"]["norm_cv"]),
    )
    return _unless_chance_does(spread, tested, "at most", EVEN)


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
    offsets = listed([str(look["k"]) for look in judged])
    gains = listed([f"{look['gain']:z.2f}" for look in judged])
    fit = (
        f"Of what standing still leaves, a rotation fitted on one half of the positions and tried on the other takes "
        f"away {gains} at {offsets} {'token' if offsets == '1' else 'tokens'} back (median {value:z.2f})"
    )
    by_chance = f"with {null.null} it is {null.median:z.2f} (1 in 100 more than {null.limit:z.2f})"
    most = max(look["translation_gain"] for look in judged)
    gained = "nothing" if most < NOTHING else f"{most:.2f} at most"
    line = f"a translation, which a straight line would need, takes away {gained}"
    fails = f"{fit}: what fits one half does not carry over to the other, or too little; {by_chance}."
    if value >= GAIN_PARTLY:
        fails = f"{fit}, but that is within what chance gives: {by_chance}."
    tested = Tested(
        value,
        {
            "holds": f"{fit}; {by_chance}, {line}.{_formula(metrics)}",
            "partly": f"{fit}, a fair fit; {by_chance}, {line}.",
            "fails": fails,
        },
        chance=null,
        interval=pair(metrics["intervals"]["median_gain"]),
    )
    return _unless_chance_does(fit, tested, "at least", GAIN)


def _low_rank(measured: Measurements[HelixMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    value, null = metrics["energy_top30"], strictest(metrics["chance"]["energy_top30"].values())
    smooth = metrics["beside"]["energy_top30_smooth"]
    gaussian = 0.0 if null is None else null.median
    share = f"{value:.2%} of P's energy lies in its top {TOP_ENERGY} directions; Gaussian rows have {gaussian:.1%}"
    if LOW_RANK_FACTOR * gaussian > 1:
        return Untested(f"{share}, and nothing can have {LOW_RANK_FACTOR:g} times as much.")
    beside = f"{share}, featureless curves as smooth as P {smooth:.1%}"
    enough = ": being smooth is enough for it" if smooth >= value else ""
    return Tested(
        value,
        {"holds": f"{beside}{enough}.", "partly": f"{beside}{enough}.", "fails": f"Only {beside}."},
        chance=null,
        interval=pair(metrics["intervals"]["energy_top30"]),
        also=value >= LOW_RANK_FACTOR * gaussian,
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
        also="and few others do: at most four positions, or one in a hundred",
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
        statement="Looking back is a rotation.",
        value="median gain of a rotation over standing still, 1, 5 and 10 tokens back, half to half",
        holds=GAIN,
        partly=GAIN_PARTLY,
        unit="of what standing still leaves",
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
