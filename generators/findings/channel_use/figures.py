from functools import partial
from typing import Any

import numpy as np

from generators.drawing import style
from generators.findings.channel_use.measure import ChannelUseMetrics, ChannelUseRow, SweptRow, ValueRow, Why
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, numbers

LABELS: dict[Why, str] = {"frequency": "frequency", "ln2": "ln2", "position": "position"}
LINEAR_UP_TO = 0.001  # the cost axis is linear below this, so it can show 0 and negative values


def figures(measured: Measurements[ChannelUseMetrics]) -> list[Figure]:
    metrics = measured.metrics
    draw = partial(draw_costs, metrics["swept"], metrics["channels"], metrics["unit"])
    shown = [Figure("channel-cost", "Cost of fixing a channel at its mean", draw)]
    if metrics["values"]:
        draw = partial(draw_values, metrics["values"])
        shown.append(Figure("channel-values", "What the channels' values correlate with", draw))
    return shown


def draw_costs(swept: list[SweptRow], rows: list[ChannelUseRow], unit: str) -> Any:
    ordered = sorted(swept, key=lambda row: -row["cost"])
    with_rho = any(row["unigram_rho"] is not None for row in swept)
    figure = style.canvas(width=7.6 if with_rho else 5.0, height=3.6)
    axes = figure.subplots(1, 1 + with_rho, sharey=True, squeeze=False)[0]
    costs = numbers(ordered, "cost")
    across = [np.arange(1.0, len(ordered) + 1)]
    if with_rho:
        across.append(numbers(ordered, "unigram_rho"))
    names = {row["channel"]: f"{LABELS[row['why']]}: {row['channel']}" for row in rows}
    for ax, places in zip(axes, across, strict=True):
        ax.plot(places, costs, "o", ms=3, color=style.COLOURS[0])
        for place, row in zip(places, ordered, strict=True):
            if row["channel"] in names:
                ax.plot(place, row["cost"], "o", ms=5, color=style.COLOURS[1])
                ax.annotate(
                    names[row["channel"]], (place, row["cost"]), xytext=(4, 4), textcoords="offset points", fontsize=7
                )
        ax.axhline(0, color=style.INK, lw=0.8, alpha=0.6)
    axes[0].set_yscale("symlog", linthresh=LINEAR_UP_TO)
    axes[0].set_xscale("log")
    axes[0].set(xlabel="rank of the channel", ylabel=f"cost ({unit})")
    if with_rho:
        axes[1].axvline(0, color=style.INK, lw=0.8)
        axes[1].set_xlabel("change of log-probability\nwith log-frequency (ranks)")
    return figure


def draw_values(rows: list[ValueRow]) -> Any:
    figure, ax = style.plot(width=6.8, height=3.2)
    for index, why in enumerate(dict.fromkeys(row["why"] for row in rows)):
        these = [row for row in rows if row["why"] == why]
        layers = [row["layer"] for row in these]
        label = f"{LABELS[why]}: {these[0]['channel']}"
        ax.plot(layers, numbers(these, "token_there"), "o-", ms=4, lw=1.2, color=style.COLOURS[index], label=label)
        ax.plot(layers, numbers(these, "next_token"), "o:", ms=3, lw=1.2, color=style.COLOURS[index])
    ax.axhline(0, color=style.INK, lw=0.8, alpha=0.6)
    ax.set_ylim(-1, 1)
    style.whole_numbers(ax.xaxis)
    ax.set(xlabel="into layer", ylabel="correlation with log-frequency\n(dotted: of the next token)")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
