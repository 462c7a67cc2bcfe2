import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.measured import StoredChance
from generators.findings.nulls import DRAWS, drawn
from generators.maths.ranks import strongest_channel

FEWEST = 10
SEED = 20211215


class AlikeTokens(TypedDict):
    """The spread of some tokens in one number, over that of all, and where their median lies among all.

    Spreads are interquartile ranges; `chance` draws as many tokens at random.
    """

    spread: float
    place: float
    chance: StoredChance


class Partners(TypedDict):
    """The shorter tokens of the pairs: alike in norm, and in the frequency channel where one is known."""

    count: int
    norm: AlikeTokens
    channel: int | None
    on_channel: AlikeTokens | None


def partners(
    E: Float[Array, "V d"],
    norms: Float[Array, " V"],
    shorter: Int[Array, " n"],
    log_frequency: Float[Array, " V"] | None,
) -> Partners | None:
    """Return how alike the `shorter` tokens are; None for fewer than ten."""
    if len(shorter) < FEWEST:
        return None
    channel = None if log_frequency is None else strongest_channel(E, log_frequency)
    return {
        "count": len(shorter),
        "norm": alike(norms, shorter),
        "channel": channel,
        "on_channel": None if channel is None else alike(E[:, channel].astype(np.float64), shorter),
    }


def alike(values: Float[Array, " V"], ids: Int[Array, " n"]) -> AlikeTokens:
    whole = _spread(values) or 1.0
    rng = np.random.default_rng(SEED)
    others = [_spread(rng.choice(values, len(ids), replace=False)) / whole for _ in range(DRAWS)]
    return {
        "spread": _spread(values[ids]) / whole,
        "place": float(np.mean(values < np.median(values[ids]))),
        "chance": drawn("as many tokens drawn at random", np.array(others), "at most"),
    }


def _spread(values: Float[Array, " n"]) -> float:
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low)
