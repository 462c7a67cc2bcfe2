"""What holding each channel costs, and how the changed predictions go with frequency."""

from functools import partial
from typing import Any

import numpy as np

from generators.drawing import style
from generators.findings.channel_use.measure import ChannelUseMetrics, ChannelUseRow, ValueRow, Why
from generators.findings.contract import Figure
from generators.findings.measured import Measurements

LABELS: dict[Why, str] = {"frequency": "frequency", "ln2": "ln2", "position": "position", "drawn": "others"}


def figures(measured: Measurements[ChannelUseMetrics]) -> list[Figure]:
    """Return costs by channel, and, where frequencies are known, values by layer."""
    metrics = measured.metrics
    draw = partial(draw_costs, metrics["channels"], metrics["unit"])
    shown = [Figure("channel-cost", "What it costs to hold a channel at its mean", draw)]
    if metrics["values"]:
        draw = partial(draw_values, metrics["values"])
        shown.append(Figure("channel-values", "What the channels' values go with", draw))
    return shown


def draw_costs(rows: list[ChannelUseRow], unit: str) -> Any:
    """Draw costs with 95 % intervals, dearest first, and beside them what the change goes with."""
    ordered = sorted(rows, key=lambda row: -row["cost"])
    with_rho = any(row["unigram_rho"] is not None for row in rows)
    figure = style.canvas(width=7.6 if with_rho else 5.0, height=4.6)
    axes = figure.subplots(1, 1 + with_rho, sharey=True, squeeze=False)[0]
    places = np.arange(len(ordered))
    colours = [style.COLOURS[0] if row["why"] == "drawn" else style.COLOURS[1] for row in ordered]
    costs = np.array([row["cost"] for row in ordered])
    spread = np.abs(np.array([[row["low"] for row in ordered], [row["high"] for row in ordered]]) - costs)
    axes[0].barh(places, costs, xerr=spread, color=colours, error_kw={"lw": 1, "ecolor": style.INK})
    axes[0].set_yticks(places, [_name(row) for row in ordered])
    axes[0].tick_params(axis="y", labelsize=7)
    axes[0].invert_yaxis()
    axes[0].set_xlabel(f"cost ({unit})")
    if with_rho:
        rhos = [row["unigram_rho"] or 0.0 for row in ordered]
        axes[1].barh(places, rhos, color=colours)
        axes[1].axvline(0, color=style.INK, lw=0.8)
        axes[1].set_xlabel("change of log-probability\nwith log-frequency (ranks)")
    return figure


def _name(row: ChannelUseRow) -> str:
    return f"{row['channel']}" if row["why"] == "drawn" else f"{LABELS[row['why']]}: {row['channel']}"


def draw_values(rows: list[ValueRow]) -> Any:
    """Draw correlations by layer with the token that is there (solid) and with the next (dotted)."""
    figure, ax = style.plot(width=6.8, height=3.2)
    for index, why in enumerate(dict.fromkeys(row["why"] for row in rows)):
        these = [row for row in rows if row["why"] == why]
        layers = [row["layer"] for row in these]
        label = f"{LABELS[why]}: {these[0]['channel']}"
        there = np.array([row["token_there"] for row in these], float)
        after = np.array([row["next_token"] for row in these], float)
        ax.plot(layers, there, "o-", ms=4, lw=1.2, color=style.COLOURS[index], label=label)
        ax.plot(layers, after, "o:", ms=3, lw=1.2, color=style.COLOURS[index])
    ax.axhline(0, color=style.INK, lw=0.8, alpha=0.6)
    ax.set_ylim(-1, 1)
    style.whole_numbers(ax.xaxis)
    ax.set(xlabel="into layer", ylabel="correlation with log-frequency\n(dotted: of the next token)")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
