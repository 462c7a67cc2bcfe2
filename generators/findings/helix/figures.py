"""The position curve in three dimensions, along its axis, by its waves, cosines, norms, and beside tokens."""

from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.interactive import Colouring, Curve, Rows
from generators.findings.contract import Figure, Measurements
from generators.findings.helix.claims import winds
from generators.findings.helix.curves import LookBack
from generators.findings.helix.measure import LATE, Metrics

TOKEN_GREY = "#878d98"  # seen on white and on slate


def figures(measured: Measurements[Metrics]) -> list[Figure]:
    """Return the figures of the position curve, the 3-D curve first."""
    metrics, arrays = measured.metrics, measured.arrays
    cosines = partial(draw_cosine, arrays["cosine_matrix"], arrays["cosine_by_offset"], metrics["n_positions"])
    shown = [
        Figure(
            "helix",
            "The position curve in three dimensions",
            partial(draw_helix, measured),
            partial(turn_helix, measured),
        ),
        Figure("plane", "The curve seen along its axis", partial(draw_plane, arrays["scores"], _pair(metrics))),
        Figure(
            "waves", "The waves of the top singular vectors", partial(draw_waves, arrays["left_singular_vectors"])
        ),
        Figure("cosine", "How alike two positions are", cosines),
        Figure(
            "norms",
            "How long the position embeddings are",
            partial(draw_norms, arrays["norms"], metrics["outlier_positions"]),
        ),
        Figure("look-back", "Looking back k tokens", partial(draw_look_back, metrics["look_back"])),
    ]
    if "token_scores" in arrays:
        title = "Tokens and positions in the space of the positions"
        shown.append(Figure("tokens-and-positions", title, partial(draw_tokens_and_positions, arrays)))
    return shown


def _pair(metrics: Metrics) -> list[int]:
    """Return the two components that turn, counted from 1; the leading two where none do."""
    return metrics["circle"]["pcs"] if metrics["circle"] else [1, 2]


def turn_helix(measured: Measurements[Metrics]) -> Curve:
    """Return the curve in three ranges of rows, coloured by position, by norm and, where it winds, by its angle."""
    metrics, arrays = measured.metrics, measured.arrays
    n = metrics["n_positions"]
    shares = tuple(metrics["explained_variance_ratio"][:3])
    rows = [Rows(f"positions 1 to {n - 1}", 1, _three_wide(arrays["scores"][:, :3]), shares)]
    if "scores_late" in arrays:
        rows.append(Rows(f"positions {LATE} to {n - 1}", LATE, _three_wide(arrays["scores_late"])))
        rows.append(Rows(f"positions 1 to {LATE - 1}", 1, _three_wide(arrays["scores_early"])))
    colourings = [Colouring("position", np.arange(n)), Colouring("norm", arrays["norms"])]
    if winds(metrics):
        first, second = _pair(metrics)
        pair = arrays["scores"][:, [first - 1, second - 1]]
        angle = np.degrees(np.arctan2(*(pair / pair.std(axis=0)).T[::-1]))
        name = f"angle in components {first} and {second} (degrees)"
        colourings.append(Colouring(name, np.concatenate([[np.nan], angle]), cyclic=True))
    return Curve(tuple(rows), tuple(colourings))


def _three_wide(scores: Float[Array, "rows c"]) -> Float[Array, "rows 3"]:
    return np.pad(scores, ((0, 0), (0, 3 - scores.shape[1])))


def draw_helix(measured: Measurements[Metrics]) -> Any:
    """Draw the top three scores of each row range, coloured by position."""
    arrays, n, shares = measured.arrays, measured.metrics["n_positions"], measured.metrics["explained_variance_3d"]
    ranges: list[tuple[str, float | None, Float[Array, "rows 3"], int]] = [
        (f"positions 1 to {n - 1}", shares["no_first"], arrays["scores"][:, :3], 1)
    ]
    if "scores_late" in arrays:
        ranges.append((f"positions {LATE} to {n - 1}", shares["late"], arrays["scores_late"], LATE))
        ranges.append((f"positions 1 to {LATE - 1}", shares["early"], arrays["scores_early"], 1))
    figure = style.canvas(width=3.0 * len(ranges), height=3.5)
    for index, (label, share, scores, start) in enumerate(ranges):
        ax = figure.add_subplot(1, len(ranges), index + 1, projection="3d")
        style.curve_3d(ax, scores, start + np.arange(len(scores)))
        ax.set_title(f"{label}\nno variance" if share is None else f"{label}\n{share:.1%} of variance")
    return figure


