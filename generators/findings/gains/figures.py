from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.gains.measure import GainsMetrics
from generators.findings.measured import Measurements
from generators.maths.channels import ConsistentChannel

COLUMNS = 6
MOST_PANELS = 12  # deeper models show evenly spaced layers


def figures(measured: Measurements[GainsMetrics]) -> list[Figure]:
    found = measured.metrics["consistent_channel"]["ln2"]
    title = "Gains of ln2, the norm before the MLP"
    return [Figure("gains-ln2", title, partial(draw_gains, measured.arrays, found))]


def draw_gains(arrays: dict[str, Array], found: ConsistentChannel | None) -> Any:
    from matplotlib.ticker import NullFormatter

    gains, layers = arrays["ln2_gain"], arrays["ln2_layers"]
    drawn = np.linspace(0, len(gains) - 1, min(len(gains), MOST_PANELS)).round().astype(int)
    gains, layers = gains[drawn], layers[drawn]
    figure, axes = style.panels(len(gains), COLUMNS, (1.8, 1.8), (0.6, 0.5), sharex=True, sharey=True)
    std = arrays.get("position_std", np.zeros(1))
    varied = (std > 0).any()
    x = np.where(std > 0, std, np.nan) if varied else np.arange(gains.shape[1])
    for panel, ax in enumerate(axes):
        ax.plot(x, gains[panel], ".", ms=2.5, alpha=0.6, color=style.COLOURS[0], rasterized=True)
        if found and len(found["tied"]) == 1:
            channel = found["channel"]
            ax.plot(x[channel], gains[panel][channel], "o", ms=8, mfc="none", color=style.COLOURS[1])
        if varied:
            ax.set_xscale("log")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.tick_params(labelbottom=panel + COLUMNS >= len(gains))
        ax.set_title(f"layer {layers[panel]}")
    figure.supxlabel("position std of the channel" if varied else "channel")
    figure.supylabel("|gain|")
    return figure
