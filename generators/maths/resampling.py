"""Null distributions and bootstrap intervals.

A null distribution is summarized by its median and by the limit that a value must pass. Intervals come from
resampling. Positions are drawn in blocks, because neighbours are correlated (Künsch 1989); blocks wrap around, so
that every position is equally likely (Politis and Romano 1992). Tokens are drawn one by one; windows of text with all
others of their file, because windows of one file are alike.

A resampling is a row of weights: how often each item was drawn. A sum over the items of every resampling is then one
matrix product.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int, Real
from numpy import ndarray as Array

from generators.maths.blocks import spread_ids

Sense = Literal["at least", "at most"]
Statistic = Callable[[Float[Array, "draws n"]], Float[Array, "draws ..."]]

LEVEL = 0.01  # share of draws of a null that may lie beyond the limit
COVERAGE = 0.95
BLOCKS = 16  # blocks of positions
MOST_ITEMS, SOME_ITEMS = 300_000, 2**16
BATCH_BYTES = 2**22  # bytes of weights held at once


@dataclass(frozen=True)
class NullSummary:
    """What a null gives for a number of which large values ("at least") or small ones are evidence."""

    median: float
    limit: float  # the 99th percentile of the draws, or the first
    draws: int
    sense: Sense


def chance(draws: Real[Array, " draws"], sense: Sense = "at least") -> NullSummary:
    """Return the median of draws under a null, and the limit that at most 1 % of further ones lie beyond.

    It is the draw that leaves fewer than 1 % of draws + 1 beyond it: the extreme one of 100, the second of 200.

    Raises ValueError: fewer than 99 draws, too few for a limit that 1 % lie beyond.
    """
    count = len(draws)
    beyond_limit = int(LEVEL * (count + 1) + 1e-9)
    if not beyond_limit:
        raise ValueError(f"{count} draws have no 99th percentile; at least 99 are needed")
    ordered = np.sort(np.asarray(draws, np.float64))
    limit = ordered[-beyond_limit] if sense == "at least" else ordered[beyond_limit - 1]
    return NullSummary(float(np.median(ordered)), float(limit), count, sense)


def beyond(value: float, null: NullSummary) -> bool:
    return bool(value > null.limit if null.sense == "at least" else value < null.limit)


def interval(draws: Float[Array, " draws"]) -> tuple[float, float]:
    """Return the 95 % interval of resampled values: their percentiles 2.5 and 97.5."""
    low, high = np.quantile(draws, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return float(low), float(high)


def jackknife(values: Float[Array, " folds"], whole: float, counts: Float[Array, " folds"]) -> tuple[float, float]:
    """Return the 95 % interval of a value from what it is with each fold of windows left out.

    `counts` are windows in each fold, which may differ (Busing, Meijer and van der Leeden 1999); a fold without any
    says nothing. `whole` is the value of all windows.
    """
    values, counts = values[counts > 0], counts[counts > 0]
    times = counts.sum() / counts
    pseudo = times * whole - (times - 1) * values
    estimate = len(values) * whole - float(np.sum((1 - 1 / times) * values))
    error = np.sqrt(np.mean((pseudo - estimate) ** 2 / np.maximum(times - 1, 1e-12)))
    return whole - 1.96 * float(error), whole + 1.96 * float(error)


# Resampling


def block_weights(n: int, draws: int, rng: np.random.Generator) -> Float[Array, "draws n"]:
    """Return how often each of n positions is drawn when blocks of n / 16 neighbours are."""
    block = max(1, n // BLOCKS)
    starts = rng.integers(n, size=(draws, -(-n // block)))
    return _counts((((row[:, None] + np.arange(block)) % n).ravel()[:n] for row in starts), n, draws)


def item_weights(n: int, draws: int, rng: np.random.Generator) -> Float[Array, "draws n"]:
    """Return how often each item (token, file) is drawn when n of them are drawn one by one."""
    return _counts((rng.integers(n, size=n) for _ in range(draws)), n, draws)


def cluster_weights(clusters: Int[Array, " n"], draws: int, rng: np.random.Generator) -> Float[Array, "draws n"]:
    """Return how often each item is drawn when whole clusters are, as many as there are; items where there is one."""
    labels, of_item = np.unique(clusters, return_inverse=True)
    if len(labels) < 2:
        return item_weights(len(clusters), draws, rng)
    return item_weights(len(labels), draws, rng)[:, of_item]


def _counts(drawn: Iterable[Int[Array, " m"]], n: int, draws: int) -> Float[Array, "draws n"]:
    """Count the draws one at a time, so that only one of them is in memory."""
    counts = np.empty((draws, n))
    for row, items in zip(counts, drawn, strict=True):
        row[:] = np.bincount(items, minlength=n)
    return counts


def resample_items(statistic: Statistic, n: int, draws: int, rng: np.random.Generator) -> Float[Array, "draws ..."]:
    """Return a statistic of weights for many resamplings of n items, a batch of them at a time."""
    size = max(1, BATCH_BYTES // (8 * n))
    batches = (min(size, draws - start) for start in range(0, draws, size))
    return np.concatenate([statistic(item_weights(n, batch, rng)) for batch in batches])


def resampled_ids(n: int) -> Int[Array, " m"]:
    """Return which of n items are drawn from: all, or 65,536 spread over more than 300,000.

    An interval over some of the items is wider than one over all would be.
    """
    return spread_ids(n, SOME_ITEMS if n > MOST_ITEMS else n)


# Statistics of weights


def ratio_of(inside: Float[Array, " n"], whole: Float[Array, " n"]) -> Statistic:
    """Return the statistic sum(inside) / sum(whole): a share of energy, or a covariance product over a trace.

    Items must be centred already. That resampling also moves the mean a little is ignored.
    """

    def statistic(weights: Float[Array, "draws n"]) -> Float[Array, " draws"]:
        total = weights @ whole
        return np.divide(weights @ inside, total, out=np.zeros_like(total), where=total != 0)

    return statistic


def pearson_of(x: Float[Array, " n"], y: Float[Array, " n"]) -> Statistic:
    """Return the statistic Pearson's correlation; 0 where a side is constant."""
    x, y = x - x.mean(), y - y.mean()
    return lambda weights: weighted_correlation(weights, *(np.broadcast_to(side, weights.shape) for side in (x, y)))


