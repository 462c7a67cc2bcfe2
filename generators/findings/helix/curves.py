"""The geometry of a curve of embeddings: waves, circles, roughness, looking back.

A curve is an array of rows, one per position, in order.
"""

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

WAVE_HALF_WIDTH = 2  # bins on either side of a peak that belong to it under a Hann window
CIRCLE_SMALLEST_VARIANCE_RATIO = 0.75
CIRCLE_LARGEST_RADIUS_CV = 0.35
CIRCLE_SMALLEST_CIRCULARITY = 0.8
OUTLIER_FACTOR = 5.0
ROUGHNESS_BLOCKS_PER_PERIOD = 16
ROUGHNESS_LARGEST_BLOCK = 8
ROUGHNESS_OF_NOISE = 3.0  # E|second difference|^2 / E|first difference|^2 of white noise: 6 / 2


class Wave(TypedDict):
    """The strongest oscillation of one principal score."""

    cycles: int  # per context
    period_tokens: float
    share: float  # of the score's spectral power within two bins of the peak


class Circle(TypedDict):
    """Two principal components whose scores turn about the origin."""

    pcs: list[int]  # two, counted from 1
    cycles: int
    period_tokens: float
    turns: float  # signed, net, outlier positions left out
    tokens_per_turn: float
    radius_cv: float
    circularity: float
    drift_turns: float  # that a curve without any circle makes in these components


class LookBack(TypedDict):
    """How well row t - k is predicted from row t, on rows the map was not fitted on."""

    k: int
    r2_rotation: float
    r2_affine: float
    r2_identity: float
    gain: float
    tokens_per_turn: list[float]  # of the rotation's planes, fastest first


def waves(scores: Float[Array, "rows components"]) -> list[Wave]:
    """Return the strongest wave of each column: Hann window, FFT, strongest bin but bin 0."""
    n = len(scores)
    power = np.abs(np.fft.rfft(scores * np.hanning(n)[:, None], axis=0)) ** 2
    power[0] = 0
    found: list[Wave] = []
    for column in power.T:
        peak = int(np.argmax(column[1:])) + 1
        near = column[max(0, peak - WAVE_HALF_WIDTH) : peak + WAVE_HALF_WIDTH + 1]
        total = float(column.sum())
        share = float(near.sum()) / total if total else 0.0
        found.append({"cycles": peak, "period_tokens": n / peak, "share": share})
    return found


def find_circle(
    scores: Float[Array, "rows components"],
    variances: Float[Array, " all_components"],
    outliers: Int[Array, " outliers"],
) -> Circle | None:
    """Return the first pair of components that turn together at one frequency, None where there is none.

    `outliers` are row indices left out of the count of turns.
    """
    found = waves(scores)
    for i in range(len(found)):
        for j in range(i + 1, len(found)):
            alike = variances[j] >= CIRCLE_SMALLEST_VARIANCE_RATIO * variances[i] > 0
            if alike and found[i]["cycles"] == found[j]["cycles"]:
                circle = _circle(scores[:, [i, j]], [i + 1, j + 1], found[i], outliers)
                if circle is not None:
                    return circle
    return None


def _circle(
    pair: Float[Array, "rows 2"], pcs: list[int], wave: Wave, outliers: Int[Array, " outliers"]
) -> Circle | None:
    pair = pair / pair.std(axis=0)
    radius = np.hypot(pair[:, 0], pair[:, 1])
    radius_cv = float(radius.std() / radius.mean())
    circularity = _circularity(_angle(pair), wave["period_tokens"])
    if radius_cv > CIRCLE_LARGEST_RADIUS_CV or circularity < CIRCLE_SMALLEST_CIRCULARITY:
        return None
    angle = _angle(np.delete(pair, outliers, axis=0))
    turns = float(angle[-1] - angle[0]) / (2 * np.pi)
    if not turns:
        return None
    return {
        "pcs": pcs,
        "cycles": wave["cycles"],
        "period_tokens": wave["period_tokens"],
        "turns": turns,
        "tokens_per_turn": len(angle) / abs(turns),
        "radius_cv": radius_cv,
        "circularity": circularity,
        "drift_turns": drift_turns(pcs),
    }


def drift_turns(pcs: list[int]) -> float:
    """Return how often a curve without any circle turns in two components: the j-th of a drift has j/2 cycles."""
    return pcs[1] / 2


def _angle(pair: Float[Array, "rows 2"]) -> Float[Array, " rows"]:
    """Return the angle of every row about the origin, without jumps."""
    return np.unwrap(np.arctan2(pair[:, 1], pair[:, 0]))


