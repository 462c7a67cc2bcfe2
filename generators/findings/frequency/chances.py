"""Null distributions for the claims about frequency: other axes, frequencies that only drift, other channels."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.frequency.tokens import FrequencyTokens
from generators.findings.measured import Interval, StoredChance
from generators.findings.nulls import DRAWS, RESAMPLES, drawn, interval
from generators.maths.drift import drifting_correlations
from generators.maths.ranks import unit_ranks
from generators.maths.resampling import LEVEL, item_weights
from generators.maths.rotations import best_axis_correlations

TURNS = 100  # draws of turned tokens: ranking thousands of tokens along every axis is expensive
AXES = "the best axes of tokens turned at random"
DRIFT = "frequencies that only drift along the ids as the real ones do"
OTHERS = "channels picked at random"


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
    seed: int

    @cached_property
    def values(self) -> Float[Array, " n"]:
        return self.tokens.log_frequency[self.tokens.compared]

    @cached_property
    def ranks(self) -> Float[Array, "d n"]:
        return unit_ranks(self.E[self.tokens.compared].T, np.float32)

    def chances(self) -> FrequencyChances:
        rng = np.random.default_rng(self.seed)
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
        weights = item_weights(len(self.values), RESAMPLES, np.random.default_rng(self.seed)).astype(np.float32)
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
