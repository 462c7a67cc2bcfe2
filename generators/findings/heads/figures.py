"""Every head's attention by offset on text, and the previous token's share by positions alone and on text."""

from functools import partial
from typing import Any, cast

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure, Measurements
from generators.findings.heads.measure import POSITIONS, HeadRow, Metrics

MOST_DRAWN = 16  # heads by offset, those that look most at the previous token first


def figures(measured: Measurements[Metrics]) -> list[Figure]:
    """Return attention by offset, the grid of heads, and, where there is a kernel, how well it foretells."""
    rows = measured.metrics["heads"]
    shown = [
        Figure("heads-on-text", "Every head's weight on the previous token", partial(draw_grid, rows)),
        Figure("heads-by-offset", "Where heads look on text", partial(draw_offsets, rows, measured.arrays)),
    ]
    if measured.metrics["forecast"] is not None:
        shown.append(
            Figure("heads-foretold", "By positions alone and on text", partial(draw_forecast, rows)),
        )
    return shown


def draw_grid(rows: list[HeadRow]) -> Any:
    """Draw a cell for each head: by positions alone where that is known, on text, and in groups of ten."""
    columns = [("by positions alone", "by_position_alone"), ("on text", "on_text"), ("in groups of ten", "in_groups")]
    drawn = [(title, key) for title, key in columns if np.isfinite(_column(rows, key)).all()]
    layers, heads = rows[-1]["layer"] + 1, rows[-1]["head"] + 1
    figure = style.canvas(width=2.5 * len(drawn) + 1.0, height=0.8 + 2.1 * max(0.5, min(1.6, layers / heads)))
    axes = figure.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
    for ax, (title, key) in zip(axes, drawn, strict=True):
        values = _column(rows, key).reshape(layers, heads)
        image = ax.imshow(values, cmap=style.SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
        ax.set_title(title)
        ax.set_xlabel("head")
        ax.grid(False)
    axes[0].set_ylabel("layer")
    figure.colorbar(image, ax=axes, label="weight on the previous token")
    return figure


def draw_offsets(rows: list[HeadRow], arrays: dict[str, Array]) -> Any:
    """Draw the mean attention by offset of the heads that look most at the previous token."""
    offsets, attention = arrays["offsets"], arrays["attention"]
    chosen = sorted(range(len(rows)), key=lambda i: -rows[i]["on_text"])[:MOST_DRAWN]
    columns = min(4, len(chosen))
    figure = style.canvas(width=2.0 * columns + 0.6, height=1.4 * -(-len(chosen) // columns) + 0.8)
    axes = figure.subplots(-(-len(chosen) // columns), columns, sharex=True, sharey=True, squeeze=False)
    for ax in axes.flat[len(chosen) :]:
        ax.set_visible(False)
    for ax, index in zip(axes.flat, chosen, strict=False):
        for way, each in enumerate(attention):
            ax.plot(offsets, each[index], "-:-"[way], lw=1.2, color=style.COLOURS[way], label=POSITIONS[way])
        ax.set_title(f"L{rows[index]['layer']}H{rows[index]['head']}")
    handles, names = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, [f"positions {name}" for name in names], loc="outside upper center", ncols=len(names))
    figure.supxlabel("offset: tokens back from the query")
    figure.supylabel("mean attention")
    return figure


def draw_forecast(rows: list[HeadRow]) -> Any:
    """Draw one dot per head: the weight on the previous token by positions alone, and on text."""
    figure = style.canvas(width=4.6, height=4.0)
    ax = figure.add_subplot()
    layers = np.array([row["layer"] for row in rows])
    x = np.array([row["by_position_alone"] for row in rows], float)
    y = np.array([row["on_text"] for row in rows])
    dots = ax.scatter(x, y, c=layers, cmap=style.SEQUENTIAL, s=22, linewidths=0)
    ax.plot([0, 1], [0, 1], lw=0.8, color=style.INK, alpha=0.5)
    ax.set_xlabel("weight on the previous token, by positions alone")
    ax.set_ylabel("weight on the previous token, on text")
    figure.colorbar(dots, ax=ax, label="layer")
    return figure


def _column(rows: list[HeadRow], key: str) -> Float[Array, " heads"]:
    """Return one number of every head, NaN where it is None."""
    return np.array([cast(dict[str, float | None], row)[key] for row in rows], np.float64)
