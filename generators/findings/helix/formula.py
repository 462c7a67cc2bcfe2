"""Whether positions are a table of sines: then they were computed by a formula, not learned."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

EXACT = 1e-3  # of a channel's bends, what may remain of them under its recurrence
ROUNDING = 1e-6  # of a channel's size; float32 has 6e-8, a few of which add up
FEWEST = 3  # circles that make a table
ALIKE = 1e-3  # relative difference of two periods that are one
EVEN = 0.05  # variation of the ratios of neighbouring periods that are a geometric series


class Sines(TypedDict):
    """A table in which every channel is a wave of one period: its circles that turn at least once.

    `geometric` says whether every period is the same multiple of the one before; `largest_share` is the share of P's
    variance that one circle holds, `turns` the mean of turns over P's variance.
    """

    circles: int
    shortest_period: float
    longest_period: float
    geometric: bool
    largest_share: float
    turns: float


def sines(P: Float[Array, "n d"]) -> Sines | None:
    """Return what table of sines P is, None where it is none.

    A wave of one period is what satisfies x(t+1) + x(t-1) = 2 cos(omega) x(t) at every t, whatever its phase.
    """
    periods = channel_periods(P)
    if periods is None:
        return None
    variances = P.var(axis=0)
    turning = periods <= len(P)
    found = np.sort(periods[turning])
    first = np.flatnonzero(np.diff(found, prepend=0) > ALIKE * found)  # of each circle
    if len(first) < FEWEST:
        return None
    ratios = np.diff(np.log(found[first]))
    of_circle = np.add.reduceat(variances[turning][np.argsort(periods[turning])], first)
    return {
        "circles": len(first),
        "shortest_period": float(found[0]),
        "longest_period": float(found[first[-1]]),
        "geometric": bool(ratios.std() <= EVEN * ratios.mean()),
        "largest_share": float(of_circle.max() / variances.sum()),
        "turns": float(np.sum(variances * (len(P) - 1) / periods) / variances.sum()),
    }


def channel_periods(P: Float[Array, "n d"]) -> Float[Array, " d"] | None:
    """Return the period of every channel, in positions (infinite where it hardly bends); None where one is no wave."""
    here, beside = P[1:-1], P[2:] + P[:-2]
    size = np.sum(here**2, axis=0)
    factor = np.divide(np.sum(here * beside, axis=0), size, out=np.full(P.shape[1], 2.0), where=size > 0)
    remaining = np.sum((beside - factor * here) ** 2, axis=0)
    bends = np.sum((beside - 2 * here) ** 2, axis=0)
    if np.any(remaining > EXACT**2 * bends + ROUNDING**2 * size):
        return None
    omega = np.arccos(np.clip(factor / 2, -1, 1))
    return np.divide(2 * np.pi, omega, out=np.full(P.shape[1], np.inf), where=omega > 0)
