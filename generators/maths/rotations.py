"""Null distributions from random rotations of the stream: overlaps of two unrelated sides, and other axes.

Every sampler turns one side by Haar-random rotations and leaves its spectrum unchanged, so low rank alone can't
explain a value beyond the null. `energies` are squared singular values, or eigenvalues of a covariance; those not
given, up to d, are 0. `rng` is a seeded generator; `draws` values are returned.
"""

from collections.abc import Iterator

import numpy as np
import scipy.linalg
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.maths.spectra import components_for, eigenbasis

BLOCK = 64  # axes turned among themselves from one rotation to the next
LARGEST_PLAIN = 256  # channels up to which every rotation is made from scratch
LEFT_OUT = 1e-3  # share of energy that is spread so thinly that its mean is used instead
FRAME_SHARE = 0.25  # share of d; wider frames are cut from whole rotations
SCREENED = 8  # axes whose ranks are compared, of those that correlate most
BISECTIONS = 60


def rotations(
    d: int, draws: int, rng: np.random.Generator, dtype: type[np.floating] = np.float32
) -> Iterator[Float[Array, "d d"]]:
    """Yield rotations, each Haar-distributed.

    What compares ranks takes them in float64: in float32, rounding decides between numbers that are nearly equal.

    In many dimensions only the first is made from scratch. Each further one turns the rows of the one before in
    random groups of 64, at a tenth of the cost.
    """
    # A Haar-random rotation times a rotation that is independent of it is Haar-random again. So turning groups of
    # rows preserves the distribution; consecutive draws are hardly related, since every row is replaced.
    rotation = _haar(d, d, rng, dtype)
    for draw in range(draws):
        if draw:
            rotation = _haar(d, d, rng, dtype) if d <= LARGEST_PLAIN else _turned(rotation, rng)
        yield rotation


def frames(d: int, count: int, draws: int, rng: np.random.Generator) -> Iterator[Float[Array, "d count"]]:
    """Yield `count` Haar-random orthonormal directions of d dimensions as columns."""
    if count > FRAME_SHARE * d:
        yield from (rotation[:, :count] for rotation in rotations(d, draws, rng))
    else:
        yield from (_haar(d, count, rng) for _ in range(draws))


def _haar(
    d: int, count: int, rng: np.random.Generator, dtype: type[np.floating] = np.float32
) -> Float[Array, "d count"]:
    normal = rng.standard_normal((d, count), dtype=np.float32).astype(dtype, copy=False)
    q, r = scipy.linalg.qr(normal, mode="economic", overwrite_a=True, check_finite=False)
    return q * np.where(np.diagonal(r) < 0, dtype(-1), dtype(1))


def _turned(rotation: Float[Array, "d d"], rng: np.random.Generator) -> Float[Array, "d d"]:
    d, kind = len(rotation), rotation.dtype.type
    order = rng.permutation(d)
    turned = np.empty_like(rotation)
    for start in range(0, d, BLOCK):
        group = order[start : start + BLOCK]
        turned[start : start + len(group)] = _haar(len(group), len(group), rng, kind) @ rotation[group]
    return turned


# Overlaps of two sides


def rivalries(
    a: Float[Array, " r"], b: Float[Array, " s"], d: int, draws: int, rng: np.random.Generator
) -> Float[Array, " draws"]:
    """Return d tr(A B) / (tr A tr B) for covariances of these eigenvalues, one turned against the other; about 1."""
    return d * _shared(a, b, d, draws, rng) / (np.sum(a) * np.sum(b))


def shares_in_subspace(
    energies: Float[Array, " r"], k: int, d: int, draws: int, rng: np.random.Generator
) -> Float[Array, " draws"]:
    """Return the share of energy of a matrix in a random k-dimensional subspace; k / d on average."""
    return _shared(energies, np.ones(k), d, draws, rng) / np.sum(energies)


def _shared(
    a: Float[Array, " r"], b: Float[Array, " s"], d: int, draws: int, rng: np.random.Generator
) -> Float[Array, " draws"]:
    """Return sum_ij a_i b_j q_ij^2 over the entries of random rotations."""
    a, b = (np.sort(np.asarray(side, np.float64))[::-1][:d] for side in (a, b))
    few, many = sorted((a, b), key=_strong)
    many = np.pad(many, (0, d - len(many)))
    return np.array([many @ spread for spread in _spreads(few, d, draws, rng)])


def _strong(energies: Float[Array, " r"]) -> int:
    """Return how many of the sorted energies hold all but a thousandth of their sum."""
    return components_for(energies, 1 - LEFT_OUT) if np.any(energies) else 0


def _spreads(
    energies: Float[Array, " r"], d: int, draws: int, rng: np.random.Generator
) -> Iterator[Float[Array, " d"]]:
    """Yield the energy that every axis has after a random rotation of sorted energies.

    Energies beyond the strong ones are spread as they are on average, over what the strong ones leave of each axis.
    """
    strong = _strong(energies)
    head, tail = energies[:strong], float(energies[strong:].sum())
    for frame in frames(d, strong, draws, rng):
        squares = frame.astype(np.float64) ** 2
        left = tail / (d - strong) * (1 - squares.sum(axis=1)) if tail else 0.0
        yield squares @ head + left


# The first direction and the mean


def turned_mean_cosines(
    variances: Float[Array, " d"], mean_energy: float, draws: int, rng: np.random.Generator
) -> Float[Array, " draws"]:
    """Return |cos| of the first right singular vector of rows with their mean, the mean turned at random.

    `variances` are eigenvalues of the rows' covariance, `mean_energy` is the squared length of their mean. A long one
    is the first direction wherever it points.
    """
    means = rng.standard_normal((draws, len(variances)))
    means *= np.sqrt(mean_energy) / np.linalg.norm(means, axis=1, keepdims=True)
    return _first_with_mean(np.asarray(variances, np.float64), means)


