from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

BLOCK_ROWS = 512  # a block in float64 stays below 1/25 of a 30,000-row matrix in float32


def blocks(rows: Float[Array, "rows d"]) -> Iterator[tuple[slice, Float[Array, "block d"]]]:
    """Yield copies in float64 of consecutive rows, at most 512 at a time, each with its slice."""
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, min(start + BLOCK_ROWS, len(rows)))
        yield part, rows[part].astype(np.float64)


def spread_ids(count: int, most: int) -> Int[Array, " ids"]:
    """Return at most `most` of the ids 0..count-1, evenly spaced from the first to the last; the same every time."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(np.int64)


def mean_and_std(rows: Float[Array, "rows d"]) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Return the mean and the standard deviation of every column; of a constant one it is exactly 0."""
    mean = rows.mean(axis=0, dtype=np.float64)
    squares = np.zeros(rows.shape[1])
    for _, block in blocks(rows):
        block -= mean
        squares += np.einsum("ij,ij->j", block, block)
    varies = rows.max(axis=0) > rows.min(axis=0)
    return mean, np.where(varies, np.sqrt(squares / len(rows)), 0)


def norms(rows: Float[Array, "rows d"]) -> Float[Array, " rows"]:
    squares = np.empty(len(rows))
    for part, block in blocks(rows):
        squares[part] = np.einsum("ij,ij->i", block, block)
    return np.sqrt(squares)


def first_identical(rows: Float[Array, "rows d"]) -> Int[Array, " rows"]:
    """Return for every row the first one that equals it bit for bit, which is itself where none before it does."""
    first: dict[bytes, int] = {}  # digests of 32 bytes: the rows themselves would double the memory
    digests = (blake2b(row.tobytes(), digest_size=32).digest() for row in rows)
    return np.array([first.setdefault(digest, i) for i, digest in enumerate(digests)], np.int64)
