"""What is claimed of the position curve: rules, numbers and sentences."""

from generators.findings.contract import Measurements, Rule, Tested, Untested
from generators.findings.helix.curves import OUTLIER_FACTOR, Circle
from generators.findings.helix.measure import FEWEST_FOR_RANGES, LATE, TOP_ENERGY, Metrics

FEWEST_TURNS = 1.0
DRIFT_FACTOR = 1.5  # times the turns of a drift
MOST_OF_SHUFFLED, IN_WORDS = 0.5, "half"  # what norms may vary by, of what they vary by when shuffled
CLAIM_OFFSET = 10  # tokens back
SMALLEST_GAIN = {"holds": 0.5, "partly": 0.25}  # over standing still
LOW_RANK_FACTOR = 1.5  # times the energy that Gaussian rows have


def _three_components(measured: Measurements[Metrics]) -> Tested:
    metrics = measured.metrics
    value, chance = metrics["explained_variance_3d"]["no_first"], metrics["explained_variance_3d_gaussian"]
    share = f"{value:.1%} of the variance of positions 1 to {metrics['n_positions'] - 1}"
    by_chance = f"Gaussian rows of the same shape give {chance:.1%}"
    needed = f"It takes {metrics['components_for_90']} components to reach 90 %"
    return Tested(
        value,
        {
            "holds": f"Three components hold {share}; {by_chance}.",
            "partly": f"Three components hold {share}, most but not nearly all; {by_chance}. {needed}.",
            "fails": f"Three components hold only {share}; {by_chance}. {needed}.",
        },
        baseline=chance,
    )


def winds(metrics: Metrics) -> bool:
    """Return whether two components turn clearly more than a drift would: what the circle claim asks."""
    circle = metrics["circle"]
    return circle is not None and abs(circle["turns"]) >= _turns_needed(circle)


def _turns_needed(circle: Circle) -> float:
    return max(FEWEST_TURNS, DRIFT_FACTOR * circle["drift_turns"])


def _circle(measured: Measurements[Metrics]) -> Tested:
    circle = measured.metrics["circle"]
    if circle is None:
        return Tested(None, "No pair of the first eight components turns about a centre at one frequency.")
    turns, drift = abs(circle["turns"]), circle["drift_turns"]
    first, second = circle["pcs"]
    what = (
        f"Components {first} and {second} turn {turns:.1f} times, once every {circle['tokens_per_turn']:.3g} "
        f"positions (circularity {circle['circularity']:.2f}, radius varies by {circle['radius_cv']:.0%})"
    )
    return Tested(
        turns,
        {
            "holds": f"{what}; a mere drift would make {drift:g}.",
            "fails": f"{what}, but that is not clearly more than the {drift:g} that a mere drift would make there.",
        },
        baseline=drift,
        holds_at=_turns_needed(circle),
    )


def _fraying(measured: Measurements[Metrics]) -> Tested | Untested:
    value = measured.metrics["fraying"]
    if value is None:
        return Untested(f"With fewer than {FEWEST_FOR_RANGES} positions there is no start to leave out.")
    dropped = (
        f"Leaving out the first {LATE} positions instead of the last {LATE} changes what three components hold by "
        f"{value:+.3f} of the variance"
    )
    return Tested(
        value,
        {
            "holds": f"{dropped}: the start lies off the curve of the rest.",
            "fails": f"{dropped}: the start lies on the curve no worse than the end.",
        },
        baseline=measured.metrics["fraying_permuted"],
    )


def _first_position(measured: Measurements[Metrics]) -> Tested:
    value = measured.metrics["first_position_distance"]
    far = f"Position 0 lies {value:.1f} median neighbour distances from position 1"
    return Tested(
        value,
        {"holds": f"{far}.", "fails": f"{far}, no outlier by the factor of {OUTLIER_FACTOR:g}."},
        baseline=1.0,
        also=0 in measured.metrics["outlier_positions"],
    )


