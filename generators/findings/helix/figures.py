from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.interactive import Colouring, Curve, Rows
from generators.findings.contract import Figure
from generators.findings.helix.along import TRIANGLE
from generators.findings.helix.claims import breaks, winding_planes, winds
from generators.findings.helix.measure import LATE, HelixMetrics, StoredLookBack
from generators.findings.measured import Measurements

FIRST_POSITIONS = 30  # positions drawn again, enlarged


def figures(measured: Measurements[HelixMetrics]) -> list[Figure]:
    metrics, arrays = measured.metrics, measured.arrays
    cosines = partial(draw_cosine, arrays["cosine_matrix"], arrays["cosine_by_offset"], metrics["n_positions"])
    shown = [
        Figure(
            "helix",
            "The position curve in three dimensions",
            partial(draw_helix, measured),
            partial(turn_helix, measured),
        ),
        Figure("plane", "The curve in the planes in which it turns", partial(draw_planes, measured)),
        Figure(
            "waves", "The waves of the top singular vectors", partial(draw_waves, arrays["left_singular_vectors"])
        ),
        Figure("cosine", "Similarity of two positions", cosines),
        Figure(
            "norms",
            "Norms of the position embeddings",
            partial(draw_norms, arrays["norms"], metrics),
        ),
        Figure(
            "steps",
            "Distance between neighboring positions",
            partial(draw_steps, arrays["steps"], metrics["outlier_positions"]),
        ),
        Figure("look-back", "Looking back k tokens", partial(draw_look_back, metrics["look_back"])),
    ]
    if "turn_rates" in arrays:
        shown.append(Figure("turning-speed", "How fast the curve turns", partial(draw_turn_rates, arrays)))
    if "third_harmonics" in arrays:
        shown.append(Figure("wave-shape", "The shape of the waves", partial(draw_wave_shape, arrays)))
    if "token_scores" in arrays:
        title = "Tokens and positions in the space of the positions"
        shown.append(Figure("tokens-and-positions", title, partial(draw_tokens_and_positions, arrays)))
    return shown


def turn_helix(measured: Measurements[HelixMetrics]) -> Curve:
    metrics, arrays = measured.metrics, measured.arrays
    n = metrics["n_positions"]
    shares = tuple(metrics["explained_variance_ratio"][:3])
    rows = [Rows(f"positions 1 to {n - 1}", 1, _three_wide(arrays["scores"][:, :3]), shares)]
    if "scores_late" in arrays:
        rows.append(Rows(f"positions {LATE} to {n - 1}", LATE, _three_wide(arrays["scores_late"])))
        rows.append(Rows(f"positions 1 to {LATE - 1}", 1, _three_wide(arrays["scores_early"])))
    colourings = [Colouring("position", np.arange(n)), Colouring("norm", arrays["norms"])]
    if winds(metrics):
        plane = arrays["planes"][:, :2]
        angle = np.full(n, np.nan)
        angle[_positions(metrics)] = np.degrees(np.arctan2(plane[:, 1], plane[:, 0]))
        colourings.append(Colouring("angle in the strongest plane (degrees)", angle, cyclic=True))
    return Curve(tuple(rows), tuple(colourings))


def _three_wide(scores: Float[Array, "rows c"]) -> Float[Array, "rows 3"]:
    return np.pad(scores, ((0, 0), (0, 3 - scores.shape[1])))


def draw_helix(measured: Measurements[HelixMetrics]) -> Any:
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


def _positions(metrics: HelixMetrics) -> slice:
    first, last = metrics["rows_without_outliers"]
    return slice(first, last + 1)


