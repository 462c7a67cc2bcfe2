"""A curve of embeddings: how it is stretched, where it breaks, how long its rows are.

A curve is an array of rows, one per position, in order. How it turns is in `turning`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from scipy.linalg import eigh

from generators.maths.spectra import smaller_gram

OUTLIER_FACTOR = 5.0  # multiple of the median distance to the nearer neighbor
START = 100  # rows that count as the start, or as the end
FEWEST_FOR_START = 200  # positions below which no start is left out
NO_VARIANCE = 1e-12  # relative to the strongest component; below it a component is rounding


@dataclass(frozen=True)
class Scores:
    """The leading principal scores of a curve, and the variance of all of it."""

    values: Float[Array, "rows components"]  # strongest first; components without variance are left out
    axes: Float[Array, "d components"]
    energy: float  # summed squared distance of all rows from their mean


def principal_scores(rows: Float[Array, "rows d"], count: int) -> Scores:
    """Return the leading principal scores of centred rows, from the smaller Gram matrix.

    The sign of an axis is that of its largest entry, which is positive.
    """
    centred = rows - rows.mean(axis=0)
    axes = leading_axes(centred, count)
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    return Scores(centred @ axes, axes, float(np.einsum("ij,ij->", centred, centred)))


def leading_axes(rows: Float[Array, "rows d"], count: int) -> Float[Array, "d count"]:
    """Return the leading right singular vectors of uncentred rows, those without energy left out."""
    # The Gram matrices of rows and of columns have the same nonzero eigenvalues, so the smaller one is decomposed. If
    # it is that of the rows, its eigenvectors u are left singular vectors, and rows^T u / s are the right ones.
    gram = smaller_gram(rows)
    energies, vectors = eigh(gram, subset_by_index=(max(len(gram) - count, 0), len(gram) - 1), check_finite=False)
    if len(energies) < min(count, len(gram)):  # LAPACK can lose some of many equal ones where it looks for a few
        energies, vectors = np.linalg.eigh(gram)
    there = np.flatnonzero(energies > NO_VARIANCE * max(energies[-1], 0.0))[::-1][:count]
    return vectors[:, there] if rows.shape[1] == len(gram) else rows.T @ vectors[:, there] / np.sqrt(energies[there])


def explained_variance(rows: Float[Array, "rows d"], count: int = 3) -> float | None:
    """Return the share of variance in the leading components, None where rows do not vary."""
    centred = rows - rows.mean(axis=0)
    return energy_share(centred, count) if np.ptp(rows, axis=0).any() else None


def energy_share(rows: Float[Array, "rows d"], count: int) -> float | None:
    """Return the share of summed squares in the leading singular directions of uncentred rows, None for zeros."""
    gram = smaller_gram(rows)
    total = float(np.trace(gram))
    return float(np.linalg.eigvalsh(gram)[-count:].sum()) / total if total else None


def fraying(rows: Float[Array, "n d"]) -> float | None:
    """Return what three components gain when the first 100 rows go, over what they gain without the last.

    Row 0 is left out either way. None below 200 rows, or where what remains does not vary.
    """
    if len(rows) < FEWEST_FOR_START:
        return None
    n = len(rows)
    late, without_end = explained_variance(rows[late_rows(n)]), explained_variance(rows[rows_without_end(n)])
    return None if late is None or without_end is None else late - without_end


def late_rows(n: int) -> slice:
    """Return the positions after the start: from 100, or from 1 where there are fewer than 200."""
    return slice(START if n >= FEWEST_FOR_START else 1, n)


def rows_without_end(n: int) -> slice:
    """Return as many positions as `late_rows`, from position 1 on."""
    return slice(1, n - START + 1)


def neighbour_distances(rows: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Return the distance of every row to the nearer of its two neighbours."""
    steps = step_lengths(rows)
    return np.minimum(np.append(steps, np.inf), np.insert(steps, 0, np.inf))


def step_lengths(rows: Float[Array, "n d"]) -> Float[Array, " steps"]:
    """Return the distance from every row to the next, n - 1 of them."""
    return np.linalg.norm(np.diff(rows, axis=0), axis=1)


def outlier_positions(rows: Float[Array, "n d"]) -> tuple[Int[Array, " outliers"], Float[Array, " n"]]:
    """Return the rows far from both neighbours, and each row's distance to the nearer one over the median."""
    nearer = neighbour_distances(rows)
    median = float(np.median(nearer))
    relative = nearer / median if median > 0 else np.zeros(len(rows))
    return np.flatnonzero(relative > OUTLIER_FACTOR), relative


def grouped(
    rows: Float[Array, "n ..."], size: int, apart: Sequence[int] | Int[Array, " apart"] = ()
) -> Float[Array, "n ..."]:
    """Return every row as the mean of its group of `size` rows; the last group may be smaller.

    Rows `apart` stay as they are and are in no mean. The first group begins with the first of the others, so that
    without row 0 groups are of rows 1 to `size`, and so on.
    """
    averaged = np.setdiff1d(np.arange(len(rows)), apart)
    if not len(averaged):
        return rows
    group, sizes = np.unique((averaged - averaged[0]) // size, return_inverse=True, return_counts=True)[1:]
    starts = np.cumsum(sizes) - sizes
    means = np.add.reduceat(rows[averaged], starts) / sizes.reshape(-1, *[1] * (rows.ndim - 1))
    changed = rows.copy()
    changed[averaged] = means[group]
    return changed


def longest_run(n: int, outliers: Int[Array, " outliers"]) -> slice:
    """Return the longest run of positions without an outlier, the first of several as long."""
    edges = np.concatenate([[-1], np.sort(outliers), [n]])
    widest = int(np.argmax(np.diff(edges)))
    return slice(int(edges[widest]) + 1, int(edges[widest + 1]))


def norm_cv(rows: Float[Array, "n d"], outliers: Int[Array, " outliers"]) -> float:
    """Return std / mean of the norms of late rows, outliers left out; 0 where all norms are equal."""
    return coefficient_of_variation(np.linalg.norm(rows[late_positions(len(rows), outliers)], axis=1))


def late_positions(n: int, outliers: Int[Array, " outliers"]) -> Int[Array, " inliers"]:
    """Return the late positions that are no outliers; all late ones where each is."""
    late = np.arange(n)[late_rows(n)]
    inliers = np.setdiff1d(late, outliers)
    return inliers if len(inliers) else late


def coefficient_of_variation(values: Float[Array, " n"]) -> float:
    mean = float(values.mean())
    return float(values.std()) / mean if mean else 0.0
