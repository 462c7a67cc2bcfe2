from collections import Counter

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict


class ConsistentChannel(TypedDict):
    """The channel that tops |gain| in the most layers, with its ratios to the runner-up in those layers.

    `tied` are all channels that top as many, this one among them, in their order.
    """

    channel: int
    tied: list[int]
    layers_topped: int
    n_layers: int
    ratios: list[float]


def consistent_channel(gains: list[Float[Array, " d"]]) -> ConsistentChannel | None:
    """Return the channel with the largest |gain| in most layers, and its ratios to the runner-up there.

    `gains` are |gain| of one norm per layer. None where every gain is constant. Of channels that top equally many
    layers, the one with the larger median ratio counts.
    """
    tops = [(int(np.argmax(gain)), ratio_to_runner_up(gain)) for gain in gains if np.ptp(gain)]
    if not tops:
        return None
    counts = Counter(channel for channel, _ in tops)
    ratios = {channel: [ratio for top, ratio in tops if top == channel and ratio is not None] for channel in counts}
    best = max(counts, key=lambda c: (counts[c], np.median(ratios[c]) if ratios[c] else 0, -c))
    return {
        "channel": best,
        "tied": sorted(channel for channel, count in counts.items() if count == counts[best]),
        "layers_topped": counts[best],
        "n_layers": len(gains),
        "ratios": ratios[best],
    }


def ratio_to_runner_up(gain: Float[Array, " d"]) -> float | None:
    """Return the largest |gain| over the second largest, None where it is constant or there is no second."""
    if len(gain) < 2:
        return None
    runner_up, largest = np.sort(gain)[-2:]
    return float(largest / runner_up) if runner_up > 0 and np.ptp(gain) else None
