from collections.abc import Callable

from generators.base.text import share, two
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements
from generators.findings.position_use.measure import Damage, PositionUseMetrics
from generators.findings.position_use.variants import CLAIM_COMPONENTS, CLAIM_PERCENT, CLAIM_WIDTH, Kind
from generators.findings.running import GROUP

# Standard errors that removing positions must cost for shares of that cost to be meaningful.
FEWEST_ERRORS = 3
LEAST = 0.01  # smallest cost in nats, or 1 - cosine, for shares of it to be meaningful


def damage_of(metrics: PositionUseMetrics, kind: Kind, amount: float | None) -> Damage | None:
    return next((row for row in metrics["damages"] if (row["kind"], row["amount"]) == (kind, amount)), None)


def _tested(
    metrics: PositionUseMetrics, kind: Kind, amount: float, chance: Kind | None, what: str
) -> Tested | Untested:
    removed = metrics["removed_but_first"]
    if removed["mean"] <= max(LEAST, FEWEST_ERRORS * removed["standard_error"]):
        return Untested("Removing all positions has no measurable cost on these windows.")
    found = damage_of(metrics, kind, amount)
    if found is None:
        return Untested("This model has no position embedding, or too few positions for this change.")
    beside = None if chance is None else damage_of(metrics, chance, amount)
    table = metrics["positions"] == "table"
    whole = "all positions but the first" if table else "all positions"
    cost = f"costs {two(found['cost'])} {metrics['unit']}"
    if metrics["unit"] == "1 - cosine":
        cost = f"raises 1 − cosine by {two(found['cost'])}"
    how = f"{what} {cost}. That is {share(found['share'])} of the cost of removing {whole}"
    if beside is not None:
        how += f" ({share(beside['share'])} with {chance})"
    if table:
        how += f" and {share(found['damage'])} of the cost of removing all positions"
    return Tested(
        found["share"],
        f"{how}.",
        form=share,
        baseline=None if beside is None else beside["share"],
        interval=(found["share_low"], found["share_high"]),
    )


def _exact_positions(measured: Measurements[PositionUseMetrics]) -> Tested | Untested:
    what = f"Averaging positions in groups of {GROUP}"
    if measured.metrics["positions"] != "table":
        what = f"Replacing every position by the middle of its group of {GROUP}"
    return _tested(measured.metrics, "groups", GROUP, "random groups", what)


def _damage(
    kind: Kind, amount: float, chance: Kind | None, what: str
) -> Callable[[Measurements[PositionUseMetrics]], Tested | Untested]:
    return lambda measured: _tested(measured.metrics, kind, amount, chance, what)


RULES = (
    Rule(
        id="exact-positions",
        short="groups suffice",
        statement="Exact positions are not needed.",
        value=f"damage of averaging positions in groups of {GROUP}",
        sense="at most",
        holds=0.10,
        partly=0.25,
        unit="of the cost of removing all but the first",
        test=_exact_positions,
    ),
    Rule(
        id="off-curve-noise",
        short="fuzz not needed",
        statement="Deviations from the smooth curve are not needed.",
        value=f"damage of smoothing positions by {CLAIM_WIDTH}",
        sense="at most",
        holds=0.005,
        unit="of the cost of removing all but the first",
        test=_damage("smoothed", CLAIM_WIDTH, None, f"Smoothing positions with a Gaussian of {CLAIM_WIDTH} position"),
    ),
    Rule(
        id="three-components-enough",
        short="three suffice",
        statement="Three components are enough.",
        value=f"damage of keeping {CLAIM_COMPONENTS} components",
        sense="at most",
        holds=0.05,
        partly=0.15,
        unit="of the cost of removing all but the first",
        test=_damage(
            "components",
            CLAIM_COMPONENTS,
            "random directions",
            f"Keeping {CLAIM_COMPONENTS} components of the positions",
        ),
    ),
    Rule(
        id="weak-channels-disposable",
        short="weak half unused",
        statement="The weaker half of P's channels is disposable.",
        value="damage of fixing the weaker half of the channels at their mean",
        sense="at most",
        holds=0.05,
        unit="of the cost of removing all but the first",
        test=_damage(
            "strongest",
            CLAIM_PERCENT,
            "random channels",
            "Fixing the weaker half of P's channels at their mean",
        ),
    ),
)
