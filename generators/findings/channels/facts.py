from collections.abc import Iterator

import numpy as np

from generators.base.text import two
from generators.findings.channels.measure import ChannelsMetrics
from generators.findings.facts import POSITION_STD, EntityNote, EntityNumbers, Fact, Facts
from generators.findings.measured import Measurements

NAMED = 8  # loudest position channels, listed by name


def channels(found: Measurements[ChannelsMetrics], count: int | None) -> Iterator[Fact]:
    m = found.metrics
    std, louder = m["position_std"], m["position_channels"]
    yield EntityNumbers(POSITION_STD, std, "channel-histogram", "largest", name="position_std")
    yield EntityNumbers("mean over positions (P)", found.arrays.get("position_mean"))
    yield EntityNumbers("mean over tokens (E)", m["token_mean"], order="strongest")
    yield EntityNumbers("standard deviation over tokens (E)", m["token_std"], order="largest", name="token_std")
    leading = found.arrays.get("right_singular_vectors")
    if leading is not None and len(leading):
        says = "share of P's leading direction, which includes the mean over positions"
        yield EntityNumbers(says, leading[0] ** 2, "singular-vectors", "largest")
    others = "" if len(louder) == 1 else f", one of {len(louder)}"
    for place, channel in enumerate(louder):
        says = f"A position channel{others}: P varies in it far more than in other channels."
        yield EntityNote(channel, says, named=place < NAMED)
    most = int(np.argmax(std))
    yield EntityNote(most, f"Positions vary most in this channel: std {two(std[most])}.", role="positions")


FACTS = Facts(entities={"channel": channels})
