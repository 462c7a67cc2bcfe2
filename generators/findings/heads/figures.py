from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.head_grid import ByOffset, Grid, HeadGrid
from generators.findings.contract import Figure
from generators.findings.heads.measure import POSITIONS, HeadRow, HeadsMetrics
from generators.findings.measured import Measurements, numbers

KERNELS = "kernel-map"  # figure of the same heads from weights alone, if the model has one
COLUMNS = (("by positions alone", "by_position_alone"), ("on text", "on_text"), ("in groups of ten", "in_groups"))
MOST_DRAWN = 16  # heads drawn by offset, strongest previous-token heads first


def figures(measured: Measurements[HeadsMetrics]) -> list[Figure]:
    rows = measured.metrics["heads"]
    shown = [
        Figure(
            "heads-on-text",
            "Every head's weight on the previous token",
            partial(draw_grid, rows),
            partial(choose_head, rows, measured.arrays),
        ),
        Figure("heads-by-offset", "Where heads attend on text", partial(draw_offsets, rows, measured.arrays)),
    ]
    if measured.metrics["forecast"] is not None:
        shown.append(Figure("heads-foretold", "By positions alone and on text", partial(draw_forecast, rows)))
    return shown


def draw_grid(rows: list[HeadRow]) -> Any:
    maps = [(grid.name, grid.values) for grid in _grids(rows)]
    return style.head_maps(maps, 2.5 * len(maps) + 1.0, 2.1, "weight on the\nprevious token")


def _grids(rows: list[HeadRow]) -> list[Grid]:
    shape = rows[-1]["layer"] + 1, rows[-1]["head"] + 1
    columns = [(title, numbers(rows, key)) for title, key in COLUMNS]
    return [Grid(title, values.reshape(shape)) for title, values in columns if np.isfinite(values).all()]


def choose_head(rows: list[HeadRow], arrays: dict[str, Array]) -> HeadGrid:
    grids = sorted(_grids(rows), key=lambda grid: grid.name != "on text")
    lines = (ByOffset("on text", arrays["offsets"], arrays["attention"][0]),)
    return HeadGrid("weight on the previous token", tuple(grids), lines, beside=KERNELS)


def draw_offsets(rows: list[HeadRow], arrays: dict[str, Array]) -> Any:
    offsets, attention = arrays["offsets"], arrays["attention"]
    chosen = sorted(range(len(rows)), key=lambda i: -rows[i]["on_text"])[:MOST_DRAWN]
    figure, axes = style.panels(len(chosen), 4, (2.0, 1.4), (0.6, 0.8), sharex=True, sharey=True)
    for ax, index in zip(axes, chosen, strict=True):
        for way, each in enumerate(attention):
            ax.plot(offsets, each[index], "-:-"[way], lw=1.2, color=style.COLOURS[way], label=POSITIONS[way])
        ax.set_title(f"L{rows[index]['layer']}H{rows[index]['head']}")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, [f"positions {name}" for name in names], loc="outside upper center", ncols=len(names))
    figure.supxlabel("offset: tokens back from the query")
    figure.supylabel("mean attention")
    return figure


def draw_forecast(rows: list[HeadRow]) -> Any:
    figure, ax = style.plot(width=4.6, height=4.0)
    x, y = numbers(rows, "by_position_alone"), numbers(rows, "on_text")
    dots = ax.scatter(x, y, c=numbers(rows, "layer"), cmap=style.SEQUENTIAL, s=22, linewidths=0)
    ax.plot([0, 1], [0, 1], lw=0.8, color=style.INK, alpha=0.5)
    ax.set(xlabel="weight on the previous token, by positions alone", ylabel="weight on the previous token, on text")
    style.whole_numbers(figure.colorbar(dots, ax=ax, label="layer").ax.yaxis)
    return figure
