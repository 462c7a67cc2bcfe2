from collections.abc import Sequence
from typing import Any

import numpy as np

from generators.drawing import style
from generators.drawing.interactive import Rows

COLUMNS = 5
WIDTH, HEIGHT = 1.75, 1.85  # inches per picture
BAR = 3.0  # inches
SINGLE = 2.6  # inches, for a single picture


def draw_small_multiples(curves: Sequence[Rows]) -> Any:
    columns = min(COLUMNS, len(curves))
    rows = -(-len(curves) // columns)
    figure = style.canvas(width=WIDTH * columns + 0.9, height=HEIGHT * rows)
    last = max(curve.first + len(curve.points) for curve in curves) - 1
    axes = []
    for place, curve in enumerate(curves):
        ax = figure.add_subplot(rows, columns, place + 1, projection="3d")
        positions = np.arange(curve.first, curve.first + len(curve.points))
        dots = style.curve_3d(ax, curve.points, positions, with_bar=False)
        dots.set_clim(0, last)
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.set_label_text("")  # the caption has these words; small pictures have no room
        ax.set_title(curve.name, fontsize=8.5)
        axes.append(ax)
    style.position_bar(dots, axes, shrink=min(0.8, BAR / (HEIGHT * rows)), aspect=25)
    return figure


def draw_single(curve: Rows, *, grey: bool = False) -> Any:
    from mpl_toolkits.mplot3d import proj3d

    figure = style.canvas(width=SINGLE, height=SINGLE)
    ax = figure.add_subplot(1, 1, 1, projection="3d")
    dots = style.curve_3d(ax, curve.points, np.arange(curve.first, curve.first + len(curve.points)), with_bar=False)
    if grey:
        dots.set(array=None, color=style.TOKEN_GREY)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_label_text("")
    if not grey:
        last = curve.first + len(curve.points) - 1
        named = ((0, f"position {curve.first}", (0.02, 0.04)), (-1, f"position {last:,}, the last", (0.42, 0.96)))
        for row, name, place in named:  # in corners, where no points hide them
            x, y, _ = proj3d.proj_transform(*curve.points[row], ax.get_proj())
            line = {"arrowstyle": "-", "lw": 0.5, "color": style.INK}
            ax.annotate(name, (x, y), place, textcoords="axes fraction", fontsize=8.5, arrowprops=line)
    return figure
