"""The shape of the position embeddings: spectrum, waves, circle, norms, looking back."""

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.contract import Inputs, Measurements, NotApplicableError, Table, Weights, table_of
from generators.findings.helix import curves
from generators.findings.helix.curves import Circle, LookBack, Wave
from generators.maths.blocks import blocks, spread_ids
from generators.maths.spectra import PCA, components_for, energy_ratio, pca, svd, variance_ratio

FEWEST_POSITIONS = 16
LATE = 100  # first position of the `late` range
FEWEST_FOR_RANGES = 200
COMPONENTS = 8  # principal components in which waves, circles and look-back are sought
LOOK_BACK_OFFSETS = (1, 5, 10, 50)
TOP_ENERGY = 30
SEED = 20230714
GAUSSIAN_DRAWS = 3
PERMUTATIONS = 8
COSINE_PIXELS = 256
SAMPLED_TOKENS = 2000  # drawn among the positions


class Ranges(TypedDict):
    """A share of variance by range of rows: late are those from 100 on, early those before but the first.

    None where there are too few positions for a range, or its rows don't vary.
    """

    all: float
    no_first: float
    late: float | None
    early: float | None


class Spectrum(TypedDict):
    """How P's variance and energy fall off, with what Gaussian rows and shuffled positions give."""

    explained_variance_3d: Ranges
    explained_variance_3d_gaussian: float
    fraying: float | None
    fraying_permuted: float | None
    singular_values: list[float]
    energy_top30: float
    energy_top30_gaussian: float


class Norms(TypedDict):
    """Std/mean of the later norms, as they are and after shuffling each component over positions."""

    norm_cv: float
    norm_cv_permuted: float


class TokenShare(TypedDict):
    """Mean share of a row's centred energy that lies in the top three components of the positions."""

    tokens: float
    positions: float
    chance: float


class Metrics(Spectrum, Norms):
    """Numbers of the position curve; `token_share` needs tokens."""

    explained_variance_ratio: list[float]
    components_for_90: int
    components_for_99: int
    waves: list[Wave]
    circle: Circle | None
    roughness: float | None
    roughness_baseline: float
    outlier_positions: list[int]
    first_position_distance: float
    look_back: list[LookBack]
    token_share: TokenShare | None
    n_positions: int


class RangeRow(TypedDict):
    """One range of rows."""

    rows: str
    explained_variance_3d: float | None


class WaveRow(TypedDict):
    """The wave of one principal component, counted from 1."""

    component: int
    explained_variance_ratio: float
    cycles: int
    period_tokens: float
    share: float


def measure(inputs: Inputs) -> Measurements[Metrics]:
    """Measure the curve of the positions.

    Reads `position_embedding` (n, d), and `token_embedding` (V, d) when there.

    Raises:
        NotApplicableError: fewer than 16 positions, or all rows of P but the first alike.
    """
    P = _positions(inputs.weights)
    E = inputs.weights.get("token_embedding")
    curve = pca(P[1:])
    metrics = _metrics(P, curve, E)
    arrays = _arrays(P, curve.scores)
    if E is not None:
        arrays |= _among_positions(E, P, curve)
    return Measurements(metrics, _tables(metrics), arrays)


def _positions(weights: Weights) -> Float[Array, "n d"]:
    P = np.asarray(weights["position_embedding"], np.float64)
    if len(P) < FEWEST_POSITIONS:
        raise NotApplicableError(f"P has only {len(P)} positions; a curve needs at least {FEWEST_POSITIONS}.")
    if not np.ptp(P[1:], axis=0).any():
        raise NotApplicableError("All rows of P but the first are alike: there is no curve.")
    return P


def _metrics(P: Float[Array, "n d"], curve: PCA, E: Float[Array, "V d"] | None) -> Metrics:
    scores = curve.scores[:, :COMPONENTS]
    found = curves.waves(scores)
    outliers, distance = curves.outlier_positions(P)
    return {
        **_spectrum(P),
        "explained_variance_ratio": curve.variance_ratio[:10].tolist(),
        "components_for_90": components_for(curve.variance_ratio, 0.90),
        "components_for_99": components_for(curve.variance_ratio, 0.99),
        "waves": found,
        "circle": curves.find_circle(scores, curve.variance_ratio, outliers[outliers > 0] - 1),
        "roughness": curves.roughness(scores[:, :3], min(wave["period_tokens"] for wave in found[:3])),
        "roughness_baseline": curves.ROUGHNESS_OF_NOISE,
        "outlier_positions": outliers.tolist(),
        "first_position_distance": float(distance[0]),
        **_norms(P, outliers),
        "look_back": [curves.look_back(scores, k) for k in LOOK_BACK_OFFSETS if k < len(P) / 2],
        "token_share": None if E is None else _token_share(E, curve.components[:3], P),
        "n_positions": len(P),
    }


