"""Helix: do the position embeddings lie on a curve that winds?

Observed by Adam Yedidia, "GPT-2's positional embedding matrix is a helix" (LessWrong, 2023); low rank by James
Simon, "Insights into GPT-2's positional encodings" (2024).
"""

from dataclasses import asdict
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.maths import curves
from generators.findings.finding import (
    NO_TOKENS,
    Claim,
    Figure,
    Finding,
    NotApplicableError,
    Result,
    Table,
    TokenFacts,
    Weights,
)
from generators.findings.thresholds import judge, untested
from generators.drawing.interactive import Colouring, Curve, Rows
from generators.maths.spectra import PCA, components_for, energy_ratio, pca, svd, variance_ratio
from generators.maths.blocks import blocks, spread_ids
from generators.base.architecture import Architecture

FEWEST_POSITIONS = 16
LATE = 100  # first position of the `late` range
FEWEST_FOR_RANGES = 200
COMPONENTS = 8  # principal components in which waves, circles and look-back are sought
LOOK_BACK_OFFSETS = (1, 5, 10, 50)
CLAIM_OFFSET = 10
TOP_ENERGY = 30
SEED = 20230714
GAUSSIAN_DRAWS = 3
PERMUTATIONS = 8
FEWEST_TURNS = 1.0
DRIFT_FACTOR = 1.5
COSINE_PIXELS = 256
SAMPLED_TOKENS = 2000  # drawn among the positions
TOKEN_GREY = "#878d98"  # seen on white and on slate


def compute(weights: Weights, architecture: Architecture, tokens: TokenFacts = NO_TOKENS) -> Result:
    """Compute the metrics of the position curve.

    Args:
        weights: `position_embedding` (n, d); `token_embedding` (V, d) is used when there.
        architecture: not used beyond its existence; P says its own size.

    Raises:
        NotApplicableError: fewer than 16 positions, or all rows of P alike.
    """
    P = np.asarray(weights["position_embedding"], np.float64)
    n = len(P)
    if n < FEWEST_POSITIONS:
        raise NotApplicableError(f"P has only {n} positions; a curve needs at least {FEWEST_POSITIONS}.")
    if not np.ptp(P[1:], axis=0).any():
        raise NotApplicableError("All rows of P but the first are alike: there is no curve.")
    curve = pca(P[1:])
    scores = curve.scores[:, :COMPONENTS]
    found = curves.waves(scores)
    outliers, relative_distance = curves.outlier_positions(P)
    circle = curves.find_circle(scores, curve.variance_ratio, outliers[outliers > 0] - 1)
    looks = [curves.look_back(scores, k) for k in LOOK_BACK_OFFSETS if k < n / 2]
    E = weights.get("token_embedding")
    metrics = {
        **_spectrum(P),
        "explained_variance_ratio": curve.variance_ratio[:10].tolist(),
        "components_for_90": components_for(curve.variance_ratio, 0.90),
        "components_for_99": components_for(curve.variance_ratio, 0.99),
        "waves": [asdict(wave) for wave in found],
        "circle": None if circle is None else {**asdict(circle), "drift_turns": circle.drift_turns},
        "roughness": curves.roughness(scores[:, :3], min(wave.period_tokens for wave in found[:3])),
        "roughness_baseline": curves.ROUGHNESS_OF_NOISE,
        "outlier_positions": outliers.tolist(),
        "first_position_distance": float(relative_distance[0]),
        **_norms(P, outliers),
        "look_back": [asdict(look) for look in looks],
        "token_share": None if E is None else _token_share(E, curve.components[:3], P),
        "n_positions": n,
    }
    arrays = _arrays(P, curve.scores) | ({} if E is None else _among_positions(E, P, curve))
    return Result(metrics, _tables(metrics), arrays)