def spearman_of(x: Float[Array, " n"], y: Float[Array, " n"]) -> Statistic:
    """Return the statistic Spearman's correlation: every resampling is ranked anew, without sorting it."""
    ranked_x, ranked_y = ranking(x), ranking(y)
    return lambda weights: weighted_correlation(weights, ranked_x(weights), ranked_y(weights))


def auc_of(scores: Float[Array, " n"], positive: Bool[Array, " n"]) -> Statistic:
    """Return the statistic area under the ROC curve: how often a positive item outscores another, ties half."""
    ranked = ranking(scores)

    def statistic(weights: Float[Array, "draws n"]) -> Float[Array, " draws"]:
        ours = weights * positive
        drawn, total = ours.sum(axis=1), weights.sum(axis=1)
        pairs = drawn * (total - drawn)
        wins = np.sum(ours * ranked(weights), axis=1) - drawn * (drawn + 1) / 2
        return np.divide(wins, pairs, out=np.full_like(pairs, 0.5), where=pairs > 0)

    return statistic


def ranking(values: Float[Array, " n"]) -> Callable[[Float[Array, "draws n"]], Float[Array, "draws n"]]:
    """Return a function that gives every item's mid-rank in a sample with `weights` copies of each item."""
    # The order of the values never changes, so they are sorted once. A resampling changes only how many copies come
    # before a value, and a cumulative sum of the weights in sorted order counts these.
    order = np.argsort(values, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))
    group = np.empty(len(values), np.intp)
    group[order] = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))

    def ranks(weights: Float[Array, "draws n"]) -> Float[Array, "draws n"]:
        upto = np.cumsum(weights[:, order], axis=1)[:, ends]
        counts = np.diff(upto, axis=1, prepend=0.0)
        return (upto - (counts - 1) / 2)[:, group]

    return ranks


def weighted_correlation(
    weights: Float[Array, "draws n"], x: Float[Array, "draws n"], y: Float[Array, "draws n"]
) -> Float[Array, " draws"]:
    """Return Pearson's correlation of x with y in every resampling; 0 where a side is constant."""
    total = weights.sum(axis=1, keepdims=True)
    x = x - np.sum(weights * x, axis=1, keepdims=True) / total
    y = y - np.sum(weights * y, axis=1, keepdims=True) / total
    scale = np.sqrt(np.sum(weights * x * x, axis=1) * np.sum(weights * y * y, axis=1))
    return np.divide(np.sum(weights * x * y, axis=1), scale, out=np.zeros_like(scale), where=scale > 0)


def spreads(rows: Float[Array, "n d"], weights: Float[Array, "draws n"]) -> Float[Array, "draws d"]:
    """Return the standard deviation of every channel in every resampling of rows."""
    away = rows - rows.mean(axis=0)
    total = weights.sum(axis=1, keepdims=True)
    return np.sqrt(np.clip(weights @ away**2 / total - (weights @ away / total) ** 2, 0, None))


def first_direction_cosine_of(rows: Float[Array, "n m"], rest: Float[Array, " d"]) -> Statistic:
    """Return the statistic |cos| of the first right singular vector with the mean.

    `rows` are a matrix in its leading right singular vectors, in which the first of a resampling is sought; `rest` is
    the part of the mean that lies outside them.
    """
    m = rows.shape[1]
    upper = np.triu_indices(m)
    products = rows[:, upper[0]] * rows[:, upper[1]]
    outside = float(np.sum(rest**2))

    def statistic(weights: Float[Array, "draws n"]) -> Float[Array, " draws"]:
        grams = np.zeros((len(weights), m, m))
        grams[:, upper[1], upper[0]] = weights @ products  # eigh reads the lower triangle
        first = np.linalg.eigh(grams)[1][:, :, -1]
        means = weights @ rows / weights.sum(axis=1, keepdims=True)
        return np.abs(np.sum(first * means, axis=1)) / np.sqrt(np.sum(means**2, axis=1) + outside)

    return statistic