def _constant_norms(measured: Measurements[Metrics]) -> Tested:
    value, permuted = measured.metrics["norm_cv"], measured.metrics["norm_cv_permuted"]
    spread = f"The norms of later positions vary by {value:.1%} of their mean"
    return Tested(
        value,
        {
            "holds": f"{spread}, where shuffling each component over positions gives {permuted:.1%}.",
            "partly": f"{spread}, nearly constant; shuffling each component over positions gives {permuted:.1%}.",
            "fails": f"{spread}; shuffling each component over positions gives {permuted:.1%}.",
        },
        baseline=permuted,
        also=0 < value <= MOST_OF_SHUFFLED * permuted,
    )


def _look_back(measured: Measurements[Metrics]) -> Tested | Untested:
    metrics = measured.metrics
    look = next((look for look in metrics["look_back"] if look["k"] == CLAIM_OFFSET), None)
    if look is None:
        return Untested(f"With {metrics['n_positions']} positions one can't look back {CLAIM_OFFSET}.")
    gain, turns = look["gain"], winds(metrics)
    fit = (
        f"A rotation predicts the position {CLAIM_OFFSET} tokens back with R² {look['r2_rotation']:.3f}, standing "
        f"still with {look['r2_identity']:.3f} (gain {gain:.2f})"
    )
    smooth = "" if turns else " Without a circle to turn on, a good fit only says that the curve is smooth."
    return Tested(
        look["r2_rotation"],
        {"holds": f"{fit}.", "partly": f"{fit}: a fair fit, not an exact one.", "fails": f"{fit}.{smooth}"},
        baseline=look["r2_identity"],
        also=gain >= SMALLEST_GAIN["holds"] and turns,
        also_partly=gain >= SMALLEST_GAIN["partly"] and turns,
    )


def _low_rank(measured: Measurements[Metrics]) -> Tested:
    value, chance = measured.metrics["energy_top30"], measured.metrics["energy_top30_gaussian"]
    share = f"{value:.2%} of P's energy lies in its top {TOP_ENERGY} directions; Gaussian rows give {chance:.1%}"
    return Tested(
        value,
        {"holds": f"{share}.", "partly": f"{share}.", "fails": f"Only {share}."},
        baseline=chance,
        also=value >= LOW_RANK_FACTOR * chance,
    )


RULES = (
    Rule(
        id="three-components",
        short="3-D curve",
        statement="Three components hold the positions.",
        value="share of variance in three components, without position 0 (explained_variance_3d.no_first)",
        sense="at least",
        holds=0.90,
        partly=0.70,
        unit="share of variance",
        test=_three_components,
    ),
    Rule(
        id="circle",
        short="circle",
        statement="Positions wind on a circle.",
        value="turns of the circle (circle.turns)",
        sense="at least",
        unit="turns",
        holds_as=f"{DRIFT_FACTOR:g} times the turns of a mere drift (half the rank of the later component), and "
        f"never below {FEWEST_TURNS:g}",
        test=_circle,
    ),
    Rule(
        id="fraying",
        short="frayed start",
        statement="The start frays.",
        value=f"gain of three components without the first {LATE} rows over without the last (fraying)",
        sense="at least",
        holds=0.02,
        unit="share of variance",
        test=_fraying,
    ),
    Rule(
        id="first-position",
        short="first position",
        statement="The first position stands apart.",
        value="distance of row 0 to row 1, in median neighbour distances",
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
        holds=0.05,
        partly=0.10,
        unit="std/mean",
        also=f"and at most {IN_WORDS} of what shuffling each component over positions gives (norm_cv_permuted)",
        test=_constant_norms,
    ),
    Rule(
        id="look-back",
        short="look-back",
        statement="Looking back is a rotation.",
        value=f"R² of the best rotation {CLAIM_OFFSET} tokens back (look_back)",
        sense="at least",
        holds=0.95,
        partly=0.80,
        unit="R²",
        also="with a gain over standing still of at least {holds:g} (partly: {partly:g}), and the circle claim must "
        "hold: any smooth curve, even a straight line, passes the first two".format(**SMALLEST_GAIN),
        test=_look_back,
    ),
    Rule(
        id="low-rank",
        short="low rank",
        statement="P is low rank.",
        value=f"share of energy in the top {TOP_ENERGY} directions (energy_top30)",
        sense="at least",
        holds=0.99,
        partly=0.95,
        unit="share of energy",
        also=f"and at least {LOW_RANK_FACTOR:g} times its value for Gaussian rows",
        test=_low_rank,
    ),
)
