"""The house style of plots: one palette, drawn once and written as a light and a dark SVG.

Colours are Okabe and Ito's (safe for colour-blind readers), in tones that stand on white and on slate. Text and
lines are drawn in `INK`; for the dark picture that one colour is replaced. Where many marks are drawn, the
drawing code asks for `rasterized=True`, and they go into the SVG as one compact image.
"""

import io
import re
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Real
from numpy import ndarray as Array

COLOURS = ("#1f77b4", "#d55e00", "#1a936f", "#b8559b", "#b98900", "#6b6ecf")
INK = "#2b2f36"
INK_DARK = "#d5d8de"
PAGE = "#ffffff"
PAGE_DARK = "#1e2029"  # Material's slate
POSITION_STOPS = ("#3b5bdb", "#1098ad", "#d9a514", "#c92a2a")  # first position to last
CYCLIC_STOPS = ("#3b5bdb", "#1a936f", "#d9a514", "#b8559b", "#3b5bdb")  # one full cycle
DIVERGING_ENDS = ("#2f80c8", "#d6503c")  # below, above; in between the page shows through
SEQUENTIAL = "viridis"
TOKEN_GREY = "#878d98"  # tokens behind positions: visible on white and on slate
ANSWER = (5.9, 2.8)  # inches: what a model's page gives to the figure of an answer
RASTER_DPI = 100  # for raster images inside an SVG, which pages show at about 96


@cache
def house_style() -> Any:
    from cycler import cycler

    return {
        "svg.fonttype": "none",
        "path.simplify_threshold": 0.25,  # pixels a line may be off
        "svg.hashsalt": "helix-atlas",
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "axes.titlesize": 10,
        "axes.labelsize": 10,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "axes.titley": 1.0,  # nothing lies above the axes
        "axes.facecolor": "none",
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycler(color=COLOURS),
        "figure.facecolor": "none",
        "grid.color": INK,
        "grid.alpha": 0.15,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "legend.labelcolor": INK,
        "savefig.facecolor": "none",
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "xtick.labelsize": 9,
        "ytick.labelsize": 9,
    }


def canvas(width: float, height: float) -> Any:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update(house_style())
    return Figure(figsize=(width, height), layout="constrained", dpi=RASTER_DPI)


def plot(width: float = ANSWER[0], height: float = ANSWER[1]) -> tuple[Any, Any]:
    """Return an empty figure in house style and its axes; sizes in inches."""
    figure = canvas(width, height)
    return figure, figure.add_subplot()


def panels(count: int, columns: int, size: tuple[float, float], more: tuple[float, float], **shared: Any) -> Any:
    """Return a figure of `count` panels in rows, and the panels; `size` is per panel, `more` the margins."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = canvas(size[0] * columns + more[0], size[1] * rows + more[1])
    axes = figure.subplots(rows, columns, squeeze=False, **shared)
    for ax in axes.flat[count:]:
        ax.remove()  # one in three dimensions, if hidden, is laid out and has no box
    return figure, list(axes.flat[:count])


def head_maps(maps: list[tuple[str, Float[Array, "layers heads"]]], width: float, tall: float, label: str) -> Any:
    """Draw numbers from 0 to 1 of every head, a titled panel each, as high as `tall` for as many layers as heads."""
    layers, heads = maps[0][1].shape
    figure = canvas(width, min(ANSWER[1], 0.8 + tall * max(0.5, layers / heads)))
    axes = figure.subplots(1, len(maps), sharey=True, squeeze=False)[0]
    for ax, (title, values) in zip(axes, maps, strict=True):
        image = ax.imshow(values, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
        ax.set(title=title, xlabel="head")
        whole_numbers(ax.xaxis, ax.yaxis)
        ax.grid(False)
    axes[0].set_ylabel("layer")
    figure.colorbar(image, ax=axes, label=label)
    return figure


def against_chance(ax: Any, ratio: Float[Array, "a b"], limit: float, ends: tuple[str, str]) -> Any:
    """Draw ratios to chance with a diverging scale that saturates at 10 ** `limit`; return the mappable."""
    image = ax.imshow(
        np.log10(np.maximum(ratio.astype(np.float32), 1e-3)),
        cmap=diverging_colours(),
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        extent=(0, 1, 1, 0),
        interpolation="none",
    )
    ax.set_xticks([0, 1], ends)
    ax.set_yticks([0, 1], ends)
    ax.grid(False)
    return image


def position_colours() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("position", POSITION_STOPS)


def diverging_colours() -> Any:
    """Return the colormap of signed values, transparent at 0 to suit light and dark pages."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    below, above = (to_rgb(end) for end in DIVERGING_ENDS)
    stops = ((0, (*below, 1)), (0.5, (*below, 0)), (0.5, (*above, 0)), (1, (*above, 1)))
    return LinearSegmentedColormap.from_list("diverging", stops)


def whole_numbers(*axes: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    for axis in axes:
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def curve_3d(
    ax: Any, points: Float[Array, "rows 3"], positions: Int[Array, " rows"], *, with_bar: bool = True
) -> Any:
    from matplotlib.colors import to_rgba

    ax.plot(*points.T, color=INK, lw=0.4, alpha=0.35)  # a single line keeps the file small and follows dark pages
    dots = ax.scatter(
        *points.T, c=positions, cmap=position_colours(), s=7, depthshade=False, linewidths=0, rasterized=True
    )
    ax.set_box_aspect((1, 1, 1), zoom=1.1)
    for axis, name in ((ax.xaxis, "PC 1"), (ax.yaxis, "PC 2"), (ax.zaxis, "PC 3")):
        axis.set_pane_color((0, 0, 0, 0))
        axis.set_ticklabels([])
        axis.set_label_text(name)
        axis.labelpad = -10
        axis._axinfo["grid"].update(color=to_rgba(INK, 0.15), linewidth=0.4)
        axis._axinfo["tick"].update(inward_factor=0, outward_factor=0)
        axis.line.set_color(to_rgba(INK, 0.4))
    if with_bar:
        position_bar(dots, ax, shrink=0.75, orientation="horizontal", pad=0.02)
    return dots


def position_bar(dots: Any, axes: Any, **place: Any) -> None:
    dots.figure.colorbar(dots, ax=axes, label="position (tokens)", **place)


def curve_2d(ax: Any, x: Real[Array, " n"], y: Float[Array, " n"], positions: Int[Array, " n"]) -> Any:
    ax.plot(x, y, color=INK, lw=0.4, alpha=0.35)
    return ax.scatter(x, y, c=positions, cmap=position_colours(), s=9, linewidths=0, rasterized=True)


def svg_pair(figure: Any) -> tuple[bytes, bytes]:
    """Write a drawn figure as SVG for light pages and for dark pages; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    drawn = re.sub(rb"\s*<!--.*?-->", b"", buffer.getvalue(), flags=re.DOTALL)
    return _on(PAGE, drawn), _on(PAGE_DARK, drawn.replace(INK.encode(), INK_DARK.encode()))


def _on(page: str, svg: bytes) -> bytes:
    """Give an SVG the background of its page, so that it can be read on its own."""
    return re.sub(rb"(<svg [^>]*)>", rb'\1 style="background:%s">' % page.encode(), svg, count=1)
