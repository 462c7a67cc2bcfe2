from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.induction.measure import InductionHeadRow, InductionMetrics
from generators.findings.measured import Measurements, numbers

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
    shape = rows[-1]["layer"] + 1, rows[-1]["head"] + 1
    columns = (("what followed", "copying"), ("the same token", "duplicate"))
    maps = [(title, numbers(rows, key).reshape(shape)) for title, key in columns]
    return style.head_maps(maps, 6.4, 2.2, "attention, second half")


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
