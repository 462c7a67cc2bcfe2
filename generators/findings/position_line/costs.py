import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run
from generators.findings.running import SEED, WindowMean, first_windows, mean_over_windows

WINDOWS = 32
SWEPT_WINDOWS = 4  # windows for other channels, whose costs are compared only with one another
OTHERS = 99
FEWEST_OTHERS = 99  # needed for a rank as rare as 1 in 100
CHANNEL_SEED = 126


class ChannelCost(TypedDict):
    """Loss that holding one channel at its mean adds, over windows and positions, and at its mean per position.

    `swept` is the first of these on few windows, `others` are other channels there, drawn with a seed or all.
    """

    channel: int
    unit: str
    at_its_mean: WindowMean
    per_position: WindowMean
    swept: float
    others: list[float]


def cost_of(run: Run, channel: int, d: int, last: bool) -> ChannelCost:
    """Hold a channel, and others beside it; `last` also before the final norm, which some models don't have."""
    windows = run.windows(WINDOWS, SEED, 4)
    loss = run.loss(windows)
    base = loss.per_window()
    by_position = run.stage_means(windows.ids)
    means = by_position.mean(axis=1)

    def extra(values: Float[Array, "stages ... channels"]) -> Float[Array, " windows"]:
        with run.held([channel], values, last=last):
            return loss.per_window() - base

    flat, exact = extra(means[:, [channel]]), extra(by_position[:, :, [channel]])
    few = first_windows(windows, SWEPT_WINDOWS)
    count = run.affordable(OTHERS, few.ids.shape[1], len(few.ids))
    drawn = np.random.default_rng(CHANNEL_SEED).permutation(d).tolist()
    swept = [channel, *[other for other in drawn if other != channel][:count]]
    few_loss = run.loss(few)
    few_base = few_loss.per_window().mean()
    costs = []
    for other in swept:
        with run.held([other], means[:, [other]], last=last):
            costs.append(float(few_loss.per_window().mean() - few_base))
    return ChannelCost(
        channel=channel,
        unit=loss.unit,
        at_its_mean=mean_over_windows(flat, windows.files),
        per_position=mean_over_windows(exact, windows.files),
        swept=costs[0],
        others=costs[1:],
    )
