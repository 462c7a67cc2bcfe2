from collections import Counter

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.maths.resampling import LEVEL, NullSummary


class ConsistentChannel(TypedDict):
    """The channel that tops |gain| in the most layers, with its ratios to the runner-up in those layers.

    `tied` are all channels that top as many, this one among them, in their order.
    """

    channel: int
    tied: list[int]
    layers_topped: int
    n_layers: int
    ratios: list[float]


class MutedChannel(TypedDict):
    """The channel whose |gain| is at most a tenth of its layer's median in the most layers, listed in `layers`.

    Where none is, the one with the smallest median ratio. `most` is its largest |gain| over the median, in `most_in`.
    """

    channel: int
    tied: list[int]
    layers: list[int]
    n_layers: int
    typical: float
    most: float
    most_in: int


MUTED = 0.1  # of the layer's median


def muted_channel(gains: dict[int, Float[Array, " d"]]) -> MutedChannel | None:
    """Return the channel that |gain| mutes in the most layers; None where no layer's gains vary about a median."""
    ratios = _over_median(gains)
    if not ratios:
        return None
    layers, stacked = list(ratios), np.stack(list(ratios.values()))
    counts, typical = (stacked <= MUTED).sum(axis=0), np.median(stacked, axis=0)
    best = int(np.lexsort((typical, -counts))[0])
    most = int(stacked[:, best].argmax())
    return {
        "channel": best,
        "tied": np.flatnonzero(counts == counts[best]).tolist() if counts[best] else [best],
        "layers": [layer for layer, ratio in ratios.items() if ratio[best] <= MUTED],
        "n_layers": len(gains),
        "typical": float(typical[best]),
        "most": float(stacked[most, best]),
        "most_in": layers[most],
    }


def muted_at(gains: dict[int, Float[Array, " d"]]) -> Bool[Array, "layers d"]:
    return np.array([ratio <= MUTED for ratio in _over_median(gains).values()])


def _over_median(gains: dict[int, Float[Array, " d"]]) -> dict[int, Float[Array, " d"]]:
    return {layer: gain / np.median(gain) for layer, gain in gains.items() if np.ptp(gain) and np.median(gain) > 0}


def most_layers_by_chance(marked: Bool[Array, "layers d"]) -> NullSummary:
    """Return in how many layers the luckiest channel is marked when channels are permuted within every layer.

    Nothing is drawn: in how many layers one channel is marked is a sum of independent trials. That any of d exceeds a
    number is at most d times as likely as that one does, and hardly less likely where that is 1 %.
    """
    in_layers, d = np.ones(1), marked.shape[1]
    for share in marked.mean(axis=1):
        in_layers = np.convolve(in_layers, [1 - share, share])
    more = np.append(np.cumsum(in_layers[:0:-1])[::-1], 0.0)  # probability of more layers than 0, 1, ...
    median, limit = np.argmax((1 - more) ** d >= 0.5), np.argmax(d * more <= LEVEL)
    return NullSummary(float(median), float(limit), 0, "at least")


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
