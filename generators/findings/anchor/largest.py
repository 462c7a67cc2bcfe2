"""The largest activation: how large, where, and what the loss owes to that one number.

Asked by Sun et al., "Massive activations in large language models" (2024).
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, WindowLoss, Windows
from generators.findings import running

SEQUENCES = 16
LENGTH = 32  # tokens of each; encoders read whole windows
OTHERS = 99  # other channels at that position, each set to zero alone
FEW = 4  # sequences for each of these
RUNS = 4 * SEQUENCES + OTHERS * FEW


class LargestRow(TypedDict):
    """The largest |activation| in what one layer is given, or the model returns, and where it is."""

    layer: int
    size: float
    channel: int
    position: int
    over_median: float


class OneNumber(TypedDict):
    """Loss added by holding one channel at one position, before `layer` alone: at zero, and at its mean over texts.

    It is the activation that is largest on average, where it first has half of its size. `others` are costs of
    setting other channels there to zero, on the first `few` sequences; `few_zeroed` is its own on these.
    """

    layer: int
    channel: int
    position: int
    unit: str
    zeroed: running.WindowMean
    at_mean: running.WindowMean
    sequences: int
    length: int  # tokens of each
    few: int
    few_zeroed: float
    others: list[float]


def one_number(run: Run, windows: Windows, sums: Sequence[Float[Array, "n d"]]) -> OneNumber:
    """Measure it; `sums` are of |activations| over windows, for each layer in what it is given."""
    arch = run.architecture
    n = min(LENGTH, windows.ids.shape[1]) if arch.causal else windows.ids.shape[1]
    layer, position, channel = _place([of_layer[:n] for of_layer in sums])
    count = run.affordable(SEQUENCES, n, RUNS / SEQUENCES)
    texts = running.first_windows(windows, count, n)
    mean = run.stage_means(texts.ids)[layer, position, channel]

    def added(loss: WindowLoss, base: Float[Array, " windows"], held: int, value: float) -> Float[Array, " windows"]:
        values = np.full((arch.n_layer + 1, n, 1), np.nan)
        values[layer, position] = value
        with run.held([held], values, last=False):
            return loss.per_window() - base

    loss, few = run.loss(texts), run.loss(running.first_windows(windows, FEW, n))
    base, few_base = loss.per_window(), few.per_window()
    zeroed = added(loss, base, channel, 0.0)
    drawn = np.random.default_rng([running.SEED, 6]).permutation(arch.d_model)
    others = drawn[drawn != channel][: run.affordable(OTHERS, n, FEW)].tolist()
    return OneNumber(
        layer=layer,
        channel=channel,
        position=position,
        unit=loss.unit,
        zeroed=running.mean_over_windows(zeroed, texts.files),
        at_mean=running.mean_over_windows(added(loss, base, channel, mean), texts.files),
        sequences=len(base),
        length=n,
        few=len(few_base),
        few_zeroed=float(zeroed[: len(few_base)].mean()),
        others=[float(added(few, few_base, other, 0.0).mean()) for other in others],
    )


def _place(sums: Sequence[Float[Array, "n d"]]) -> tuple[int, int, int]:
    """Return where the largest mean activation is: the first layer with half of it, its position and channel."""
    largest = max(sums, key=lambda of_layer: float(of_layer.max()))
    position, channel = (int(i) for i in np.unravel_index(np.argmax(largest), largest.shape))
    half = largest[position, channel] / 2
    return next(i for i, of_layer in enumerate(sums) if of_layer[position, channel] >= half), position, channel
