from functools import partial
from typing import Any

import numpy as np
from jaxtyping import UInt8
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.vocabulary_rows.measure import KINDS, VocabularyRowsMetrics

COLOURS = ("#878d9840", style.COLOURS[2], style.COLOURS[3], style.COLOURS[1], style.COLOURS[0])
WIDTHS = (32, 64, 128, 256, 512, 1024)  # ids in a line
FLAT = 0.3  # lines for each id in a line, at most


def figures(measured: Measurements[VocabularyRowsMetrics]) -> list[Figure]:
    draw = partial(draw_strip, measured.arrays["kinds"])
    return [Figure("vocabulary-strip", "Rows of the vocabulary by kind", draw)]


def draw_strip(kinds: UInt8[Array, " V"]) -> Any:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    width = next((width for width in WIDTHS if len(kinds) <= FLAT * width**2), WIDTHS[-1])
    lines = np.full((-(-len(kinds) // width), width), np.nan, np.float32)
    lines.flat[: len(kinds)] = kinds
    figure, ax = style.plot(width=7.2, height=1.1 + 6.4 * FLAT)
    last = len(KINDS) - 1
    ax.imshow(lines, cmap=ListedColormap(COLOURS), vmin=0, vmax=last, interpolation="nearest", aspect="auto")
    ax.set(xlabel=f"token index within a line of {width}", ylabel="first index of the line")
    style.whole_numbers(ax.xaxis, ax.yaxis)
    ax.yaxis.set_major_formatter(lambda line, _: f"{int(line) * width:,}")
    ax.grid(False)
    counts = np.bincount(kinds, minlength=len(KINDS))
    shown = [Patch(color=COLOURS[kind], label=f"{KINDS[kind]}: {counts[kind]:,}") for kind in np.flatnonzero(counts)]
    ax.legend(handles=shown, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(KINDS))
    return figure
