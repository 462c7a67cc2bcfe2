"""Whether positions are a table of sines: then they were computed by a formula, not learned."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

EXACT = 1e-3  # largest residual of the recurrence, relative to the channel's bends
ROUNDING = 1e-6  # relative to a channel's size; float32 has 6e-8, and a few errors add up
ROUNDING_OF_HALF = 2e-3  # the same for a table stored in 16 bits: float16 has 5e-4
FEWEST_ROWS = 8
FEWEST = 3  # circles that make a table
SAME_PERIOD = 1e-3  # relative difference of two periods that are one
LEAST_ROUND = 0.5  # ratio of the axes of an ellipse that counts as a circle
EVEN = 0.05  # variation of the ratios of neighbouring periods that are a geometric series


class Sines(TypedDict):
    """A table in which every channel is a wave of one period: its circles that turn at least once.

    `geometric` says whether every period is the same multiple of the one before; `largest_share` is the share of P's
    variance that one circle holds, `turns` the mean of the circles' turns, each weighed by its share.
    """

    circles: int
    shortest_period: float
    longest_period: float
    geometric: bool
    largest_share: float
    turns: float


def sines(P: Float[Array, "n d"]) -> Sines | None:
    """Return what table of sines P is, None where it is none.

    A wave of one period is what satisfies x(t+1) + x(t-1) = 2 cos(omega) x(t) at every t, whatever its phase; two
    of one period but different phases make a circle.
    """
    periods = channel_periods(P) if len(P) >= FEWEST_ROWS else None
    if periods is None:
        return None
    order = np.argsort(periods)
    order = order[periods[order] <= len(P)]
    found = periods[order]
    first = np.flatnonzero(np.diff(found, prepend=0) > SAME_PERIOD * found)  # index of each circle's first channel
    circles = np.split(P[:, order], first[1:], axis=1)
    if len(first) < FEWEST or not all(_is_circle(channels) for channels in circles):
        return None
    shares = np.array([channels.var(axis=0).sum() for channels in circles]) / P.var(axis=0).sum()
    ratios = np.diff(np.log(found[first]))
    return {
        "circles": len(first),
        "shortest_period": float(found[0]),
        "longest_period": float(found[first[-1]]),
        "geometric": bool(ratios.std() <= EVEN * ratios.mean()),
        "largest_share": float(shares.max()),
        "turns": float(shares @ ((len(P) - 1) / found[first])),
    }


def _is_circle(channels: Float[Array, "n c"]) -> bool:
    """Return whether waves of one period have phases that differ."""
    strengths = np.linalg.svd(channels, compute_uv=False)
    return len(strengths) > 1 and bool(strengths[1] >= LEAST_ROUND * strengths[0])


def channel_periods(P: Float[Array, "n d"]) -> Float[Array, " d"] | None:
    """Return the period of every channel, in positions (infinite where it does not bend); None if one is no wave."""
    here, neighbours = P[1:-1], P[2:] + P[:-2]
    size = np.sum(here**2, axis=0)
    factor = np.divide(np.sum(here * neighbours, axis=0), size, out=np.full(P.shape[1], 2.0), where=size > 0)
    remaining = np.sum((neighbours - factor * here) ** 2, axis=0)
    bends = np.sum((neighbours - 2 * here) ** 2, axis=0)
    with np.errstate(over="ignore", under="ignore"):  # numbers beyond 16 bits differ after the conversion
        in_half = np.array_equal(P, P.astype(np.float16))
    rounding = ROUNDING_OF_HALF if in_half else ROUNDING
    if np.any(remaining > EXACT**2 * bends + rounding**2 * size):
        return None
    omega = _at_a_quarter(P, np.arccos(np.clip(factor / 2, -1, 1)))
    return np.divide(2 * np.pi, omega, out=np.full(P.shape[1], np.inf), where=omega > 0)


def _at_a_quarter(P: Float[Array, "n d"], omega: Float[Array, " d"]) -> Float[Array, " d"]:
    """Return the frequencies (radians per position) from x(t+k) + x(t-k) = 2 cos(k omega) x(t), k a quarter period.

    From one step to the next a slow wave bends by less than what 16 bits round.
    """
    quarters = np.divide(np.pi / 2, omega, out=np.full(len(omega), np.inf), where=omega > 0)
    steps = np.clip(quarters, 1, max(1, (len(P) - 1) // 3)).round().astype(int)
    found = np.empty_like(omega)
    for step in np.unique(steps):
        channels = P[:, steps == step]
        here, neighbours = channels[step:-step], channels[2 * step :] + channels[: -2 * step]
        size = np.sum(here**2, axis=0)
        factor = np.divide(np.sum(here * neighbours, axis=0), size, out=np.full(len(size), 2.0), where=size > 0)
        found[steps == step] = np.arccos(np.clip(factor / 2, -1, 1)) / step
    return found
