"""How a cost grows with sizes: one small picture for each thing that gets larger, both axes logarithmic."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from generators.drawing import style

COLUMNS = 2
WIDTH, HEIGHT = 2.6, 2.4  # inches, of a picture
TICKS = (1.0, 2.0, 5.0)  # in every decade
LINE = 50  # points of a fitted line


@dataclass(frozen=True)
class Grown:
    """What was measured along one axis, and the exponent fitted to it; None where there is too little to fit."""

    title: str
    at: tuple[float, ...]
    costs: tuple[float, ...]
    exponent: float | None


def draw_growth(axes: Sequence[Grown], unit: str) -> Any:
    """Return a figure of what every axis costs, with the fitted power of its size as a line.

    Args:
        axes: at least one.
        unit: of the costs.
    """
    columns = min(COLUMNS, len(axes))
    rows = -(-len(axes) // columns)
    figure = style.canvas(width=WIDTH * columns, height=HEIGHT * rows)
    for place, one in enumerate(axes):
        ax = figure.add_subplot(rows, columns, place + 1)
        _draw(ax, one)
        if place % columns == 0:
            ax.set_ylabel(unit)
    return figure


def _draw(ax: Any, one: Grown) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.plot(one.at, one.costs, "o", ms=5, color=style.COLOURS[0])
    if one.exponent is not None:
        along, ends = np.geomspace(one.at[0], one.at[-1], LINE), np.log(one.at)
        middle = np.mean(np.log(one.costs)) - one.exponent * ends.mean()
        ax.plot(along, np.exp(middle) * along**one.exponent, color=style.COLOURS[1], lw=1.5)
    power = "" if one.exponent is None else f", exponent {one.exponent:.2f}".replace("-", "−")
    ax.set_title(f"{one.title}{power}", fontsize=9)
    ax.set_xticks(one.at, [_brief(at) for at in one.at])
    low, high = min(one.costs), max(one.costs)
    ax.set_ylim(low / 2, high * 2)
    ax.yaxis.set_major_locator(LogLocator(subs=TICKS))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _brief(value)))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_formatter(NullFormatter())
    ax.minorticks_off()


def _brief(value: float) -> str:
    """Return a size in few signs: 64k for 64,000."""
    return f"{value / 1000:g}k" if value >= 10_000 else f"{value:g}"
