import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

BLOCK = 16  # channels ranked at once
RANKED_AT_ONCE = 2**18  # numbers per batch


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


def unit_ranks(
    values: Float[Array, "*draws n"], dtype: type[np.floating[Any]] = np.float64
) -> Float[Array, "*draws n"]:
    """Return the mid-ranks of every row, centred and at unit length; zeros for a constant row.

    The product of two such rows is Spearman's correlation, so that a matrix product gives those of many rows at once.
    """
    from scipy.stats import rankdata

    rows = values.reshape(-1, values.shape[-1])
    size = max(1, RANKED_AT_ONCE // max(1, rows.shape[1]))
    found = np.empty(rows.shape, dtype)
    for begin in range(0, len(rows), size):
        ranks = rankdata(rows[begin : begin + size], axis=1) - (rows.shape[1] + 1) / 2
        lengths = np.linalg.norm(ranks, axis=1, keepdims=True)
        found[begin : begin + size] = ranks / np.where(lengths > 0, lengths, 1)
    return found.reshape(values.shape)


def areas_under_curve(scores: Float[Array, "draws n"], positive: Bool[Array, "#draws n"]) -> Float[Array, " draws"]:
    """Return the areas under the ROC curve, a row each: how often a positive item outscores another, ties half."""
    from scipy.stats import rankdata

    count = positive.sum(axis=1)
    # The Mann-Whitney statistic: the sum of the positive items' ranks, less the least that it can be.
    wins = np.sum(rankdata(scores, axis=1) * positive, axis=1) - count * (count + 1) / 2
    return wins / (count * (scores.shape[1] - count))


@dataclass(frozen=True)
class Ranked:
    known: Bool[Array, " n"]
    ranks: Float[Array, " n"]
    norm: float


def rank(values: Float[Array, " n"], known: Bool[Array, " n"]) -> Ranked:
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
    """Return Spearman's correlation of every channel with every target; 0 for a constant channel."""
    # Sorting a channel is the slow step, so each is sorted once. Targets that are known for other rows need other
    # ranks, and those follow from the same order by counting the known rows up to each place.
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
    rows_of: dict[bytes, list[int]] = {}
    for row, target in enumerate(targets):
        rows_of.setdefault(target.known.tobytes(), []).append(row)
    for rows in rows_of.values():
        known = targets[rows[0]].known
        ranks = np.empty(columns.shape)
        norms = np.empty(len(columns))
        for i, order in enumerate(orders):
            ranks[i, order], norms[i] = _ranks_in_order(known[order], ends[i])
        products = np.stack([targets[row].ranks for row in rows]) @ ranks.T
        scale = np.outer([targets[row].norm for row in rows], norms)
        found[rows] = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
    return found


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
