"""Spearman's correlations of a few quantities with one another, with bootstrap intervals over tokens."""

from itertools import combinations

import numpy as np
from jaxtyping import Float, Int, Real
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.measured import Interval
from generators.findings.nulls import RESAMPLES, interval
from generators.maths.resampling import item_weights

Correlation = TypedDict("Correlation", {"of": str, "with": str, "rho": float, "low": float, "high": float})
Pair = tuple[str, str]
FREQUENCY = "log_frequency"


class Contest(TypedDict):
    """The candidates for a frequency feature by |correlation| with frequency, strongest first.

    `lead` is by how much the first is ahead of the second, each resampling of tokens comparing both on the same ones.
    """

    order: list[str]
    lead: float
    lead_interval: Interval


def correlations(values: dict[str, Float[Array, " n"]], seed: int) -> tuple[list[Correlation], Contest]:
    """Return Spearman's correlation of every pair of quantities with its 95 % bootstrap interval, and who leads.

    Args:
        values: log-frequency and the candidates, over the same tokens.
        seed: of the resampling.
    """
    groups = {name: np.unique(v, return_inverse=True)[1] for name, v in values.items()}
    pairs = list(combinations(values, 2))
    n = len(next(iter(values.values())))
    everyone = np.array(_weighted_rhos(groups, pairs, np.ones(n)))
    rng = np.random.default_rng(seed)
    drawn = np.array([_weighted_rhos(groups, pairs, item_weights(n, 1, rng)[0]) for _ in range(RESAMPLES)])
    rows: list[Correlation] = []
    for (a, b), rho, column in zip(pairs, everyone.tolist(), drawn.T, strict=True):
        low, high = interval(column)
        rows.append({"of": a, "with": b, "rho": rho, "low": low, "high": high})
    return rows, _contest(pairs, everyone, drawn)


def _contest(pairs: list[Pair], everyone: Float[Array, " pairs"], drawn: Float[Array, "draws pairs"]) -> Contest:
    candidates = [i for i, (of, _) in enumerate(pairs) if of == FREQUENCY]
    first, second, *_ = order = sorted(candidates, key=lambda i: -abs(everyone[i]))
    return {
        "order": [pairs[i][1] for i in order],
        "lead": float(abs(everyone[first]) - abs(everyone[second])),
        "lead_interval": interval(np.abs(drawn[:, first]) - np.abs(drawn[:, second])),
    }


def strength(row: Correlation) -> Interval:
    """Return the 95 % interval of |correlation|."""
    ends = sorted((abs(row["low"]), abs(row["high"])))
    return ends if row["low"] * row["high"] > 0 else [0.0, ends[1]]


def _weighted_rhos(groups: dict[str, Int[Array, " n"]], pairs: list[Pair], weights: Real[Array, " n"]) -> list[float]:
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