def _spectrum(P: Float[Array, "n d"]) -> dict[str, Any]:
    n = len(P)
    long_enough = n >= FEWEST_FOR_RANGES
    ranges = {
        "all": P,
        "no_first": P[1:],
        "late": P[LATE:] if long_enough else None,
        "early": P[1:LATE] if long_enough else None,
    }
    energy = energy_ratio(P)
    total = float(np.sum(P**2))
    rng = np.random.default_rng(SEED)
    noise = [rng.standard_normal(P.shape) for _ in range(GAUSSIAN_DRAWS)]
    return {
        "explained_variance_3d": {name: None if rows is None else _three(rows) for name, rows in ranges.items()},
        "explained_variance_3d_gaussian": float(np.mean([variance_ratio(draw[1:])[:3].sum() for draw in noise])),
        "fraying": _fraying(P) if long_enough else None,
        "fraying_permuted": _fraying(rng.permutation(P[1:], axis=0)) if long_enough else None,
        "singular_values": np.sqrt(energy[:50] * total).tolist(),
        "energy_top30": float(energy[:TOP_ENERGY].sum()),
        "energy_top30_gaussian": float(np.mean([energy_ratio(draw)[:TOP_ENERGY].sum() for draw in noise])),
    }


def _three(rows: Float[Array, "rows d"]) -> float | None:
    """Return the share of variance in three components, None where rows do not vary."""
    return float(variance_ratio(rows)[:3].sum()) if np.ptp(rows, axis=0).any() else None


def _fraying(P: Float[Array, "n d"]) -> float | None:
    """Return what three components gain when the first 100 rows go, over what they gain without the last."""
    late, without_end = _three(P[LATE:]), _three(P[1 : len(P) - LATE + 1])
    return None if late is None or without_end is None else late - without_end


def _norms(P: Float[Array, "n d"], outliers: Array) -> dict[str, Any]:
    start = LATE if len(P) >= FEWEST_FOR_RANGES else 1
    kept = np.setdiff1d(np.arange(start, len(P)), outliers)
    rows = P[kept]
    parts = pca(rows)
    mean = rows.mean(axis=0)
    along_mean = parts.components @ mean
    rng = np.random.default_rng(SEED)
    permuted = []
    for _ in range(PERMUTATIONS):
        scores = rng.permuted(parts.scores, axis=0)
        squares = mean @ mean + 2 * scores @ along_mean + np.sum(scores**2, axis=1)
        permuted.append(_cv(np.sqrt(np.clip(squares, 0, None))))
    return {
        "norm_cv": _cv(np.linalg.norm(rows, axis=1)),
        "norm_cv_permuted": float(np.mean(permuted)),
    }


def _cv(values: Float[Array, " n"]) -> float:
    mean = float(values.mean())
    return float(values.std()) / mean if mean else 0.0


def _token_share(E: Float[Array, "V d"], top: Float[Array, "3 d"], P: Float[Array, "n d"]) -> dict[str, float]:
    """Return how much of a centred token's, and a centred position's, energy lies in P's top 3 components."""
    return {"tokens": _mean_share(E, top), "positions": _mean_share(P[1:], top), "chance": 3 / P.shape[1]}


def _mean_share(rows: Float[Array, "rows d"], top: Float[Array, "3 d"]) -> float:
    """Return the mean share of a row's squared norm along `top` after centring; rows at the mean count as 0."""
    mean = rows.mean(axis=0, dtype=np.float64)
    energy, inside = np.empty(len(rows)), np.empty(len(rows))
    for part, block in blocks(rows):
        block -= mean
        energy[part] = np.einsum("ij,ij->i", block, block)
        inside[part] = np.square(block @ top.T).sum(axis=1)
    away = energy > 1e-9 * float(np.square(mean).sum() + energy.max())
    return float(np.sum(inside[away] / energy[away])) / len(rows)


def _among_positions(E: Float[Array, "V d"], P: Float[Array, "n d"], curve: PCA) -> dict[str, Array]:
    """Return tokens, spread over all ids, in the components of the positions and from the same origin."""
    ids, top = spread_ids(len(E), SAMPLED_TOKENS), curve.components[:3].T
    scores = E[ids] @ top.astype(E.dtype) - P[1:].mean(axis=0) @ top
    return {"token_ids": ids.astype(np.int32), "token_scores": scores.astype(np.float32)}


