from math import sqrt

from generators.base.text import share, two
from generators.findings.channels.measure import ChannelsMetrics
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements
from generators.findings.nulls import chance, pair

SMALLEST_OVERLAP, SHARE_IN_WORDS = 0.5, "half"  # share of the position channels
FEW, FEW_PARTLY = 0.10, 0.25  # share of channels
QUIET, QUIET_PARTLY = -0.30, -0.15  # rank correlation
TIMES_CHANCE, TIMES_IN_WORDS = 2, "twice"
ERRORS = 3.3  # standard errors 1 / sqrt(d - 1) of a rank correlation: one in 2000 unrelated channels is as low


def _few_channels(measured: Measurements[ChannelsMetrics]) -> Tested:
    metrics = measured.metrics
    d, needed, turned = metrics["n_channels"], metrics["channels_for_90"], metrics["chance"]["channels_for_90"]
    return Tested(
        needed / d,
        f"{needed} of {d} channels ({share(needed / d)}) hold 90 % of P's variance; after random rotations, "
        f"{share(turned['median'])} of the channels do (1st percentile {share(turned['limit'])}).",
        form=share,
        chance=chance(turned),
        interval=pair(metrics["intervals"]["channels_for_90"]),
    )


def _tokens_avoid(measured: Measurements[ChannelsMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    if metrics["token_std"] is None:
        return Untested("The token embedding isn't in this checkpoint.")
    k = len(metrics["position_channels"])
    overlap, by_chance = metrics["low_variance_overlap"], metrics["low_variance_overlap_chance"]
    turned = metrics["chance"]["low_variance_overlap"]
    if overlap is None or by_chance is None or turned is None:
        return Untested(
            "There are no position channels to avoid: no clear gap sets apart a few that hold half of P's variance."
        )
    half = SMALLEST_OVERLAP * k
    # Strong structure also shows after random rotations.
    least = max(half if turned["median"] < half else turned["limit"], TIMES_CHANCE * by_chance)
    return Tested(
        overlap,
        f"{overlap} of the {k} position channels are among the {k} channels in which tokens vary least; {k} random "
        f"channels would share {two(by_chance)}, and after random rotations {two(turned['median'])} (99th percentile "
        f"{two(turned['limit'])}).",
        form=two,
        chance=chance(turned),
        holds_at=least,
    )


def _quiet_where_loud(measured: Measurements[ChannelsMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    rho, turned = metrics["spearman_position_std_token_std"], metrics["chance"]["spearman_position_std_token_std"]
    if metrics["token_std"] is None:
        return Untested("The token embedding isn't in this checkpoint.")
    if rho is None or turned is None:
        return Untested("All channels have the same std, so none varies more than another.")
    how = (
        f"Over channels, the stds of positions and tokens have a rank correlation of {rho:+.2f}; after random "
        f"rotations of both, it would be {turned['median']:+.2f} (1st percentile {turned['limit']:+.2f})"
    )
    errors = -ERRORS / sqrt(metrics["n_channels"] - 1)
    return Tested(
        rho,
        {"holds": f"{how}: tokens vary less where positions vary more.", "fails": f"{how}."},
        form="{:.2f}",
        chance=chance(turned),
        interval=pair(metrics["intervals"]["spearman_position_std_token_std"]),
        holds_at=min(QUIET, errors),
        partly_at=min(QUIET_PARTLY, errors),
    )


RULES = (
    Rule(
        id="few-channels",
        short="few channels",
        statement="Positions live in few channels.",
        value="channels that hold 90 % of P's variance, of all",
        sense="at most",
        holds=FEW,
        partly=FEW_PARTLY,
        unit="share of channels",
        test=_few_channels,
    ),
    Rule(
        id="tokens-avoid",
        short="tokens avoid",
        statement="Tokens avoid those channels.",
        value="position channels among as many in which tokens vary least",
        unit="channels",
        holds_as=f"{SHARE_IN_WORDS} of the k position channels",
        also=f"and at least {TIMES_IN_WORDS} what k random channels would share, k²/d",
        test=_tokens_avoid,
    ),
    Rule(
        id="quiet-where-loud",
        short="tokens vary less",
        statement="Tokens vary less where positions vary more.",
        value="rank correlation of positions' and tokens' standard deviations over channels",
        sense="at most",
        holds=QUIET,
        partly=QUIET_PARTLY,
        unit="rank correlation",
        also=f"and {ERRORS:g} / √(d − 1) below 0, as one in 2000 of unrelated channels is",
        test=_quiet_where_loud,
    ),
)