def draw_plane(scores: Float[Array, "rows c"], pair: list[int]) -> Any:
    """Draw two scaled scores against each other, coloured by position."""
    figure = style.canvas(width=5.4, height=4.6)
    ax = figure.add_subplot()
    x, y = (scores[:, pc - 1] / scores[:, pc - 1].std() for pc in pair)
    points = style.curve_2d(ax, x, y, np.arange(1, len(scores) + 1))
    ax.set_xlabel(f"component {pair[0]} (unit spread)")
    ax.set_ylabel(f"component {pair[1]} (unit spread)")
    ax.set_aspect("equal", "datalim")
    figure.colorbar(points, ax=ax, label="position (tokens)", shrink=0.8)
    return figure


def draw_waves(vectors: Float[Array, "n vectors"]) -> Any:
    """Draw the leading left singular vectors below one another."""
    figure = style.canvas(width=8.5, height=5.2)
    axes = figure.subplots(vectors.shape[1], 1, sharex=True)
    for index, ax in enumerate(axes):
        ax.plot(vectors[:, index], lw=1, color=style.COLOURS[index % len(style.COLOURS)])
        ax.set_ylabel(f"vector {index + 1}")
        ax.axhline(0, color=style.INK, lw=0.5, alpha=0.5)
    axes[-1].set_xlabel("position (tokens)")
    return figure


def draw_cosine(matrix: Float[Array, "m m"], by_offset: Float[Array, " offsets"], n: int) -> Any:
    """Draw the matrix of cosine similarities beside their mean by offset."""
    figure = style.canvas(width=8.6, height=3.7)
    left, right = figure.subplots(1, 2)
    image = left.imshow(
        matrix.astype(np.float32),
        cmap=style.diverging_colours(),
        vmin=-1,
        vmax=1,
        extent=(-0.5, n - 0.5, n - 0.5, -0.5),
        interpolation="none",
    )
    left.set_xlabel("position (tokens)")
    left.set_ylabel("position (tokens)")
    left.grid(False)
    figure.colorbar(image, ax=left, label="cosine similarity", shrink=0.85)
    right.plot(by_offset, color=style.COLOURS[0])
    right.axhline(0, color=style.INK, lw=0.5, alpha=0.5)
    right.set_xlabel("distance between two positions (tokens)")
    right.set_ylabel("mean cosine similarity")
    return figure


def draw_norms(norms: Float[Array, " n"], outliers: list[int]) -> Any:
    """Draw row norms by position, outlier positions ringed."""
    figure = style.canvas(width=8.5, height=3.2)
    ax = figure.add_subplot()
    ax.plot(norms, lw=1, color=style.COLOURS[0])
    if outliers:
        ax.plot(outliers, norms[outliers], "o", ms=8, mfc="none", color=style.COLOURS[1], label="outlier")
        ax.legend()
    ax.set_ylim(bottom=0)
    ax.set_xlabel("position (tokens)")
    ax.set_ylabel("norm of the row")
    return figure


def draw_look_back(looks: list[LookBack]) -> Any:
    """Draw the share of variance that each of the three maps leaves unexplained, for each offset."""
    figure = style.canvas(width=6.4, height=3.4)
    ax = figure.add_subplot()
    maps = (
        ([look["r2_identity"] for look in looks], "standing still", "^"),
        ([look["r2_rotation"] for look in looks], "rotation", "o"),
        ([look["r2_affine"] for look in looks], "affine map", "s"),
    )
    for index, (explained, label, marker) in enumerate(maps):
        left = [max(1 - r2, 1e-6) for r2 in explained]
        ax.plot(range(len(looks)), left, marker + "-", ms=6, lw=1.2, color=style.COLOURS[index], label=label)
    ax.set_xticks(range(len(looks)), [f"{look['k']}" for look in looks])
    ax.set_yscale("log")
    ax.set_xlabel("tokens back (k)")
    ax.set_ylabel("variance left unexplained (1 − R²)")
    ax.legend()
    return figure


def draw_tokens_and_positions(arrays: dict[str, Array]) -> Any:
    """Draw tokens behind the positions, in three components and in the leading two."""
    scores, tokens = arrays["scores"][:, :3], arrays["token_scores"]
    positions = np.arange(1, len(scores) + 1)
    figure = style.canvas(width=8.6, height=4.4)
    space = figure.add_subplot(1, 2, 1, projection="3d", computed_zorder=False)
    space.scatter(*tokens.T, color=TOKEN_GREY, s=4, alpha=0.35, linewidths=0, depthshade=False, rasterized=True)
    style.curve_3d(space, scores, positions)
    plane = figure.add_subplot(1, 2, 2)
    plane.scatter(*tokens[:, :2].T, color=TOKEN_GREY, s=5, alpha=0.4, linewidths=0, rasterized=True, label="tokens")
    style.curve_2d(plane, scores[:, 0], scores[:, 1], positions)
    plane.set_xlabel("component 1 of the positions")
    plane.set_ylabel("component 2 of the positions")
    plane.set_aspect("equal", "datalim")
    plane.legend(markerscale=2.5).legend_handles[0].set_alpha(1)
    return figure
