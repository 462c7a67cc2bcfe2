from functools import partial
from typing import Any

from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.frequency.measure import FrequencyMetrics
from generators.findings.measured import Measurements


def figures(measured: Measurements[FrequencyMetrics]) -> list[Figure]:
    if measured.metrics["proxy"]:
        return []
    channel, contrast = (measured.metrics[name]["channel"] for name in ("frequency_channel", "contrast_channel"))
    draw = partial(draw_channels, measured.arrays, channel, contrast)
    return [Figure("frequency-channel", f"Channel {channel} beside an ordinary one", draw)]


def draw_channels(arrays: dict[str, Array], channel: int, contrast: int) -> Any:
    figure = style.canvas(*style.ANSWER)
    axes = figure.subplots(2, 3, sharex="col", sharey="row")
    across = (("token_log_frequency", "log-frequency"), ("token_norm", "norm"), ("token_id", "token index"))
    for row, (name, number) in enumerate((("token_channel", channel), ("token_contrast", contrast))):
        for column, (key, label) in enumerate(across):
            ax = axes[row, column]
            ax.plot(arrays[key], arrays[name], ".", ms=2, alpha=0.5, color=style.COLOURS[row], rasterized=True)
            if row == 1:
                ax.set_xlabel(label)
                ax.locator_params(axis="x", nbins=3)
            if column == 0:
                ax.set_ylabel(f"channel {number}")
    return figure
