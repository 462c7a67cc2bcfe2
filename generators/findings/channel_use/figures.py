from functools import partial
from typing import Any

import numpy as np

from generators.drawing import style
from generators.findings.channel_use.measure import ChannelUseMetrics, ChannelUseRow, SweptRow
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, numbers

LINEAR_UP_TO = 0.001  # the cost axis is linear below this, so it can show 0 and negative values


def figures(measured: Measurements[ChannelUseMetrics]) -> list[Figure]:
    metrics = measured.metrics
    draw = partial(draw_costs, metrics["swept"], metrics["channels"], metrics["unit"])
    return [Figure("channel-cost", "Cost of fixing a channel at its mean", draw)]


def draw_costs(swept: list[SweptRow], rows: list[ChannelUseRow], unit: str) -> Any:
    ordered = sorted(swept, key=lambda row: -row["cost"])
    with_rho = any(row["unigram_rho"] is not None for row in swept)
    figure = style.canvas(*style.ANSWER)
    axes = figure.subplots(1, 1 + with_rho, sharey=True, squeeze=False)[0]
    costs = numbers(ordered, "cost")
    across = [np.arange(1.0, len(ordered) + 1), numbers(ordered, "unigram_rho")][: 1 + with_rho]
    names = {row["channel"]: f"{row['why']}: {row['channel']}" for row in rows}
    for ax, places in zip(axes, across, strict=True):
        ax.plot(places, costs, "o", ms=3, color=style.COLOURS[0])
        for place, row in zip(places, ordered, strict=True):
            if row["channel"] in names:
                ax.plot(place, row["cost"], "o", ms=5, color=style.COLOURS[1])
                ax.annotate(
                    names[row["channel"]],
                    (place, row["cost"]),
                    xytext=(4, 4),
                    textcoords="offset points",
                    fontsize=8.5,
                )
        ax.axhline(0, color=style.INK, lw=0.8, alpha=0.6)
    axes[0].set_yscale("symlog", linthresh=LINEAR_UP_TO)
    axes[0].set_xscale("log")
    axes[0].set(xlabel="rank of the channel", ylabel=f"cost ({unit})")
    if with_rho:
        axes[1].axvline(0, color=style.INK, lw=0.8)
        axes[1].set_xlabel("change of log-probability\nwith log-frequency (ranks)")
    return figure