def accidental_mean_cosines(
    variances: Float[Array, " d"], count: int, draws: int, rng: np.random.Generator
) -> Float[Array, " draws"]:
    """Return the same for `count` Gaussian rows about 0: their mean is an accident, largest where they vary most."""
    variances = np.asarray(variances, np.float64)
    return _first_with_mean(variances, rng.standard_normal((draws, len(variances))) * np.sqrt(variances / count))


def _first_with_mean(variances: Float[Array, " d"], means: Float[Array, "draws d"]) -> Float[Array, " draws"]:
    """Return |cos| of each mean m with the first eigenvector of diag(variances) + m m^T."""
    # The eigenvalues of this matrix are the roots x of sum_j m_j^2 / (x - variance_j) = 1. The largest root lies
    # above the largest variance, where bisection finds it; its eigenvector has the entries m_j / (x - variance_j).
    squares = means**2
    lengths = squares.sum(axis=1)
    largest = float(variances.max())
    low, high = np.zeros(len(means)), lengths.copy()  # bounds of the root above the largest variance
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        above = np.sum(squares / (middle[:, None] + (largest - variances)), axis=1) > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    first = means / (high[:, None] + (largest - variances))
    return np.abs(np.sum(first * means, axis=1)) / (np.linalg.norm(first, axis=1) * np.sqrt(lengths))


# Channels


def channel_variances(
    energies: Float[Array, " r"], d: int, draws: int, rng: np.random.Generator
) -> Float[Array, "draws d"]:
    """Return the energy of every channel of a matrix whose rows are turned at random, up to a common factor."""
    energies = np.sort(np.asarray(energies, np.float64))[::-1][:d]
    return np.stack(list(_spreads(energies, d, draws, rng)))


def channels_for(variances: Float[Array, "draws d"], share: float) -> Int[Array, " draws"]:
    """Return how many of the strongest channels hold a share of all variance, for every row of variances."""
    upto = np.cumsum(np.sort(variances, axis=1)[:, ::-1], axis=1)
    return np.sum(upto < share * upto[:, -1:], axis=1) + 1


def both_channel_variances(
    P: Float[Array, "n d"], covariance: Float[Array, "d d"], draws: int, rng: np.random.Generator
) -> tuple[Float[Array, "draws d"], Float[Array, "draws d"]]:
    """Return the variances of every channel of centred P, and of rows of this covariance, under the same rotations.

    A shared rotation preserves how the two sides lie relative to each other, but no preference for channels.
    """
    variances, vectors = eigenbasis(covariance)
    _, lengths, right = np.linalg.svd(P, full_matrices=False)
    energies = lengths**2
    strong = _strong(energies)
    axes = right[:strong] @ vectors * (lengths[:strong, None] / np.sqrt(len(P)))
    found = np.empty((2, draws, len(variances)))
    for draw, rotation in enumerate(rotations(len(variances), draws, rng, np.float64)):
        found[0, draw] = np.sum((axes @ rotation) ** 2, axis=0)
        found[1, draw] = variances @ rotation**2
    left = float(energies[strong:].sum()) / len(P) / len(variances)
    return found[0] + left, found[1]


def low_variance_overlaps(
    first: Float[Array, "draws d"], second: Float[Array, "draws d"], k: int
) -> Int[Array, " draws"]:
    """Return how many of the k channels where `first` is largest are among the k where `second` is smallest."""
    most, least = (np.argpartition(side, k - 1, axis=1)[:, :k] for side in (-first, second))
    return np.array([len(np.intersect1d(*sides)) for sides in zip(most, least, strict=True)])


def rank_correlations(a: Float[Array, "draws d"], b: Float[Array, "#draws d"]) -> Float[Array, " draws"]:
    """Return Spearman's correlation of every row of a with that of b, or with its one row; no values may tie."""
    return correlations(*(np.argsort(np.argsort(side, axis=1), axis=1).astype(np.float64) for side in (a, b)))


def correlations(a: Float[Array, "draws d"], b: Float[Array, "#draws d"]) -> Float[Array, " draws"]:
    """Return Pearson's correlation of every row of a with that of b, or with its one row; 0 for constant rows."""
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    scale = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.divide(np.sum(a * b, axis=1), scale, out=np.zeros_like(scale), where=scale > 0)


def best_axis_correlations(
    rows: Float[Array, "m d"], values: Float[Array, " m"], draws: int, rng: np.random.Generator
) -> Float[Array, " draws"]:
    """Return the largest |Spearman| of one quantity with any of d channels, the rows turned at random."""
    # Ranking all d channels of every rotation would be slow. Pearson's correlation with the quantity's ranks is one
    # matrix product, and the best channel by rank is among the few that are best by it.
    from scipy.stats import rankdata

    ranks = rankdata(values) - (len(values) + 1) / 2
    centred = rows - rows.mean(axis=0, dtype=np.float64)
    variances, vectors = eigenbasis(centred.T @ centred)
    scores = centred @ vectors
    along = ranks @ scores
    variances = np.clip(variances, np.finfo(np.float32).tiny, None)
    best = np.empty(draws)
    for draw, rotation in enumerate(rotations(rows.shape[1], draws, rng, np.float64)):
        pearson = np.abs(along @ rotation) / np.sqrt(variances @ rotation**2)
        likely = np.argsort(pearson)[-SCREENED:]
        turned = np.argsort(np.argsort((scores @ rotation[:, likely]).T, axis=1), axis=1).astype(np.float64)
        best[draw] = np.abs(correlations(turned, ranks[None])).max()  # the quantity may tie, turned rows don't
    return best
