from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.induction.measure import InductionHeadRow, InductionMetrics
from generators.findings.measured import Measurements

MOST_DRAWN = 4


def figures(measured: Measurements[InductionMetrics]) -> list[Figure]:
    metrics = measured.metrics
    shown = [
        Figure("induction-heads", "Heads that copy", partial(draw_heads, metrics["heads"])),
        Figure(
            "induction-distances",
            "Attention on tokens seen before, by distance",
            partial(draw_distances, metrics["heads"], measured.arrays["by_distance"], metrics["ran"]["half"]),
        ),
    ]
    if metrics["feeding"] is not None:
        shown.append(
            Figure("induction-feeding", "What feeds the copying head", partial(draw_drops, metrics["heads"]))
        )
    return shown


def draw_heads(rows: list[InductionHeadRow]) -> Any:
    layers, heads = rows[-1]["layer"] + 1, rows[-1]["head"] + 1
    figure = style.canvas(width=6.4, height=0.8 + 2.2 * max(0.5, min(1.6, layers / heads)))
    axes = figure.subplots(1, 2, sharey=True)
    for ax, key, title in zip(axes, ("copying", "duplicate"), ("what followed", "the same token"), strict=True):
        values = np.array([row[key] for row in rows]).reshape(layers, heads)  # type: ignore[literal-required]
        image = ax.imshow(values, cmap=style.SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
        ax.set(title=title, xlabel="head")
        style.whole_numbers(ax.xaxis, ax.yaxis)
        ax.grid(False)
    axes[0].set_ylabel("layer")
    figure.colorbar(image, ax=axes, label="attention, second half")
    return figure


def draw_distances(rows: list[InductionHeadRow], by_distance: Float[Array, "heads distances"], half: int) -> Any:
    figure, ax = style.plot(width=6.4, height=3.2)
    chosen = sorted(range(len(rows)), key=lambda i: -rows[i]["copying"])[:MOST_DRAWN]
    offsets = np.arange(1, by_distance.shape[1])
    for place, index in enumerate(chosen):
        name = f"L{rows[index]['layer']}H{rows[index]['head']}"
        ax.plot(offsets, by_distance[index, 1:], lw=1.1, color=style.COLOURS[place], label=name)
    ax.axvline(half - 1, color=style.INK, lw=0.8, ls=":")
    ax.set(xlabel="tokens back from the query", ylabel="mean attention, second half")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_drops(rows: list[InductionHeadRow]) -> Any:
    figure, ax = style.plot(width=4.8, height=3.4)
    for row in rows:
        if row["drop"] is None:
            continue
        ax.plot(row["previous"], row["drop"], "o", ms=5, color=style.COLOURS[0])
        name, place = f"L{row['layer']}H{row['head']}", (row["previous"], row["drop"])
        ax.annotate(name, place, xytext=(4, 3), textcoords="offset points", fontsize=7)
    ax.axhline(0, color=style.INK, lw=0.8, alpha=0.6)
    ax.set(xlabel="attention to the previous token", ylabel="share of the copying attention\nlost while silenced")
    return figure
