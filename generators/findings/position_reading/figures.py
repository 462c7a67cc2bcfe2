from functools import partial
from typing import Any

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.position_reading.claims import needed_strength
from generators.findings.position_reading.measure import PositionReadingMetrics


def figures(measured: Measurements[PositionReadingMetrics]) -> list[Figure]:
    title = "How strongly each head reads positions"
    return [Figure("position-reading", title, partial(draw_strengths, measured.metrics))]


def draw_strengths(metrics: PositionReadingMetrics) -> Any:
    figure, ax = style.plot(width=max(4.6, 0.3 * metrics["n_heads"] + 2.6), height=2.8)
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
