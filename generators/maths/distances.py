"""What positions do inside attention: rotations of queries and keys, and biases on scores by distance.

An offset is query position - key position, as in `kernels.py`.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.base.architecture import Buckets, Rotary

# Rotations


def turned(rows: Float[Array, "heads n c"], rotation: Rotary | None) -> Float[Array, "heads n c"]:
    """Return queries or keys as their positions turn them.

    Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021).
    """
    if rotation is None:
        return rows
    half = rotation.dim // 2
    angles = np.arange(rows.shape[1])[:, None] * (2 * math.pi / np.asarray(rotation.periods))
    cosines, sines = rotation.strength * np.cos(angles), rotation.strength * np.sin(angles)
    first = slice(0, rotation.dim, 2) if rotation.adjacent else slice(0, half)
    second = slice(1, rotation.dim, 2) if rotation.adjacent else slice(half, rotation.dim)
    result = rows.copy()
    result[..., first] = rows[..., first] * cosines - rows[..., second] * sines
    result[..., second] = rows[..., second] * cosines + rows[..., first] * sines
    return result


# Biases by distance


def slope_biases(slopes: Sequence[float], n: int) -> Float[Array, "heads offsets"]:
    """Return what slopes take from the scores of every head, for offsets from n - 1 back to 1 - n ahead.

    Source: Press, Smith and Lewis, "Train Short, Test Long: Attention with Linear Biases Enables Input Length
    Extrapolation" (ICLR 2022).
    """
    return -np.abs(offsets_of(n)) * np.asarray(slopes, np.float64)[:, None]


def bucket_of(offsets: Int[Array, "..."], buckets: Buckets) -> Int[Array, "..."]:
    """Return the row of a table of relative biases for each offset, query position - key position (T5).

    Source: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer" (JMLR
    2020), section 2.1, in the bucketing of its software.

    Half of the rows (of each direction, where keys may come after) are one per distance; the others grow
    logarithmically up to `max_distance`, beyond which all share the last.
    """
    count, start = buckets.count, np.zeros_like(offsets)
    if buckets.both_ways:
        count //= 2
        start = np.where(offsets < 0, count, 0)
        distance = np.abs(offsets)
    else:
        distance = np.maximum(offsets, 0)
    exact = count // 2
    with np.errstate(divide="ignore"):
        grown = np.log(distance.astype(np.float32) / np.float32(exact)) / np.float32(
            math.log(buckets.max_distance / exact)
        )
    far = np.minimum(exact + np.maximum(grown * (count - exact), 0).astype(int), count - 1)
    return start + np.where(distance < exact, distance, far)


def bias_by_offset(table: Float[Array, "rows heads"], buckets: Buckets, n: int) -> Float[Array, "heads offsets"]:
    """Return what relative biases add to the scores of every head, for offsets from n - 1 back to 1 - n ahead."""
    return table[bucket_of(offsets_of(n), buckets)].T


def offsets_of(n: int) -> Int[Array, " offsets"]:
    """Return every offset in a context of n, from n - 1 back to 1 - n ahead."""
    return np.arange(n - 1, -n, -1)
