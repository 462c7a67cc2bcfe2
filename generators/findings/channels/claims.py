from collections.abc import Iterator
from math import sqrt

import numpy as np

from generators.base.text import share, two
from generators.findings.channels.measure import ChannelsMetrics
from generators.findings.facts import POSITION_STD, EntityNote, EntityNumbers, Fact, Facts
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements

SMALLEST_OVERLAP = 0.5  # share of the position channels: "half" in words
TIMES_CHANCE = 2  # "twice" in words
QUIET, QUIET_PARTLY = -0.30, -0.15  # rank correlation
ERRORS = 3.3  # standard errors 1 / sqrt(d - 1) of a rank correlation: one in 2000 unrelated channels is as low


@claim("few-channels", sense="at most", holds=0.10, partly=0.25, form=share, with_arrays=True)
def few_channels(measured: Measurements[ChannelsMetrics]) -> Evidence | Untested:
    m = measured.metrics
    if measured.arrays.get("is_sines", np.zeros(1, bool))[0]:
        return Untested("computed")
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


@claim("quiet-where-loud", sense="at most", holds=QUIET, partly=QUIET_PARTLY, form="{:.2f}")
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


NAMED = 8  # loudest position channels, listed by name


def channels(found: Measurements[ChannelsMetrics], count: int | None) -> Iterator[Fact]:
    m = found.metrics
    std, louder = m["position_std"], m["position_channels"]
    yield EntityNumbers(POSITION_STD, std, "channel-histogram", "largest", name="position_std")
    yield EntityNumbers("mean over positions (P)", found.arrays.get("position_mean"))
    yield EntityNumbers("mean over tokens (E)", m["token_mean"], order="strongest")
    yield EntityNumbers("standard deviation over tokens (E)", m["token_std"], order="largest", name="token_std")
    leading = found.arrays.get("right_singular_vectors")
    if leading is not None:
        says = "share of P's leading direction, which includes the mean over positions"
        yield EntityNumbers(says, leading[0] ** 2, order="largest")
    which = "The position channel" if len(louder) == 1 else f"One of {len(louder)} position channels"
    for place, channel in enumerate(louder):
        says = f"{which}: P varies far more here than in other channels."
        yield EntityNote(channel, says, named=place < NAMED)
    most = int(np.argmax(std))
    yield EntityNote(most, f"Positions vary most in this channel: std {two(std[most])}.", role="positions")


FACTS = Facts(entities={"channel": channels})
