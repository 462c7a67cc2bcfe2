"""Rank correlations of many quantities with many others over the same few items, and what chance gives the strongest.

A quantity that isn't known of an item is NaN there; a pair is correlated over the items of which both are known.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

from generators.maths.ranks import by_known, unit_ranks

DRAWS = 200  # shuffles of the items
PERCENTILE = 99  # percentile of the draws above which a correlation is beyond chance


@dataclass(frozen=True)
class Strongest:
    """The pair whose correlation is strongest, whichever its sign, and what chance gives the strongest of as many."""

    row: int
    column: int
    rho: float
    n: int  # items
    pairs: int
    chance: float  # median over draws
    limit: float  # percentile it has to exceed

    @property
    def beyond_chance(self) -> bool:
        """Return whether it is stronger than nearly all that shuffling gives."""
        return abs(self.rho) > self.limit


def rank_correlations(
    x: Float[Array, "*draws a n"], y: Float[Array, "*draws b n"], fewest: int
) -> tuple[Float[Array, "*draws a b"], Int[Array, "a b"]]:
    """Return Spearman's correlation of each of `x` with each of `y`, and over how many items.

    NaN where fewer items than `fewest` are known of both, or either is constant over them. Of several draws at once
    the same items are known.
    """
    known_in_x, known_in_y = _known(x), _known(y)
    rho = np.full((*x.shape[:-1], y.shape[-2]), np.nan)
    n = known_in_x.astype(int) @ known_in_y.astype(int).T
    for known_x, rows in by_known(known_in_x):
        for known_y, columns in by_known(known_in_y):
            both = known_x & known_y
            if both.sum() >= fewest:
                ranks_x = _unit_ranks(x[..., rows, :][..., both])
                ranks_y = _unit_ranks(y[..., columns, :][..., both])
                rho[..., np.array(rows)[:, None], columns] = ranks_x @ np.swapaxes(ranks_y, -1, -2)
    return rho, n


def strongest(
    x: Float[Array, "a n"], y: Float[Array, "b n"], allowed: Bool[Array, "a b"], fewest: int, seed: int = 0
) -> Strongest | None:
    """Return the strongest pair among those that are allowed; None where no pair is known of enough items.

    Chance: the known values of every quantity are shuffled over its items, and the strongest pair is looked for anew.
    """
    rho, n = rank_correlations(x, y, fewest)
    sizes = _sizes(rho, allowed)
    if not (sizes >= 0).any():
        return None
    row, column = (int(i) for i in np.unravel_index(np.argmax(sizes), sizes.shape))
    rng = np.random.default_rng(seed)
    drawn = [(shuffled(x, rng), shuffled(y, rng)) for _ in range(DRAWS)]
    all_x, all_y = (np.stack(side) for side in zip(*drawn, strict=True))
    by_chance, _ = rank_correlations(all_x, all_y, fewest)
    draws = _sizes(by_chance, allowed).max(axis=(-1, -2))
    return Strongest(
        row=row,
        column=column,
        rho=float(rho[row, column]),
        n=int(n[row, column]),
        pairs=int((sizes >= 0).sum()),
        chance=float(np.median(draws)),
        limit=float(np.percentile(draws, PERCENTILE)),
    )


def _sizes(rho: Float[Array, "*draws a b"], allowed: Bool[Array, "a b"]) -> Float[Array, "*draws a b"]:
    """Return how strong each pair is, -1 for those that aren't looked at."""
    return np.where(allowed & np.isfinite(rho), np.abs(rho), -1.0)


def _known(values: Float[Array, "*draws a n"]) -> Bool[Array, "a n"]:
    return np.isfinite(values[(0,) * (values.ndim - 2)])


def _unit_ranks(values: Float[Array, "*draws a n"]) -> Float[Array, "*draws a n"]:
    ranks = unit_ranks(values)
    ranks[~ranks.any(axis=-1)] = np.nan
    return ranks


def shuffled(values: Float[Array, "a n"], rng: np.random.Generator) -> Float[Array, "a n"]:
    """Return the known values of every quantity shuffled over the items that they are known of."""
    drawn = values.copy()
    for row in drawn:
        known = np.isfinite(row)
        row[known] = rng.permutation(row[known])
    return drawn
