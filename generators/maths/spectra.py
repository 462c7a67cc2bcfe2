"""Spectra, subspaces and their overlaps. PCA is centred; SVD is not."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from scipy.linalg import eigh

GRAM_BLOCK = 4096  # rows per block
FEW = 4  # a few eigenvectors take less than all if they are fewer than one in so many
EQUAL = 1e-9  # relative to the largest eigenvalue: closer eigenvalues count as equal


@dataclass(frozen=True)
class PCA:
    scores: Float[Array, "rows components"]
    variance_ratio: Float[Array, " components"]
    components: Float[Array, "components d"]


def pca(rows: Float[Array, "rows d"]) -> PCA:
    """Return the principal components of centred rows; the variance ratios sum to 1."""
    u, s, vt = svd(rows - rows.mean(axis=0))
    return PCA(u * s, _shares(s**2), vt)


def svd(
    rows: Float[Array, "rows d"],
) -> tuple[Float[Array, "rows r"], Float[Array, " r"], Float[Array, "r d"]]:
    """Return the thin SVD of uncentred rows, the largest entry of every right singular vector positive."""
    u, s, vt = np.linalg.svd(rows, full_matrices=False)
    signs = np.sign(vt[np.arange(len(vt)), np.abs(vt).argmax(axis=1)])
    return u * signs, s, vt * signs[:, None]


def eigenbasis(symmetric: Float[Array, "d d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """Return eigenvalues, smallest first, and eigenvectors as columns, the same on every processor.

    LAPACK leaves signs open, and the order of equal eigenvalues. Whatever is random and applied inside this basis
    would be another draw wherever these differ.
    """
    values, vectors = np.linalg.eigh(symmetric)
    sides = _sides(vectors.T)
    gaps = np.diff(values) > EQUAL * np.abs(values).max(initial=0.0)
    order = np.lexsort((np.abs(sides), np.append(0, np.cumsum(gaps))))
    return values, (vectors * np.where(sides < 0, -1.0, 1.0))[:, order]


def signed(axes: Float[Array, "axes d"]) -> Float[Array, " axes"]:
    """Return 1 or -1 for each axis: the sign that makes it the same axis on every processor."""
    return np.where(_sides(axes) < 0, -1.0, 1.0)


def _sides(axes: Float[Array, "axes d"]) -> Float[Array, " axes"]:
    """Return on which side of a fixed hyperplane each axis lies, and how far from it.

    The largest entry would not do: where two are equally large with opposite signs, rounding decides between them.
    """
    return axes @ np.cos(np.arange(1, axes.shape[1] + 1) ** 2)


def variance_ratio(rows: Float[Array, "rows d"]) -> Float[Array, " components"]:
    """Return only the variance ratios of the principal components, from the smaller Gram matrix."""
    return _shares(_squared_singular_values(rows - rows.mean(axis=0)))


def energy_ratio(rows: Float[Array, "rows d"]) -> Float[Array, " components"]:
    return _shares(_squared_singular_values(rows))


def gram(rows: Float[Array, "rows d"], centred: bool = False) -> Float[Array, "d d"]:
    """Return rows^T rows (of centred rows, if asked) in float64, brought there a block of rows at a time."""
    d = rows.shape[1]
    total, sums = np.zeros((d, d)), np.zeros(d)
    for begin in range(0, len(rows), GRAM_BLOCK):
        block = np.asarray(rows[begin : begin + GRAM_BLOCK], np.float64)
        total += block.T @ block
        sums += block.sum(axis=0)
    return total - np.outer(sums, sums) / len(rows) if centred else total


def right_singular_vectors(rows: Float[Array, "rows d"], count: int) -> Float[Array, "d count"]:
    """Return the first right singular vectors of uncentred rows as columns, from the d x d Gram matrix.

    Only for the subspace they span or for vectors with separated singular values: squaring the matrix costs
    half the digits of the small ones.
    """
    d = rows.shape[1]
    few = (d - count, d - 1) if FEW * count < d else None
    return eigh(gram(rows), subset_by_index=few, check_finite=False)[1][:, ::-1][:, :count]


def numerical_rank(rows: Float[Array, "rows d"]) -> int:
    """Return how many singular values of rows are more than the rounding of float32: 1e-4 of the largest."""
    squares = np.linalg.eigvalsh(gram(rows))
    return int(np.sum(squares > 1e-8 * squares[-1]))


def subspace_size(n: int, d: int) -> int:
    """Return k of the projector Pi_k on the top right singular vectors of P: 30, or n/10 (or d) when that is less."""
    return max(1, min(30, n // 10, d))


def energy_share(weights: Float[Array, "d m"], basis: Float[Array, "d k"]) -> float | None:
    """Return the share of squared norm of `weights` in the span of an orthonormal basis; None for zeros."""
    total = float(np.sum(np.square(weights, dtype=np.float64)))
    return float(np.sum((basis.T @ weights) ** 2)) / total if total else None


def squared_overlaps(a: Float[Array, "d p"], b: Float[Array, "d q"]) -> Float[Array, "p q"]:
    """Return the squared scalar products of the columns of two orthonormal bases; chance is 1/d each."""
    return (a.T @ b) ** 2


def block_means(image: Float[Array, "p q"], pixels: int) -> Float[Array, "a b"]:
    """Average a matrix over blocks so that neither side has more than `pixels` entries."""
    for axis in (0, 1):
        edges = np.linspace(0, image.shape[axis], min(image.shape[axis], pixels), endpoint=False).astype(int)
        sizes = np.diff(np.append(edges, image.shape[axis]))
        image = np.add.reduceat(image, edges, axis=axis) / np.expand_dims(sizes, 1 - axis)
    return image


def participation_ratio(vectors: Float[Array, "count d"]) -> Float[Array, " count"]:
    """Return 1 / sum v^4 of unit vectors: 1 for one channel, d for all channels equally."""
    return 1 / np.sum(vectors**4, axis=1)


def components_for(shares: Float[Array, " components"], share: float) -> int:
    """Return how many of the largest shares are needed to reach `share` of their sum; 1 where all are 0."""
    cumulative = np.cumsum(np.sort(shares)[::-1])
    return int(np.searchsorted(cumulative / cumulative[-1], share)) + 1 if cumulative[-1] else 1


def smaller_gram(rows: Float[Array, "rows d"]) -> Float[Array, "m m"]:
    """Return rows^T rows or rows rows^T, whichever is smaller: both have the same eigenvalues but for zeros."""
    return rows.T @ rows if rows.shape[1] <= len(rows) else rows @ rows.T


def _squared_singular_values(rows: Float[Array, "rows d"]) -> Float[Array, " components"]:
    return np.clip(np.linalg.eigvalsh(smaller_gram(np.asarray(rows, np.float64)))[::-1], 0, None)


def _shares(energies: Float[Array, " components"]) -> Float[Array, " components"]:
    """Return energies as shares of their sum; nothing has no shares, only zeros."""
    total = energies.sum()
    return energies / total if total else np.zeros_like(energies)
