from math import sqrt

from generators.base.text import share, two
from generators.findings.channels.measure import ChannelsMetrics
from generators.findings.judging import Evidence, Untested, claim

SMALLEST_OVERLAP = 0.5  # share of the position channels
TIMES_CHANCE = 2
QUIET, QUIET_PARTLY = -0.30, -0.15  # rank correlation
ERRORS = 3.3  # standard errors 1 / sqrt(d - 1) of a rank correlation: one in 2000 unrelated channels is as low


@claim("few-channels", sense="at most", holds=0.10, partly=0.25, form=share)
def few_channels(m: ChannelsMetrics) -> Evidence:
    value = m["channels_for_90"] / m["n_channels"]
    return Evidence(value, chance=m["chance"]["channels_for_90"], interval=m["intervals"]["channels_for_90"])


@claim("tokens-avoid", form=two)
def tokens_avoid(m: ChannelsMetrics) -> Evidence | Untested:
    overlap, by_chance = m["low_variance_overlap"], m["low_variance_overlap_chance"]
    turned = m["chance"]["low_variance_overlap"]
    if m["token_std"] is None:
        return Untested("no-tokens")
    if overlap is None or by_chance is None or turned is None:
        return Untested("no-gap")
    k = len(m["position_channels"])
    half = SMALLEST_OVERLAP * k
    # Strong structure also shows after random rotations.
    least = max(half if turned["median"] < half else turned["limit"], TIMES_CHANCE * by_chance)
    return Evidence(overlap, {"k": k}, chance=turned, holds_at=least)


@claim("quiet-where-loud", sense="at most", holds=QUIET, partly=QUIET_PARTLY, form="{:.2f}", errors=ERRORS)
def quiet_where_loud(m: ChannelsMetrics) -> Evidence | Untested:
    rho, turned = m["spearman_position_std_token_std"], m["chance"]["spearman_position_std_token_std"]
    if m["token_std"] is None:
        return Untested("no-tokens")
    if rho is None or turned is None:
        return Untested("equal-stds")
    errors = -ERRORS / sqrt(m["n_channels"] - 1)
    return Evidence(
        rho,
        chance=turned,
        interval=m["intervals"]["spearman_position_std_token_std"],
        holds_at=min(QUIET, errors),
        partly_at=min(QUIET_PARTLY, errors),
    )


RULES = (few_channels, tokens_avoid, quiet_where_loud)
