"""What is claimed of P's channels: rules, numbers and sentences."""

from generators.findings.channels.measure import Metrics
from generators.findings.contract import Measurements, Rule, Tested, Untested

SMALLEST_OVERLAP, SHARE_IN_WORDS = 0.5, "half"  # of the position channels
TIMES_CHANCE, TIMES_IN_WORDS = 2, "twice"


def _few_channels(measured: Measurements[Metrics]) -> Tested:
    metrics = measured.metrics
    d, needed, chance = metrics["n_channels"], metrics["channels_for_90"], metrics["channels_for_90_gaussian"]
    return Tested(
        needed / d,
        f"{needed} of {d} channels ({needed / d:.1%}) hold 90 % of P's variance; Gaussian rows would need {chance} "
        f"({chance / d:.0%}).",
        baseline=chance / d,
    )


def _tokens_avoid(measured: Measurements[Metrics]) -> Tested | Untested:
    metrics = measured.metrics
    if metrics["token_std"] is None:
        return Untested("The token embedding isn't in this checkpoint.")
    k = len(metrics["position_channels"])
    overlap, chance = metrics["low_variance_overlap"], metrics["low_variance_overlap_chance"]
    if overlap is None or chance is None:
        return Untested("There are no position channels to avoid: no gap sets any apart.")
    return Tested(
        overlap,
        f"{overlap} of the {k} position channels are among the {k} channels in which tokens vary least; chance gives "
        f"{chance:.1f}.",
        baseline=chance,
        holds_at=SMALLEST_OVERLAP * k,
        also=overlap >= TIMES_CHANCE * chance,
    )


RULES = (
    Rule(
        id="few-channels",
        short="few channels",
        statement="Positions live in few channels.",
        value="channels_for_90 / d",
        sense="at most",
        holds=0.10,
        partly=0.25,
        unit="share of channels",
        test=_few_channels,
    ),
    Rule(
        id="tokens-avoid",
        short="tokens avoid",
        statement="Tokens avoid those channels.",
        value="low_variance_overlap",
        sense="at least",
        unit="channels",
        holds_as=f"{SHARE_IN_WORDS} of the k position channels",
        also=f"and at least {TIMES_IN_WORDS} its chance value k²/d",
        test=_tokens_avoid,
    ),
)
