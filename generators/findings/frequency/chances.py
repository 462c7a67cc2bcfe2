"""What chance gives for the claims about frequency: other axes, frequencies that only drift alike, other channels."""

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.contract import Interval, StoredChance
from generators.findings.frequency.tokens import Tokens
from generators.findings.nulls import DRAWS, RESAMPLES, drawn, interval
from generators.maths.drift import drifting_correlations
from generators.maths.resampling import LEVEL, item_weights
from generators.maths.rotations import best_axis_correlations

AXES = "the best axes of tokens turned at random"
DRIFT = "frequencies that only drift along the ids as the real ones do"
OTHERS = "channels picked at random"


class Chances(TypedDict):
    """By number that is claimed about; `drift` is that of the frequency channel against frequencies that drift alike."""

    frequency_channel: StoredChance
    drift: StoredChance
    norm_rho: StoredChance
    ln2_channel_rank: StoredChance


def chances(E: Float[Array, "V d"], tokens: Tokens, seed: int) -> Chances:
    """Return what the nulls give; those of channels on at most 5,000 tokens spread over the ids."""
    rng = np.random.default_rng(seed)
    known, ids = tokens.known, tokens.compared
    rows, values = E[ids], tokens.log_frequency[ids]
    drifting = np.abs(drifting_correlations(rows.T, values, DRAWS, rng)).max(axis=1)
    norms = drifting_correlations(tokens.norms[known][None], tokens.log_frequency[known], DRAWS, rng)[:, 0]
    return {
        "frequency_channel": drawn(AXES, best_axis_correlations(rows, values, DRAWS, rng)),
        "drift": drawn(DRIFT, drifting),
        "norm_rho": drawn(DRIFT, norms, "at most"),
        "ln2_channel_rank": rank_of_any(E.shape[1]),
    }


def rank_of_any(d: int) -> StoredChance:
    """Return the ranks of all channels, each as likely: at most 1 % of them lie below the limit."""
    return {"null": OTHERS, "median": (d + 1) / 2, "limit": float(int(LEVEL * d + 1e-9) + 1), "draws": d}


def rank_interval(E: Float[Array, "V d"], tokens: Tokens, channel: int, seed: int) -> Interval:
    """Return the 95 % interval of a channel's place by |rank correlation| with frequency, tokens resampled.

    On at most 5,000 of them, spread over the ids, whose ranks are those among all of these in every resampling.
    """
    from scipy.stats import rankdata

    ids = tokens.compared
    weights = item_weights(len(ids), RESAMPLES, np.random.default_rng(seed)).astype(np.float32)
    y = _centred(rankdata(tokens.log_frequency[ids]))
    x = _centred(rankdata(E[ids].T, axis=1))
    strength = np.abs(_weighted_correlations(x, y, weights))
    return interval(_places(strength, channel))


def _places(strength: Float[Array, "draws d"], channel: int) -> Int[Array, " draws"]:
    return np.sum(strength > strength[:, [channel]], axis=1) + 1


def _centred(ranks: Float[Array, "*rows n"]) -> Float[Array, "*rows n"]:
    n = ranks.shape[-1]
    return ((ranks - (n + 1) / 2) / n).astype(np.float32)


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
