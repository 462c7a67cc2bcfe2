from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.channels.measure import ChannelsMetrics
from generators.findings.contract import Figure
from generators.findings.measured import Measurements


def figures(measured: Measurements[ChannelsMetrics]) -> list[Figure]:
    std, k = np.array(measured.metrics["position_std"]), len(measured.metrics["position_channels"])
    title = "How much each channel varies with position"
    return [Figure("channel-histogram", title, partial(draw_histogram, std, k))]


def draw_histogram(std: Float[Array, " d"], k: int) -> Any:
    figure, ax = style.plot()
    log_std = np.log10(std[std > 0])
    ax.hist(log_std, bins=60, color=style.COLOURS[0])
    if k:
        edge = np.sort(log_std)[::-1][k - 1 : k + 1].mean()
        ax.axvline(edge, color=style.COLOURS[1], ls="--", label=f"{k} position channels to the right")
        ax.legend()
    ax.set(xlabel="log10 of the channel's standard deviation over positions", ylabel="channels")
    return figure