def _tables(metrics: dict[str, Any]) -> dict[str, Table]:
    ranges = metrics["explained_variance_3d"]
    look_columns = ("k", "r2_rotation", "r2_affine", "r2_identity", "gain")
    return {
        "explained_variance": Table(
            "Share of variance in three components, by range of rows",
            ("rows", "explained_variance_3d"),
            tuple((name, value) for name, value in ranges.items()),
        ),
        "waves": Table(
            "The strongest wave of each principal component",
            ("component", "explained_variance_ratio", "cycles", "period_tokens", "share"),
            tuple(
                (i + 1, ratio, wave["cycles"], wave["period_tokens"], wave["share"])
                for i, (wave, ratio) in enumerate(
                    zip(metrics["waves"], metrics["explained_variance_ratio"], strict=False)
                )
            ),
        ),
        "look_back": Table(
            "Predicting row t - k from row t, on rows the map was not fitted on",
            look_columns,
            tuple(tuple(look[column] for column in look_columns) for look in metrics["look_back"]),
        ),
    }


def _arrays(P: Float[Array, "n d"], scores: Float[Array, "rows c"]) -> dict[str, Array]:
    n = len(P)
    arrays = {
        "scores": scores[:, :COMPONENTS],
        "left_singular_vectors": svd(P)[0][:, :5],
        "norms": np.linalg.norm(P, axis=1),
        "cosine_by_offset": curves.cosine_by_offset(P, n // 2),
        "cosine_matrix": curves.cosine_matrix(P, -(-n // COSINE_PIXELS)).astype(np.float16),
    }
    if n >= FEWEST_FOR_RANGES:
        arrays["scores_late"] = pca(P[LATE:]).scores[:, :3]
        arrays["scores_early"] = pca(P[1:LATE]).scores[:, :3]
    return {name: a if a.dtype == np.float16 else a.astype(np.float32) for name, a in arrays.items()}


def claims(result: Result) -> list[Claim]:
    """Judge the seven claims about the position curve."""
    m = result.metrics
    return [
        _three_components(m),
        _circle_claim(m),
        _fraying_claim(m),
        _first_position(m),
        _constant_norms(m),
        _look_back_claim(m),
        _low_rank(m),
    ]


def _three_components(m: dict[str, Any]) -> Claim:
    value, chance = m["explained_variance_3d"]["no_first"], m["explained_variance_3d_gaussian"]
    share = f"{value:.1%} of the variance of positions 1 to {m['n_positions'] - 1}"
    by_chance = f"Gaussian rows of the same shape give {chance:.1%}"
    needed = f"It takes {m['components_for_90']} components to reach 90 %"
    return judge(
        "three-components",
        value,
        {
            "holds": f"Three components hold {share}; {by_chance}.",
            "partly": f"Three components hold {share}, most but not nearly all; {by_chance}. {needed}.",
            "fails": f"Three components hold only {share}; {by_chance}. {needed}.",
        },
        baseline=chance,
    )


def _winds(m: dict[str, Any]) -> bool:
    circle = m["circle"]
    return circle is not None and abs(circle["turns"]) >= _turns_needed(circle)


def _turns_needed(circle: dict[str, Any]) -> float:
    """Return from how many turns on a circle is more than a drift."""
    return max(FEWEST_TURNS, DRIFT_FACTOR * circle["drift_turns"])


def _circle_claim(m: dict[str, Any]) -> Claim:
    circle = m["circle"]
    if circle is None:
        return judge(
            "circle",
            None,
            {"fails": "No pair of the first eight components turns about a centre at one frequency."},
        )
    turns, drift = abs(circle["turns"]), circle["drift_turns"]
    first, second = circle["pcs"]
    what = (
        f"Components {first} and {second} turn {turns:.1f} times, once every {circle['tokens_per_turn']:.3g} "
        f"positions (circularity {circle['circularity']:.2f}, radius varies by {circle['radius_cv']:.0%})"
    )
    return judge(
        "circle",
        turns,
        {
            "holds": f"{what}; a mere drift would make {drift:g}.",
            "fails": f"{what}, but that is not clearly more than the {drift:g} that a mere drift would make there.",
        },
        baseline=drift,
        holds_at=_turns_needed(circle),
    )


def _fraying_claim(m: dict[str, Any]) -> Claim:
    if m["fraying"] is None:
        return untested("fraying", f"With fewer than {FEWEST_FOR_RANGES} positions there is no start to leave out.")
    dropped = f"{m['fraying']:+.3f} of the variance"
    return judge(
        "fraying",
        m["fraying"],
        {
            "holds": f"Leaving out the first {LATE} positions instead of the last {LATE} changes what three "
            f"components hold by {dropped}: the start lies off the curve of the rest.",
            "fails": f"Leaving out the first {LATE} positions instead of the last {LATE} changes what three "
            f"components hold by {dropped}: the start lies on the curve no worse than the end.",
        },
        baseline=m["fraying_permuted"],
    )


def _first_position(m: dict[str, Any]) -> Claim:
    value = m["first_position_distance"]
    far = f"Position 0 lies {value:.1f} median neighbour distances from position 1"
    return judge(
        "first-position",
        value,
        {"holds": f"{far}.", "fails": f"{far}, no outlier by the factor of {curves.OUTLIER_FACTOR:g}."},
        baseline=1.0,
        also=0 in m["outlier_positions"],
    )


def _constant_norms(m: dict[str, Any]) -> Claim:
    value, permuted = m["norm_cv"], m["norm_cv_permuted"]
    spread = f"The norms of later positions vary by {value:.1%} of their mean"
    return judge(
        "constant-norms",
        value,
        {
            "holds": f"{spread}, where shuffling each component over positions gives {permuted:.1%}.",
            "partly": f"{spread}, nearly constant; shuffling each component over positions gives {permuted:.1%}.",
            "fails": f"{spread}; shuffling each component over positions gives {permuted:.1%}.",
        },
        baseline=permuted,
        also=0 < value <= 0.5 * permuted,
    )


def _look_back_claim(m: dict[str, Any]) -> Claim:
    look = next((look for look in m["look_back"] if look["k"] == CLAIM_OFFSET), None)
    if look is None:
        return untested("look-back", f"With {m['n_positions']} positions one can't look back {CLAIM_OFFSET}.")
    r2, gain = look["r2_rotation"], look["gain"]
    fit = (
        f"A rotation predicts the position {CLAIM_OFFSET} tokens back with R² {r2:.3f}, standing still with "
        f"{look['r2_identity']:.3f} (gain {gain:.2f})"
    )
    smooth = "" if _winds(m) else " Without a circle to turn on, a good fit only says that the curve is smooth."
    return judge(
        "look-back",
        r2,
        {"holds": f"{fit}.", "partly": f"{fit}: a fair fit, not an exact one.", "fails": f"{fit}.{smooth}"},
        baseline=look["r2_identity"],
        also=gain >= 0.5 and _winds(m),
        also_partly=gain >= 0.25 and _winds(m),
    )


def _low_rank(m: dict[str, Any]) -> Claim:
    value, chance = m["energy_top30"], m["energy_top30_gaussian"]
    share = f"{value:.2%} of P's energy lies in its top {TOP_ENERGY} directions; Gaussian rows give {chance:.1%}"
    return judge(
        "low-rank",
        value,
        {"holds": f"{share}.", "partly": f"{share}.", "fails": f"Only {share}."},
        baseline=chance,
        also=value >= 1.5 * chance,
    )


def figures_of(result: Result) -> list[Figure]:
    """Return the figures of the position curve, the 3-D curve first."""
    m, arrays = result.metrics, result.arrays
    ev3 = m["explained_variance_3d"]
    circle = m["circle"]
    winding = "two of its directions wind" if _winds(m) else "no two of its directions wind"
    n = m["n_positions"]
    rows = {"no_first": f"positions 1 to {n - 1}", "late": f"{LATE} to {n - 1}", "early": f"1 to {LATE - 1}"}
    in_ranges = ", ".join(f"{text} {ev3[name]:.1%}" for name, text in rows.items() if ev3[name] is not None)
    turning = (
        f"they turn {abs(circle['turns']):.1f} times"
        if _winds(m)
        else "no pair of components turns more than a drift would"
    )
    pair = tuple(circle["pcs"]) if circle else (1, 2)
    outliers = ", ".join(map(str, m["outlier_positions"])) or "none"
    last_look = m["look_back"][-1]
    return [
        Figure(
            "helix",
            "The position curve in three dimensions",
            "Each dot is one position, in the three principal components of the rows of P it is drawn from; "
            "colour runs from the first position to the last. A thin line joins neighbours, "
            "also to a last position that stands apart.",
            f"The curve of the position embeddings in its top three components; {winding}. Share of variance shown: "
            f"{in_ranges}.",
            lambda: draw_helix(result),
            lambda: turn_helix(result),
        ),
        Figure(
            "plane",
            "The curve seen along its axis",
            "The two components that turn (the leading two where none do), both scaled to unit spread. A circle "
            "or a spiral here is a helix seen from its end.",
            f"Positions in components {pair[0]} and {pair[1]}: {turning}.",
            lambda: draw_plane(arrays["scores"], pair),
        ),
        Figure(
            "waves",
            "The waves of the top singular vectors",
            "The five leading left singular vectors of P (all rows), each against position: a regular wave means "
            "that the direction encodes position at one frequency.",
            "The five leading left singular vectors of P against position. The leading principal components, for "
            "comparison, make " + ", ".join(str(wave["cycles"]) for wave in m["waves"][:5]) + " cycles per context.",
            lambda: draw_waves(arrays["left_singular_vectors"]),
        ),
        Figure(
            "cosine",
            "How alike two positions are",
            "Left: the cosine similarity of every position with every other. Right: its mean by the distance "
            "between two positions. Stripes and returns to high values show a period.",
            f"Cosine similarity of position embeddings. Its mean falls from 1 at distance 0 to "
            f"{float(arrays['cosine_by_offset'].min()):.2f} at distance "
            f"{int(arrays['cosine_by_offset'].argmin())}.",
            lambda: draw_cosine(arrays["cosine_matrix"], arrays["cosine_by_offset"], m["n_positions"]),
        ),
        Figure(
            "norms",
            "How long the position embeddings are",
            "The norm of each row of P. Rings mark outlier positions: rows more than five median steps away from "
            "both neighbours.",
            f"Norms of position embeddings by position, varying by {m['norm_cv']:.1%} after the start. "
            f"Outlier positions: {outliers}.",
            lambda: draw_norms(arrays["norms"], m["outlier_positions"]),
        ),
        Figure(
            "look-back",
            "Looking back k tokens",
            "How much of the embedding of position t − k is left unexplained by that of t, on rows not used for "
            "fitting: by the best rotation, by the best affine map, and by standing still (the baseline). Lower is "
            "better; the scale is logarithmic.",
            f"R² of looking back. At k = {last_look['k']}: rotation {last_look['r2_rotation']:.2f}, affine map "
            f"{last_look['r2_affine']:.2f}, standing still {last_look['r2_identity']:.2f}.",
            lambda: draw_look_back(m["look_back"]),
        ),
        *([_beside_tokens(result)] if "token_scores" in arrays else []),
    ]


def turn_helix(result: Result) -> Curve:
    """Return the curve in three ranges of rows, coloured by position, by norm and, where it winds, by its angle."""
    m, arrays = result.metrics, result.arrays
    n = m["n_positions"]
    scores = arrays["scores"][:, :3]
    shares = tuple(m["explained_variance_ratio"][:3])
    rows = [Rows(f"positions 1 to {n - 1}", 1, _three_wide(scores), shares)]
    if "scores_late" in arrays:
        rows.append(Rows(f"positions {LATE} to {n - 1}", LATE, _three_wide(arrays["scores_late"])))
        rows.append(Rows(f"positions 1 to {LATE - 1}", 1, _three_wide(arrays["scores_early"])))
    colourings = [Colouring("position", np.arange(n)), Colouring("norm", arrays["norms"])]
    if _winds(m):
        pair = arrays["scores"][:, [component - 1 for component in m["circle"]["pcs"]]]
        angle = np.degrees(np.arctan2(*(pair / pair.std(axis=0)).T[::-1]))
        name = "angle in components {} and {} (degrees)".format(*m["circle"]["pcs"])
        colourings.append(Colouring(name, np.concatenate([[np.nan], angle]), cyclic=True))
    return Curve(tuple(rows), tuple(colourings))


def _three_wide(scores: Float[Array, "rows c"]) -> Float[Array, "rows 3"]:
    return np.pad(scores, ((0, 0), (0, 3 - scores.shape[1])))


def _beside_tokens(result: Result) -> Figure:
    share = result.metrics["token_share"]
    count = len(result.arrays["token_scores"])
    return Figure(
        "tokens-and-positions",
        "Tokens and positions in the space of the positions",
        f"The top three components of the positions, with {count} token embeddings, evenly spaced over all ids, in "
        "grey, on the same axes; the origin is the mean position. Left: all three components. Right: the leading "
        "two. Where the tokens huddle while the positions reach far, adding the two is nearly like "
        "putting them side by side.",
        f"Positions (coloured) and tokens (grey) in the top three components of the positions. A token has "
        f"{share['tokens']:.2%} of its energy there, a position {share['positions']:.1%}; chance gives "
        f"{share['chance']:.2%}.",
        lambda: draw_tokens_and_positions(result.arrays),
    )


def draw_helix(result: Result) -> Any:
    """Draw the top three scores of each row range, coloured by position."""
    arrays, n = result.arrays, result.metrics["n_positions"]
    ranges = [("no_first", f"positions 1 to {n - 1}", arrays["scores"][:, :3], 1)]
    if "scores_late" in arrays:
        ranges.append(("late", f"positions {LATE} to {n - 1}", arrays["scores_late"], LATE))
        ranges.append(("early", f"positions 1 to {LATE - 1}", arrays["scores_early"], 1))
    figure = style.canvas(width=3.0 * len(ranges), height=3.5)
    for index, (name, label, scores, start) in enumerate(ranges):
        ax = figure.add_subplot(1, len(ranges), index + 1, projection="3d")
        share = result.metrics["explained_variance_3d"][name]
        style.curve_3d(ax, scores, start + np.arange(len(scores)))
        ax.set_title(f"{label}\n{share:.1%} of variance")
    return figure


def draw_plane(scores: Float[Array, "rows c"], pair: tuple[int, ...]) -> Any:
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


def draw_waves(vectors: Float[Array, "n 5"]) -> Any:
    """Draw the leading left singular vectors below one another."""
    figure = style.canvas(width=8.5, height=5.2)
    axes = figure.subplots(vectors.shape[1], 1, sharex=True)
    for index, ax in enumerate(axes):
        ax.plot(vectors[:, index], lw=1, color=style.COLOURS[index % len(style.COLOURS)])
        ax.set_ylabel(f"vector {index + 1}")
        ax.axhline(0, color=style.INK, lw=0.5, alpha=0.5)
    axes[-1].set_xlabel("position (tokens)")
    return figure


def draw_cosine(matrix: Array, by_offset: Float[Array, " offsets"], n: int) -> Any:
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


def draw_look_back(looks: list[dict[str, Any]]) -> Any:
    """Draw the share of variance that each of the three maps leaves unexplained, for each offset."""
    figure = style.canvas(width=6.4, height=3.4)
    ax = figure.add_subplot()
    maps = (
        ("r2_identity", "standing still", "^"),
        ("r2_rotation", "rotation", "o"),
        ("r2_affine", "affine map", "s"),
    )
    for index, (key, label, marker) in enumerate(maps):
        left = [max(1 - look[key], 1e-6) for look in looks]
        ax.plot(range(len(looks)), left, marker + "-", ms=6, lw=1.2, color=style.COLOURS[index], label=label)
    ax.set_xticks(range(len(looks)), [f"{look['k']}" for look in looks])
    ax.set_yscale("log")
    ax.set_xlabel("tokens back (k)")
    ax.set_ylabel("variance left unexplained (1 − R²)")
    ax.legend()
    return figure


HELIX = Finding(
    name="helix",
    title="Helix",
    version=3,
    needs=("position_embedding",),
    uses=("token_embedding",),
    parameters={"components": COMPONENTS, "late": LATE, "top_energy": TOP_ENERGY, "seed": SEED},
    compute=compute,
    claims=claims,
    figures=figures_of,
    signature="helix",
)
