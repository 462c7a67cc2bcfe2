"""Are the longest and shortest tokens extreme on the first direction beyond what their norm implies?

A token far along a direction is long for that alone. What that makes of it: every token keeps its projection on the
direction, and what is left of it, in length, goes to another token.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.nulls import DRAWS

SHARE = 0.01  # share of tokens at either end
FEWEST = 20
RANGE = (0.005, 0.995)  # quantiles of the draws (two-sided)


class ExtremeProjection(TypedDict):
    """Mean projection of the longest or shortest tokens, in standard deviations from that of all.

    `implied` is what their norm alone makes of it (the median), `low` and `high` hold 99 % of the draws.
    """

    value: float
    implied: float
    low: float
    high: float


class Extremes(TypedDict):
    count: int
    longest: ExtremeProjection
    shortest: ExtremeProjection


def extremes(projections: Float[Array, " V"], norms: Float[Array, " V"], seed: int) -> Extremes:
    """Return how far along a direction the longest and the shortest hundredth of the tokens are, at least 20 each."""
    count = min(max(FEWEST, int(SHARE * len(norms))), len(norms) // 2)
    spread = float(projections.std())
    scores = (projections - projections.mean()) / (spread if spread else 1.0)
    along, rest = projections**2, np.clip(norms**2 - projections**2, 0, None)
    rng = np.random.default_rng(seed)
    draws = np.array([_ends(scores, along + rng.permutation(rest), count) for _ in range(DRAWS)])
    shortest, longest = (
        ExtremeProjection(value=value, implied=float(np.median(column)), low=low, high=high)
        for value, column, (low, high) in zip(
            _ends(scores, norms, count), draws.T, np.quantile(draws, RANGE, axis=0).T.tolist(), strict=True
        )
    )
    return {"count": count, "longest": longest, "shortest": shortest}


def _ends(scores: Float[Array, " V"], lengths: Float[Array, " V"], count: int) -> tuple[float, float]:
    order = np.argpartition(lengths, (count, len(lengths) - count))
    return float(scores[order[:count]].mean()), float(scores[order[len(order) - count :]].mean())
