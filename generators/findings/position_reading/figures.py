from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.position_reading.claims import needed_strength
from generators.findings.position_reading.measure import PositionReadingMetrics

DRAWN = 4  # heads with their scores drawn


def figures(measured: Measurements[PositionReadingMetrics]) -> list[Figure]:
    metrics, arrays = measured.metrics, measured.arrays
    return [
        Figure("position-reading", "How strongly each head reads positions", partial(draw_strengths, metrics)),
        Figure("position-scores", "Score by distance, from positions alone", partial(draw_scores, metrics, arrays)),
    ]


def strongest(metrics: PositionReadingMetrics) -> list[int]:
    ranked = sorted(metrics["heads"], key=lambda row: -(row["times_median"] or 0))
    return [row["head"] for row in ranked[:DRAWN]]


def draw_strengths(metrics: PositionReadingMetrics) -> Any:
    figure, ax = style.plot(width=max(4.6, 0.3 * metrics["n_heads"] + 2.6), height=3.2)
    rows = [row for row in metrics["heads"] if row["times_median"]]
    chance = metrics["chance"]["times_median"]
    if chance is not None:
        ax.axhspan(1, chance["limit"], color=style.INK, alpha=0.1, lw=0)
        ax.axhline(needed_strength(chance["median"]), ls="--", lw=1, color=style.INK)
    dots = ax.scatter(
        [row["head"] for row in rows],
        [row["times_median"] for row in rows],
        c=[row["in_plane"] for row in rows],
        cmap=style.SEQUENTIAL,
        vmin=0,
        vmax=1,
        s=45,
        linewidths=0.6,
        edgecolors=style.INK,
        zorder=3,
    )
    ax.set(yscale="log", xlabel="head of layer 0", ylabel="strength, times the median head")
    style.whole_numbers(ax.xaxis)
    figure.colorbar(dots, ax=ax, label="share in the main plane")
    return figure


def draw_scores(metrics: PositionReadingMetrics, arrays: dict[str, Array]) -> Any:
    figure, ax = style.plot(width=6.4, height=3.2)
    offsets, profiles = arrays["profile_offsets"], arrays["profiles"]
    for colour, head in zip(style.COLOURS, strongest(metrics), strict=False):
        largest = float(np.abs(profiles[head]).max())
        if largest:
            ax.plot(offsets, profiles[head] / largest, lw=1.4, color=colour, label=f"L0H{head}")
    ax.axhline(0, color=style.INK, lw=0.8, alpha=0.6)
    ax.set(xlabel="tokens from the query back to the key", ylabel="mean score over its largest")
    ax.legend()
    return figure
