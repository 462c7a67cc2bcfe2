"""Correlations, of values and of ranks; of all channels of a matrix at once."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

BLOCK = 16  # channels ranked at once


def pearson(x: Float[Array, " n"], y: Float[Array, " n"]) -> float | None:
    """Return Pearson's correlation, None where either side is constant or empty."""
    if not len(x) or not np.ptp(x) or not np.ptp(y):
        return None
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


def spearman(x: Float[Array, " n"], y: Float[Array, " n"]) -> float | None:
    """Return Spearman's correlation (ties share their mean rank), None where either side is constant or empty."""
    from scipy.stats import rankdata

    return pearson(rankdata(x), rankdata(y))


@dataclass(frozen=True)
class Ranked:
    """Centred mid-ranks of a quantity over the items it is known for, 0 for the others."""

    known: Bool[Array, " n"]
    ranks: Float[Array, " n"]
    norm: float


def rank(values: Float[Array, " n"], known: Bool[Array, " n"]) -> Ranked:
    """Return centred mid-ranks of the known values."""
    from scipy.stats import rankdata

    ranks = np.zeros(len(values))
    ranks[known] = rankdata(values[known])
    ranks[known] -= (known.sum() + 1) / 2
    return Ranked(known, ranks, float(np.linalg.norm(ranks)))


def strongest_channel(E: Float[Array, "V d"], values: Float[Array, " V"]) -> int:
    """Return the channel whose rank correlation with a value per row is strongest; a row's NaN is not known."""
    rho = channel_correlations(E, [rank(values, np.isfinite(values))])
    return int(np.argmax(np.abs(rho[0])))


def channel_correlations(E: Float[Array, "V d"], targets: list[Ranked]) -> Float[Array, "targets d"]:
    """Return Spearman's correlation of every channel with every target, sorting each channel once.

    A constant channel correlates with nothing: 0.
    """
    blocks = [slice(a, a + BLOCK) for a in range(0, E.shape[1], BLOCK)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(
            pool.map(lambda block: _block_correlations(np.ascontiguousarray(E[:, block].T), targets), blocks)
        )
    return np.concatenate(parts, axis=1)


def _block_correlations(
    columns: Float[Array, "channels V"], targets: list[Ranked]
) -> Float[Array, "targets channels"]:
    found = np.zeros((len(targets), len(columns)))
    orders = np.argsort(columns, axis=1)
    ends = [_group_ends(column[order]) for column, order in zip(columns, orders, strict=True)]
    for known, rows in _by_known(targets):
        ranks = np.empty(columns.shape)
        norms = np.empty(len(columns))
        for i, order in enumerate(orders):
            ranks[i, order], norms[i] = _ranks_in_order(known[order], ends[i])
        products = np.stack([targets[row].ranks for row in rows]) @ ranks.T
        scale = np.outer([targets[row].norm for row in rows], norms)
        found[rows] = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
    return found


def _by_known(targets: list[Ranked]) -> list[tuple[Bool[Array, " V"], list[int]]]:
    """Return the different sets of known rows, each with the targets that have it."""
    sets: list[tuple[Bool[Array, " V"], list[int]]] = []
    for row, target in enumerate(targets):
        same = next((rows for known, rows in sets if np.array_equal(known, target.known)), None)
        if same is None:
            sets.append((target.known, [row]))
        else:
            same.append(row)
    return sets


def _group_ends(ordered: Float[Array, " V"]) -> Int[Array, " groups"] | None:
    """Return where each group of equal values ends (exclusive), None where all values differ."""
    last = np.append(ordered[1:] != ordered[:-1], True)
    return None if last.all() else np.flatnonzero(last) + 1


def _ranks_in_order(known: Bool[Array, " V"], ends: Int[Array, " groups"] | None) -> tuple[Float[Array, " V"], float]:
    """Return the mid-ranks among known values, in sorted order, and the norm of these ranks once centred."""
    so_far = np.cumsum(known, dtype=np.float64)
    n = so_far[-1]
    if ends is None:
        return so_far, float(np.sqrt(n * (n * n - 1) / 12))
    upto = so_far[ends - 1]
    counts = np.diff(upto, prepend=0.0)
    middle = upto - (counts - 1) / 2
    variance = float(np.sum(counts * (middle - (n + 1) / 2) ** 2))
    return np.repeat(middle, np.diff(ends, prepend=0)), float(np.sqrt(variance))