def _circularity(angle: Float[Array, " rows"], period: float) -> float:
    """Return the mean of cos(angle gained over a quarter period - 90 degrees), in the direction of turning.

    A quarter period is rounded to whole tokens, and the 90 degrees with it.
    """
    quarter = max(1, round(period / 4))
    gained = angle[quarter:] - angle[:-quarter]
    direction = np.sign(gained.sum()) or 1.0
    return float(np.mean(np.cos(gained - direction * 2 * np.pi * quarter / period)))


def outlier_positions(rows: Float[Array, "n d"]) -> tuple[Int[Array, " outliers"], Float[Array, " n"]]:
    """Return the rows far from both neighbours, and each row's distance to the nearer one over the median."""
    steps = np.linalg.norm(np.diff(rows, axis=0), axis=1)
    nearer = np.minimum(np.append(steps, np.inf), np.insert(steps, 0, np.inf))
    median = float(np.median(nearer))
    relative = nearer / median if median > 0 else np.zeros(len(rows))
    return np.flatnonzero(relative > OUTLIER_FACTOR), relative


def roughness(curve: Float[Array, "rows components"], shortest_period: float) -> float | None:
    """Return mean |second difference|^2 / mean |first difference|^2 after averaging blocks of positions."""
    block = int(np.clip(round(shortest_period / ROUGHNESS_BLOCKS_PER_PERIOD), 1, ROUGHNESS_LARGEST_BLOCK))
    blocks = curve[: len(curve) // block * block].reshape(-1, block, curve.shape[1]).mean(axis=1)
    first = np.diff(blocks, axis=0)
    if len(first) < 2 or not np.any(first):
        return None
    second = np.diff(first, axis=0)
    return float(np.mean(np.sum(second**2, axis=1)) / np.mean(np.sum(first**2, axis=1)))


def look_back(scores: Float[Array, "rows components"], k: int) -> LookBack:
    """Fit the map from row t to row t - k on every second pair of rows and test it on the others."""
    from scipy.linalg import orthogonal_procrustes

    source, target = scores[k:], scores[:-k]
    x, y, x_test, y_test = source[::2], target[::2], source[1::2], target[1::2]
    x_mean, y_mean = x.mean(axis=0), y.mean(axis=0)
    rotation = orthogonal_procrustes(x - x_mean, y - y_mean)[0]
    affine = np.linalg.lstsq(_with_one(x), y, rcond=None)[0]
    r2_rotation = _r2((x_test - x_mean) @ rotation + y_mean, y_test)
    r2_identity = _r2(x_test, y_test)
    return {
        "k": k,
        "r2_rotation": r2_rotation,
        "r2_affine": _r2(_with_one(x_test) @ affine, y_test),
        "r2_identity": r2_identity,
        "gain": 1 - (1 - r2_rotation) / (1 - r2_identity) if r2_identity < 1 else 0.0,
        "tokens_per_turn": _tokens_per_turn(rotation, k),
    }


def cosine_by_offset(rows: Float[Array, "n d"], longest: int) -> Float[Array, " offsets"]:
    """Return the mean cosine similarity of rows k apart, for k = 0..longest."""
    unit = _unit_rows(rows)
    return np.array([np.mean(np.sum(unit[: len(unit) - k] * unit[k:], axis=1)) for k in range(longest + 1)])


def cosine_matrix(rows: Float[Array, "n d"], step: int) -> Float[Array, "m m"]:
    """Return the cosine similarities of every `step`-th row with every other."""
    unit = _unit_rows(rows[::step])
    return unit @ unit.T


def _unit_rows(rows: Float[Array, "n d"]) -> Float[Array, "n d"]:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)


def _with_one(rows: Float[Array, "rows c"]) -> Float[Array, "rows c1"]:
    """Return rows with a last column of ones, which an affine map multiplies by its offset."""
    return np.column_stack([rows, np.ones(len(rows))])


def _r2(predicted: Float[Array, "rows c"], actual: Float[Array, "rows c"]) -> float:
    spread = float(np.sum((actual - actual.mean(axis=0)) ** 2))
    return 1 - float(np.sum((actual - predicted) ** 2)) / spread if spread else 0.0


def _tokens_per_turn(rotation: Float[Array, "c c"], k: int) -> list[float]:
    angles = np.angle(np.linalg.eigvals(rotation))
    turning = np.sort(angles[angles > 1e-6])[::-1]
    return [float(2 * np.pi * k / angle) for angle in turning]
