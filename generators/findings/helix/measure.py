from typing import cast

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.helix.chance import HelixDraws, draw
from generators.findings.inputs import Inputs, NotApplicableError, Weights
from generators.findings.measured import Interval, Measurements, Table, row_of, table_of
from generators.findings.nulls import RESAMPLES, interval
from generators.findings.sizes import check_positions
from generators.maths import curve, turning
from generators.maths.blocks import blocks
from generators.maths.curve_statistics import TOP_ENERGY, statistics
from generators.maths.resampling import block_weights
from generators.maths.sines import Sines, sines
from generators.maths.spectra import PCA, components_for, energy_ratio, pca

LATE = curve.START
SEED = 20230714
PLANES_DRAWN = 2


class Ranges(TypedDict):
    """A share of variance by range of rows: late are those from 100 on, early those before but the first.

    None where there are too few positions for a range, or its rows don't vary.
    """

    all: float
    no_first: float
    late: float | None
    early: float | None


class StoredPlane(TypedDict):
    """A plane of the rotation that takes a position to the next; `turns` are net.

    `share` is of P's variance, `share_of_scores` of that in the eight leading components.
    """

    share: float
    share_of_scores: float
    turns: float
    steadiness: float
    winding: float
    radius_cv: float
    tokens_per_turn: float | None


class StoredLookBack(TypedDict):
    k: int
    r2_rotation: float
    r2_translation: float
    r2_identity: float
    gain: float  # gain of the rotation over predicting no movement
    translation_gain: float


class TokenShare(TypedDict):
    """Mean share of a row's centred energy that lies in the top three components of the positions."""

    tokens: float
    positions: float
    chance: float


class HelixIntervals(TypedDict):
    """95 % intervals by number; positions are resampled in blocks."""

    explained_variance_3d: Interval
    winding: Interval
    median_gain: Interval | None
    fraying: Interval | None
    first_position_distance: Interval
    norm_cv: Interval
    energy_top30: Interval


class Spectrum(TypedDict):
    """How P's variance and energy fall off; `explained_variance_3d_kept` is without position 0 and all outliers."""

    explained_variance_3d: Ranges
    explained_variance_3d_kept: float
    fraying: float | None
    explained_variance_ratio: list[float]
    components_for_90: int
    singular_values: list[float]
    energy_top30: float


class Turning(TypedDict):
    """How the curve turns, on its longest run of positions without an outlier (first and last are given)."""

    rows_without_outliers: list[int]
    planes: list[StoredPlane]
    winding: float
    look_back: list[StoredLookBack]
    median_gain: float | None


class HelixMetrics(Spectrum, Turning, HelixDraws):
    outlier_positions: list[int]
    first_position_distance: float
    norm_cv: float
    token_share: TokenShare | None
    by_formula: bool
    sines: Sines | None
    intervals: HelixIntervals
    n_positions: int


def measure(inputs: Inputs) -> Measurements[HelixMetrics]:
    """Measure the curve of the positions."""
    P = _positions(inputs.weights)
    E = inputs.weights.get("token_embedding")
    components = pca(P[1:])
    outliers, distance = curve.outlier_positions(P)
    run = curve.longest_run(len(P), outliers)
    leading = curve.principal_scores(P[run], turning.COMPONENTS)
    planes = turning.planes(leading.values, leading.energy)
    metrics: HelixMetrics = {
        **_spectrum(P, components),
        **_turning(leading, planes, run),
        **draw(P),
        "outlier_positions": outliers.tolist(),
        "first_position_distance": float(distance[0]),
        "norm_cv": curve.norm_cv(P, outliers),
        "token_share": None if E is None else _token_share(E, components.components[:3], P),
        "by_formula": inputs.architecture.positions == "formula",
        "sines": sines(P),
        "intervals": _intervals(P),
        "n_positions": len(P),
    }
    arrays = _arrays(P, components.scores) | {"planes": _points(leading.values, planes)}
    return Measurements(metrics, _tables(metrics), arrays)