def _spectrum(P: Float[Array, "n d"]) -> Spectrum:
    long_enough = len(P) >= FEWEST_FOR_RANGES
    energy = energy_ratio(P)
    rng = np.random.default_rng(SEED)
    noise = [rng.standard_normal(P.shape) for _ in range(GAUSSIAN_DRAWS)]
    return {
        "explained_variance_3d": {
            "all": _three(P),
            "no_first": _three(P[1:]),
            "late": _three_if_varied(P[LATE:]) if long_enough else None,
            "early": _three_if_varied(P[1:LATE]) if long_enough else None,
        },
        "explained_variance_3d_gaussian": float(np.mean([_three(draw[1:]) for draw in noise])),
        "fraying": _fraying(P) if long_enough else None,
        "fraying_permuted": _fraying(rng.permutation(P[1:], axis=0)) if long_enough else None,
        "singular_values": np.sqrt(energy[:50] * np.sum(P**2)).tolist(),
        "energy_top30": float(energy[:TOP_ENERGY].sum()),
        "energy_top30_gaussian": float(np.mean([energy_ratio(draw)[:TOP_ENERGY].sum() for draw in noise])),
    }


def _three(rows: Float[Array, "rows d"]) -> float:
    """Return the share of variance in three components."""
    return float(variance_ratio(rows)[:3].sum())


def _three_if_varied(rows: Float[Array, "rows d"]) -> float | None:
    return _three(rows) if np.ptp(rows, axis=0).any() else None


def _fraying(P: Float[Array, "n d"]) -> float | None:
    """Return what three components gain when the first 100 rows go, over what they gain without the last."""
    late, without_end = _three_if_varied(P[LATE:]), _three_if_varied(P[1 : len(P) - LATE + 1])
    return None if late is None or without_end is None else late - without_end


def _norms(P: Float[Array, "n d"], outliers: Int[Array, " outliers"]) -> Norms:
    start = LATE if len(P) >= FEWEST_FOR_RANGES else 1
    rows = P[np.setdiff1d(np.arange(start, len(P)), outliers)]
    parts = pca(rows)
    mean = rows.mean(axis=0)
    along_mean = parts.components @ mean
    rng = np.random.default_rng(SEED)
    permuted = []
    for _ in range(PERMUTATIONS):
        scores = rng.permuted(parts.scores, axis=0)
        squares = mean @ mean + 2 * scores @ along_mean + np.sum(scores**2, axis=1)
        permuted.append(_cv(np.sqrt(np.clip(squares, 0, None))))
    return {"norm_cv": _cv(np.linalg.norm(rows, axis=1)), "norm_cv_permuted": float(np.mean(permuted))}


def _cv(values: Float[Array, " n"]) -> float:
    mean = float(values.mean())
    return float(values.std()) / mean if mean else 0.0


def _token_share(E: Float[Array, "V d"], top: Float[Array, "top d"], P: Float[Array, "n d"]) -> TokenShare:
    """Return how much of a centred token's, and a centred position's, energy lies in P's top 3 components."""
    return {"tokens": _mean_share(E, top), "positions": _mean_share(P[1:], top), "chance": 3 / P.shape[1]}


def _mean_share(rows: Float[Array, "rows d"], top: Float[Array, "top d"]) -> float:
    """Return the mean share of a row's squared norm along `top` after centring; rows at the mean count as 0."""
    mean = rows.mean(axis=0, dtype=np.float64)
    energy, inside = np.empty(len(rows)), np.empty(len(rows))
    for part, block in blocks(rows):
        block -= mean
        energy[part] = np.einsum("ij,ij->i", block, block)
        inside[part] = np.square(block @ top.T).sum(axis=1)
    away = energy > 1e-9 * float(np.square(mean).sum() + energy.max())
    return float(np.sum(inside[away] / energy[away])) / len(rows)


def _tables(metrics: Metrics) -> dict[str, Table]:
    ranges = metrics["explained_variance_3d"]
    range_rows: list[RangeRow] = [
        {"rows": "all", "explained_variance_3d": ranges["all"]},
        {"rows": "no_first", "explained_variance_3d": ranges["no_first"]},
        {"rows": "late", "explained_variance_3d": ranges["late"]},
        {"rows": "early", "explained_variance_3d": ranges["early"]},
    ]
    ratios = metrics["explained_variance_ratio"]  # of more components than have waves
    wave_rows: list[WaveRow] = [
        {"component": rank, "explained_variance_ratio": ratio, **wave}
        for rank, (wave, ratio) in enumerate(zip(metrics["waves"], ratios, strict=False), start=1)
    ]
    return {
        "explained_variance": table_of(
            "Share of variance in three components, by range of rows", list(RangeRow.__annotations__), range_rows
        ),
        "waves": table_of("The strongest wave of each principal component", list(WaveRow.__annotations__), wave_rows),
        "look_back": table_of(
            "Predicting row t - k from row t, on rows the map was not fitted on",
            ("k", "r2_rotation", "r2_affine", "r2_identity", "gain"),
            metrics["look_back"],
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


def _among_positions(E: Float[Array, "V d"], P: Float[Array, "n d"], curve: PCA) -> dict[str, Array]:
    """Return tokens, spread over all ids, in the components of the positions and from the same origin."""
    ids, top = spread_ids(len(E), SAMPLED_TOKENS), curve.components[:3].T
    scores = E[ids] @ top.astype(E.dtype) - P[1:].mean(axis=0) @ top
    return {"token_ids": ids.astype(np.int32), "token_scores": scores.astype(np.float32)}
