"""Spearman's correlations of a few quantities with one another, with bootstrap intervals over tokens."""

from itertools import combinations

import numpy as np
from jaxtyping import Float, Int, Real
from numpy import ndarray as Array
from typing_extensions import TypedDict

RESAMPLES = 400
INTERVAL = (2.5, 97.5)  # percentiles

Correlation = TypedDict("Correlation", {"of": str, "with": str, "rho": float, "low": float, "high": float})


def correlations(values: dict[str, Float[Array, " n"]], seed: int) -> list[Correlation]:
    """Return Spearman's correlation of every pair of quantities, each with its 95 % bootstrap interval."""
    groups = {name: np.unique(v, return_inverse=True)[1] for name, v in values.items()}
    pairs = list(combinations(values, 2))
    n = len(next(iter(values.values())))
    everyone = _weighted_rhos(groups, pairs, np.ones(n))
    rng = np.random.default_rng(seed)
    drawn = np.array(
        [_weighted_rhos(groups, pairs, np.bincount(rng.integers(n, size=n), minlength=n)) for _ in range(RESAMPLES)]
    )
    low, high = np.percentile(drawn, INTERVAL, axis=0)
    return [
        {"of": a, "with": b, "rho": everyone[i], "low": float(low[i]), "high": float(high[i])}
        for i, (a, b) in enumerate(pairs)
    ]


def _weighted_rhos(
    groups: dict[str, Int[Array, " n"]], pairs: list[tuple[str, str]], weights: Real[Array, " n"]
) -> list[float]:
    """Return Spearman's correlations of a sample in which token i occurs weights[i] times; no sorting needed."""
    total = float(weights.sum())
    ranks = {}
    for name, group in groups.items():
        counts = np.bincount(group, weights)
        middle = np.cumsum(counts) - (counts - 1) / 2 - (total + 1) / 2
        ranks[name] = middle[group]
    spread = {name: float(np.sqrt(np.sum(weights * r * r))) for name, r in ranks.items()}
    return [
        float(np.sum(weights * ranks[a] * ranks[b])) / (spread[a] * spread[b]) if spread[a] and spread[b] else 0.0
        for a, b in pairs
    ]
