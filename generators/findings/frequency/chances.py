"""Null distributions for the claims about frequency: other axes, frequencies that only drift, other channels."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Vocabulary
from generators.findings.measured import Interval, StoredChance
from generators.findings.nulls import DRAWS, RESAMPLES, drawn, interval
from generators.maths.blocks import spread_ids
from generators.maths.drift import drifting_correlations
from generators.maths.ranks import unit_ranks
from generators.maths.resampling import (
    LEVEL,
    Statistic,
    item_weights,
    ranking,
    resample_items,
    resampled_ids,
    spearman_of,
    weighted_correlation,
)
from generators.maths.rotations import best_axis_correlations

TURNS = 100  # draws of turned tokens: ranking thousands of tokens along every axis is expensive
AXES = "the best axes of tokens turned at random"
DRIFT = "frequencies that only drift along the ids as the real ones do"
OTHERS = "channels picked at random"

SEED = 20211138
COMPARED = 5000  # tokens, spread over the ids, used for nulls and the probe

FOLDS = 5  # folds of neighboring ids, so that drift along the ids doesn't help
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # relative to the mean energy of a channel

Correlation = TypedDict("Correlation", {"of": str, "with": str, "rho": float, "low": float, "high": float})
Pair = tuple[str, str]


class Probe(TypedDict):
    """Rank correlation of what the probe reads with frequency, on tokens that it was not fitted on."""

    rho: float


@dataclass(frozen=True)
class FrequencyTokens:
    """What is known of every token in addition to its embedding; an unknown frequency is NaN."""

    vocabulary: Vocabulary | None
    log_frequency: Float[Array, " V"]
    norms: Float[Array, " V"]

    @property
    def known(self) -> Bool[Array, " V"]:
        return np.isfinite(self.log_frequency)

    @property
    def compared(self) -> Int[Array, " m"]:
        known = np.flatnonzero(self.known)
        return known[spread_ids(len(known), COMPARED)]


class FrequencyChances(TypedDict):
    """By number that is claimed about; `drift` is the frequency channel's, of frequencies that only drift."""

    frequency_channel: StoredChance
    drift: StoredChance
    norm_rho: StoredChance
    ln2_channel_rank: StoredChance


@dataclass(frozen=True)
class TokenSample:
    """Tokens spread over the ids, at most 5,000, on which channels are compared with chance and resampled."""

    E: Float[Array, "V d"]
    tokens: FrequencyTokens

    @cached_property
    def values(self) -> Float[Array, " n"]:
        return self.tokens.log_frequency[self.tokens.compared]

    @cached_property
    def ranks(self) -> Float[Array, "d n"]:
        return unit_ranks(self.E[self.tokens.compared].T, np.float32)

    def chances(self) -> FrequencyChances:
        rng = np.random.default_rng(SEED)
        axes = best_axis_correlations(self.E[self.tokens.compared], self.values, TURNS, rng)
        known = self.tokens.known
        norms, frequencies = self.tokens.norms[known], self.tokens.log_frequency[known]
        drifting = np.abs(drifting_correlations(self.ranks, self.values, DRAWS, rng)).max(axis=1)
        drifting_norms = drifting_correlations(unit_ranks(norms[None], np.float32), frequencies, DRAWS, rng)[:, 0]
        return {
            "frequency_channel": drawn(AXES, axes),
            "drift": drawn(DRIFT, drifting),
            "norm_rho": drawn(DRIFT, drifting_norms, "at most"),
            "ln2_channel_rank": rank_of_any(self.E.shape[1]),
        }

    def rank_interval(self, channel: int) -> Interval:
        """Return the 95 % interval of a channel's place by |rank correlation| with frequency, tokens resampled.

        Their ranks are those among all tokens compared in every resampling.
        """
        weights = item_weights(len(self.values), RESAMPLES, np.random.default_rng(SEED)).astype(np.float32)
        y = unit_ranks(self.values[None], np.float32)[0]
        strength = np.abs(_weighted_correlations(self.ranks, y, weights))
        return interval(np.sum(strength > strength[:, [channel]], axis=1) + 1.0)