def draw_planes(measured: Measurements[HelixMetrics]) -> Any:
    metrics, points = measured.metrics, measured.arrays["planes"]
    positions = np.arange(metrics["n_positions"])[_positions(metrics)]
    shown = min(points.shape[1] // 2, max(1, len(winding_planes(metrics))))
    figure = style.canvas(width=1.0 + 4.2 * shown, height=4.4)
    axes = np.atleast_1d(figure.subplots(1, shown))
    for index, ax in enumerate(axes):
        x, y = points[:, 2 * index : 2 * index + 2].T
        dots = style.curve_2d(ax, x, y, positions)
        ax.set_aspect("equal", "datalim")
        if metrics["planes"]:
            plane = metrics["planes"][index]
            ax.set_title(f"{plane['turns']:.1f} turns, {plane['share']:.1%} of variance")
        else:
            ax.set_title("leading components: there is no plane")
    figure.colorbar(dots, ax=list(axes), label="position (tokens)", shrink=0.8)
    return figure


def draw_waves(vectors: Float[Array, "n vectors"]) -> Any:
    figure = style.canvas(width=8.5, height=5.2)
    axes = figure.subplots(vectors.shape[1], 1, sharex=True)
    for index, ax in enumerate(axes):
        ax.plot(vectors[:, index], lw=1, color=style.COLOURS[index % len(style.COLOURS)])
        ax.set_ylabel(f"vector {index + 1}")
        ax.axhline(0, color=style.INK, lw=0.5, alpha=0.5)
    axes[-1].set_xlabel("position (tokens)")
    return figure


def draw_cosine(matrix: Float[Array, "m m"], by_offset: Float[Array, " offsets"], n: int) -> Any:
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
    left.set(xlabel="position (tokens)", ylabel="position (tokens)")
    left.grid(False)
    figure.colorbar(image, ax=left, label="cosine similarity", shrink=0.85)
    right.plot(by_offset, color=style.COLOURS[0])
    right.axhline(0, color=style.INK, lw=0.5, alpha=0.5)
    right.set(xlabel="distance between two positions (tokens)", ylabel="mean cosine similarity")
    return figure


def draw_norms(norms: Float[Array, " n"], metrics: HelixMetrics) -> Any:
    figure, ax = style.plot(width=8.5, height=3.2)
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


def draw_steps(steps: Float[Array, " steps"], outliers: list[int]) -> Any:
    figure = style.canvas(width=8.6, height=3.2)
    whole, start = figure.subplots(1, 2, width_ratios=(2, 1), sharey=True)
    from_position = np.arange(len(steps))
    beside = np.array(sorted({t for at in outliers for t in (at - 1, at) if 0 <= t < len(steps)}), int)
    for ax, count in ((whole, len(steps)), (start, min(FIRST_POSITIONS, len(steps)))):
        ax.plot(
            from_position[:count], steps[:count], "-" if ax is whole else "o-", lw=1, ms=3, color=style.COLOURS[0]
        )
        ringed = beside[beside < count]
        if len(ringed):
            ax.plot(ringed, steps[ringed], "o", ms=8, mfc="none", color=style.COLOURS[1], label="beside an outlier")
        ax.set_xlabel("position (tokens)")
    if len(beside):
        whole.legend()
    if np.all(steps > 0):
        whole.set_yscale("log")
    whole.set_ylabel("distance to the next position")
    return figure


def draw_look_back(looks: list[StoredLookBack]) -> Any:
    figure, ax = style.plot(width=6.4, height=3.4)
    maps = (
        ([look["r2_identity"] for look in looks], "no movement", "^"),
        ([look["r2_translation"] for look in looks], "translation", "x"),
        ([look["r2_rotation"] for look in looks], "rotation", "o"),
        ([look["r2_affine"] for look in looks], "affine map", "s"),
    )
    for index, (explained, label, marker) in enumerate(maps):
        left = [max(1 - r2, 1e-6) for r2 in explained]
        ax.plot(range(len(looks)), left, marker + "-", ms=6, lw=1.2, color=style.COLOURS[index], label=label)
    ax.axhline(1, ls="--", lw=1, color=style.INK, alpha=0.6)
    ax.set_xticks(range(len(looks)), [f"{look['k']}" for look in looks])
    ax.set(yscale="log", xlabel="tokens back (k)", ylabel="variance left unexplained (1 − R²)")
    ax.legend()
    return figure


def draw_turn_rates(arrays: dict[str, Array]) -> Any:
    figure, ax = style.plot(width=8.5, height=3.0)
    rates = 100 * arrays["turn_rates"]
    ax.plot(arrays["rate_positions"], rates, "o-", ms=4, lw=1.2, color=style.COLOURS[0])
    ax.axhline(np.median(rates), ls="--", lw=1, color=style.INK, alpha=0.6, label="median window")
    ax.axhline(0, color=style.INK, lw=0.5, alpha=0.5)
    ax.set(xlabel="position (tokens)", ylabel="turns per 100 tokens")
    ax.legend()
    return figure


def draw_wave_shape(arrays: dict[str, Array]) -> Any:
    figure, ax = style.plot(width=6.4, height=3.0)
    ax.plot(arrays["third_harmonics"], "o", ms=5, color=style.COLOURS[0])
    for value, name, line in ((0.0, "sine", "-"), (TRIANGLE, "triangle wave", "--")):
        ax.axhline(value, ls=line, lw=1.2, color=style.COLOURS[1], label=name)
    ax.set(xlabel="channel, by std over positions (0: largest)", ylabel="third harmonic over first")
    ax.legend()
    return figure


def draw_tokens_and_positions(arrays: dict[str, Array]) -> Any:
    scores, tokens = arrays["scores"][:, :3], arrays["token_scores"]
    positions = np.arange(1, len(scores) + 1)
    figure = style.canvas(width=8.6, height=4.4)
    space = figure.add_subplot(1, 2, 1, projection="3d", computed_zorder=False)
    space.scatter(*tokens.T, color=style.TOKEN_GREY, s=4, alpha=0.35, linewidths=0, depthshade=False, rasterized=True)
    style.curve_3d(space, scores, positions)
    plane = figure.add_subplot(1, 2, 2)
    plane.scatter(
        *tokens[:, :2].T, color=style.TOKEN_GREY, s=5, alpha=0.4, linewidths=0, rasterized=True, label="tokens"
    )
    style.curve_2d(plane, scores[:, 0], scores[:, 1], positions)
    plane.set(xlabel="component 1 of the positions", ylabel="component 2 of the positions")
    plane.set_aspect("equal", "datalim")
    plane.legend(markerscale=2.5).legend_handles[0].set_alpha(1)
    return figure
