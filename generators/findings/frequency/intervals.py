from itertools import combinations

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.measured import Interval
from generators.findings.nulls import RESAMPLES, interval
from generators.maths.resampling import Statistic, ranking, resample_items, resampled_ids, weighted_correlation

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
    """Return Spearman's correlation of every pair of quantities with its 95 % bootstrap interval, and who leads."""
    pairs = list(combinations(values, 2))
    n = len(next(iter(values.values())))
    rhos = _rhos_of(values, pairs)
    everyone = rhos(np.ones((1, n)))[0]
    some = resampled_ids(n)
    of_some = _rhos_of({name: column[some] for name, column in values.items()}, pairs)
    drawn = resample_items(of_some, len(some), RESAMPLES, np.random.default_rng(seed))
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
    ends = sorted((abs(row["low"]), abs(row["high"])))
    return ends if row["low"] * row["high"] > 0 else [0.0, ends[1]]


def _rhos_of(values: dict[str, Float[Array, " n"]], pairs: list[Pair]) -> Statistic:
    """Return the statistic Spearman's correlation of every pair; each quantity is ranked once per resampling."""
    rankings = {name: ranking(quantity) for name, quantity in values.items()}

    def statistic(weights: Float[Array, "draws n"]) -> Float[Array, "draws pairs"]:
        ranks = {name: ranked(weights) for name, ranked in rankings.items()}
        return np.stack([weighted_correlation(weights, ranks[a], ranks[b]) for a, b in pairs], axis=1)

    return statistic
