from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.text import share
from generators.drawing import style
from generators.drawing.interactive import Colouring, Curve, Rows
from generators.findings.contract import Figure
from generators.findings.helix.claims import breaks, winds
from generators.findings.helix.measure import LATE, HelixMetrics
from generators.findings.measured import Measurements


def figures(measured: Measurements[HelixMetrics]) -> list[Figure]:
    turn = partial(turn_helix, measured)
    norms = partial(draw_norms, measured.arrays["norms"], measured.metrics)
    return [
        Figure("helix", "The position curve in three dimensions", partial(draw_helix, measured), turn),
        Figure("norms", "Norms of the position embeddings", norms),
    ]


def _ranges(measured: Measurements[HelixMetrics]) -> list[Rows]:
    arrays, n = measured.arrays, measured.metrics["n_positions"]
    shares = tuple(measured.metrics["explained_variance_ratio"][:3])
    rows = [Rows(f"positions 1 to {n - 1}", 1, _three_wide(arrays["scores"][:, :3]), shares)]
    if "scores_late" in arrays:
        rows.append(Rows(f"positions {LATE} to {n - 1}", LATE, _three_wide(arrays["scores_late"])))
        rows.append(Rows(f"positions 1 to {LATE - 1}", 1, _three_wide(arrays["scores_early"])))
    return rows


def _three_wide(scores: Float[Array, "rows c"]) -> Float[Array, "rows 3"]:
    return np.pad(scores, ((0, 0), (0, 3 - scores.shape[1])))


def turn_helix(measured: Measurements[HelixMetrics]) -> Curve:
    metrics, arrays = measured.metrics, measured.arrays
    n = metrics["n_positions"]
    colourings = [Colouring("position", np.arange(n)), Colouring("norm", arrays["norms"])]
    if winds(metrics):
        plane = arrays["planes"][:, :2]
        angle, (first, last) = np.full(n, np.nan), metrics["rows_without_outliers"]
        angle[first : last + 1] = np.degrees(np.arctan2(plane[:, 1], plane[:, 0]))
        colourings.append(Colouring("angle in the strongest plane (degrees)", angle, cyclic=True))
    return Curve(tuple(_ranges(measured)), tuple(colourings))


def draw_helix(measured: Measurements[HelixMetrics]) -> Any:
    metrics, ranges = measured.metrics, _ranges(measured)
    found = metrics["explained_variance_3d"]
    shares = (found["no_first"], found["late"], found["early"])[: len(ranges)]
    figure = style.canvas(width=3.0 * len(ranges), height=3.2)
    for index, (rows, part) in enumerate(zip(ranges, shares, strict=True), start=1):
        ax = figure.add_subplot(1, len(ranges), index, projection="3d")
        positions = rows.first + np.arange(len(rows.points))
        style.curve_3d(ax, rows.points, positions)
        if positions[-1] == metrics["n_positions"] - 1 in metrics["outlier_positions"]:
            ax.text(*rows.points[-1], f" {positions[-1]:,}", fontsize=8.5)  # a lone dot, off the curve
        ax.set_title(f"{rows.name}\n{'no' if part is None else share(part) + ' of'} variance")
    return figure


def draw_norms(norms: Float[Array, " n"], metrics: HelixMetrics) -> Any:
    figure, ax = style.plot()
    ax.plot(norms, lw=1, color=style.COLOURS[0])
    outliers = metrics["outlier_positions"]
    if outliers:
        ax.plot(outliers, norms[outliers], "o", ms=8, mfc="none", color=style.COLOURS[1], label="outlier")
    for index, (position, what) in enumerate(breaks(metrics)):
        label = f"{what} from {position} on"
        ax.axvline(position - 0.5, ls="--", lw=1.2, color=style.COLOURS[2 + index], label=label)
    if ax.get_legend_handles_labels()[1]:
        ax.legend()
    ax.set_ylim(bottom=0)
    ax.set(xlabel="position (tokens)", ylabel="norm of the row")
    return figure