def rank_of_any(d: int) -> StoredChance:
    """Return the ranks of all channels, each as likely: at most 1 % of them lie below the limit."""
    return {"null": OTHERS, "median": (d + 1) / 2, "limit": float(int(LEVEL * d + 1e-9) + 1), "draws": d}


def _weighted_correlations(
    x: Float[Array, "d n"], y: Float[Array, " n"], weights: Float[Array, "draws n"]
) -> Float[Array, "draws d"]:
    """Return Pearson's correlations of every row of x with y, for every row of weights; 0 for constant rows."""
    n = weights.shape[1]
    mean_x, mean_y = weights @ x.T / n, (weights @ y / n)[:, None]
    spread_x = weights @ (x * x).T / n - mean_x**2
    spread_y = (weights @ (y * y) / n)[:, None] - mean_y**2
    shared = (weights * y) @ x.T / n - mean_x * mean_y
    scale = np.sqrt(np.clip(spread_x * spread_y, 0, None))
    return np.divide(shared, scale, out=np.zeros_like(scale), where=scale > 0)


def probe(E: Float[Array, "V d"], tokens: FrequencyTokens) -> Probe:
    """Return how well ridge regression on all channels reads the rank by frequency of tokens spread over the ids.

    It is fitted on four fifths of them and read on the fifth, five times; of five penalties the best counts.
    """
    from scipy.stats import rankdata

    ids = tokens.compared
    ranks = rankdata(tokens.log_frequency[ids]).astype(np.float32)
    read = _held_out(E, ids, ranks / len(ranks))
    rhos = [float(spearman_of(column, ranks)(np.ones((1, len(ids))))[0]) for column in read.T]
    return {"rho": max(rhos)}


def _held_out(
    E: Float[Array, "V d"], ids: Int[Array, " m"], target: Float[Array, " m"]
) -> Float[Array, "m penalties"]:
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import KFold

    rows = E[ids].astype(np.float32)
    penalties = np.array(PENALTIES) * float(np.var(rows, axis=0).sum()) * len(rows) / rows.shape[1]
    read = np.empty((len(ids), len(penalties)), np.float32)
    for fitted, held_out in KFold(FOLDS).split(rows):
        model = Ridge(alpha=penalties + np.finfo(np.float32).tiny, solver="cholesky")
        model.fit(rows[fitted], np.repeat(target[fitted, None], len(penalties), axis=1))
        read[held_out] = model.predict(rows[held_out])
    return read


def correlations(values: dict[str, Float[Array, " n"]]) -> list[Correlation]:
    """Return Spearman's correlation of every pair of quantities with its 95 % bootstrap interval."""
    pairs = list(combinations(values, 2))
    n = len(next(iter(values.values())))
    rhos = _rhos_of(values, pairs)
    everyone = rhos(np.ones((1, n)))[0]
    some = resampled_ids(n)
    of_some = _rhos_of({name: column[some] for name, column in values.items()}, pairs)
    drawn = resample_items(of_some, len(some), RESAMPLES, np.random.default_rng(SEED))
    rows: list[Correlation] = []
    for (a, b), rho, column in zip(pairs, everyone.tolist(), drawn.T, strict=True):
        low, high = interval(column)
        rows.append({"of": a, "with": b, "rho": rho, "low": low, "high": high})
    return rows


def strength(row: Correlation) -> Interval:
    ends = sorted((abs(row["low"]), abs(row["high"])))
    return ends if row["low"] * row["high"] > 0 else [0.0, ends[1]]


def _rhos_of(values: dict[str, Float[Array, " n"]], pairs: list[Pair]) -> Statistic:
    rankings = {name: ranking(quantity) for name, quantity in values.items()}

    def statistic(weights: Float[Array, "draws n"]) -> Float[Array, "draws pairs"]:
        ranks = {name: ranked(weights) for name, ranked in rankings.items()}
        return np.stack([weighted_correlation(weights, ranks[a], ranks[b]) for a, b in pairs], axis=1)

    return statistic