def _positions(weights: Weights) -> Float[Array, "n d"]:
    P = np.asarray(weights["position_embedding"], np.float64)
    check_positions(P)
    if not np.ptp(P[1:], axis=0).any():
        raise NotApplicableError("The rows of P are alike, all or all but the first: there is no curve.")
    return P


def _spectrum(P: Float[Array, "n d"], components: PCA) -> Spectrum:
    long_enough = len(P) >= curve.FEWEST_FOR_START
    energy = energy_ratio(P)
    return {
        "explained_variance_3d": {
            "all": curve.explained_variance(P) or 0.0,
            "no_first": float(components.variance_ratio[:3].sum()),
            "late": curve.explained_variance(P[LATE:]) if long_enough else None,
            "early": curve.explained_variance(P[1:LATE]) if long_enough else None,
        },
        "explained_variance_3d_kept": float(
            statistics(P, ("explained_variance_3d_kept",))["explained_variance_3d_kept"][0]
        ),
        "fraying": curve.fraying(P),
        "explained_variance_ratio": components.variance_ratio[:10].tolist(),
        "components_for_90": components_for(components.variance_ratio, 0.90),
        "singular_values": np.sqrt(energy[:50] * np.sum(P**2)).tolist(),
        "energy_top30": float(energy[:TOP_ENERGY].sum()),
    }


def _turning(leading: curve.Scores, planes: tuple[turning.Plane, ...], run: slice) -> Turning:
    scores = leading.values
    looks = [turning.look_back(scores, k) for k in turning.offsets(len(scores))]
    return {
        "rows_without_outliers": [run.start, run.stop - 1],
        "planes": [row_of(StoredPlane, plane) for plane in planes],
        "winding": turning.winding(planes),
        "look_back": [_look_back(look) for look in looks],
        "median_gain": turning.median_gain(looks),
    }


def _look_back(look: turning.LookBack) -> StoredLookBack:
    gain = turning.gain_over(1 - look.r2_translation, 1 - look.r2_identity, 1.0)
    return row_of(StoredLookBack, look, translation_gain=gain)


def _intervals(P: Float[Array, "n d"]) -> HelixIntervals:
    weights = block_weights(len(P), RESAMPLES, np.random.default_rng(SEED))
    found: dict[str, Interval] = {name: interval(values) for name, values in statistics(P, weights=weights).items()}
    return cast(HelixIntervals, {name: found.get(name) for name in HelixIntervals.__annotations__})


def _token_share(E: Float[Array, "V d"], top: Float[Array, "top d"], P: Float[Array, "n d"]) -> TokenShare:
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


def _tables(metrics: HelixMetrics) -> dict[str, Table]:
    ranges = metrics["explained_variance_3d"]
    range_rows = [{"rows": rows, "explained_variance_3d": share} for rows, share in ranges.items()]
    planes = [{"plane": rank, **plane} for rank, plane in enumerate(metrics["planes"], start=1)]
    return {
        "planes": table_of(
            "The planes in which the curve turns, strongest first", ("plane", *StoredPlane.__annotations__), planes
        ),
        "look_back": table_of(
            "Predicting row t - k from row t by maps that were fitted on the other half of the positions",
            StoredLookBack,
            metrics["look_back"],
        ),
        "explained_variance": table_of(
            "Share of variance in three components, by range of rows", range_rows[0], range_rows
        ),
    }


def _arrays(P: Float[Array, "n d"], scores: Float[Array, "rows c"]) -> dict[str, Array]:
    arrays = {
        "scores": scores[:, : turning.COMPONENTS],
        "norms": np.linalg.norm(P, axis=1),
        "steps": curve.step_lengths(P),
    }
    if len(P) >= curve.FEWEST_FOR_START:
        arrays["scores_late"] = pca(P[LATE:]).scores[:, :3]
        arrays["scores_early"] = pca(P[1:LATE]).scores[:, :3]
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def _points(scores: Float[Array, "rows c"], planes: tuple[turning.Plane, ...]) -> Float[Array, "rows coordinates"]:
    bases = [plane.axes for plane in planes[:PLANES_DRAWN]]
    points = scores @ np.hstack(bases) if bases else scores[:, :2]
    return np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1])))).astype(np.float32)
