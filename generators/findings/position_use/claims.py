from generators.base.text import share
from generators.findings.facts import Facts, TextLoss
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.position_use.measure import Damage, PositionUseMetrics
from generators.findings.position_use.variants import CLAIM_COMPONENTS, CLAIM_PERCENT, CLAIM_WIDTH, Kind
from generators.findings.running import GROUP

# Standard errors that removing positions must cost for shares of that cost to be meaningful.
FEWEST_ERRORS = 3
LEAST = 0.01  # smallest cost in nats, or 1 - cosine, for shares of it to be meaningful


def damage_of(m: PositionUseMetrics, kind: Kind, amount: float | None) -> Damage | None:
    return next((row for row in m["damages"] if (row["kind"], row["amount"]) == (kind, amount)), None)


def _damage(m: PositionUseMetrics, kind: Kind, amount: float, chance: Kind | None) -> Evidence | Untested:
    removed = m["removed_but_first"]
    if removed["mean"] <= max(LEAST, FEWEST_ERRORS * removed["standard_error"]):
        return Untested("no-cost")
    row = damage_of(m, kind, amount)
    if row is None:
        return Untested("no-table")
    random = None if chance is None else damage_of(m, chance, amount)
    return Evidence(
        row["share"],
        {"row": row, "random": random},
        baseline=None if random is None else random["share"],
        interval=(row["share_low"], row["share_high"]),
    )


@claim("exact-positions", sense="at most", holds=0.10, partly=0.25, form=share, amount=GROUP)
def exact_positions(m: PositionUseMetrics) -> Evidence | Untested:
    return _damage(m, "groups", GROUP, "random groups")


@claim("off-curve-noise", sense="at most", holds=0.005, form=share, amount=CLAIM_WIDTH)
def off_curve_noise(m: PositionUseMetrics) -> Evidence | Untested:
    return _damage(m, "smoothed", CLAIM_WIDTH, None)


@claim("three-components-enough", sense="at most", holds=0.05, partly=0.15, form=share, amount=CLAIM_COMPONENTS)
def three_components_enough(m: PositionUseMetrics) -> Evidence | Untested:
    return _damage(m, "components", CLAIM_COMPONENTS, "random directions")


@claim("weak-channels-disposable", sense="at most", holds=0.05, form=share)
def weak_channels_disposable(m: PositionUseMetrics) -> Evidence | Untested:
    return _damage(m, "strongest", CLAIM_PERCENT, "random channels")


def loss(metrics: PositionUseMetrics) -> TextLoss:
    base, ran = metrics["base"], metrics["ran"]
    return TextLoss(ran["text"], ran["text_sha256"], metrics["unit"], base["mean"], (base["low"], base["high"]))


FACTS = Facts(loss=loss)
