"""Null distributions for the statistics of a curve.

Would any smooth curve do? Featureless curves as smooth as this one, in channels of equal spread and in channels that
differ as much as its own; for its energy, Gaussian rows. Would any stretch of it do? The same waves at other times,
the same rows in another order, other positions than the first.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.maths import curve, surrogates, turning
from generators.maths.curve_statistics import OF_SHAPE, TOP_ENERGY, Name, statistics
from generators.maths.resampling import NullSummary, chance

Null = Literal[
    "smooth",  # as smooth as the curve, in like channels: 64, or as many as a smooth curve uses
    "own channels",  # as smooth, in channels that differ as much as the curve's
    "gaussian",  # Gaussian rows
    "other times",  # the waves of each component, begun at random times
    "other order",  # the rows in a random order
    "other positions",  # how far other positions are from the next: the first has one neighbour only, too
]
# A value is beyond chance where it is beyond each of these. What judges the others: `findings/helix/chance.py`.
JUDGES: dict[Name, tuple[Null, ...]] = {
    "explained_variance_3d": ("smooth", "own channels"),
    "winding": ("smooth", "own channels"),
    "median_gain": ("smooth", "own channels"),
    "fraying": ("other times", "other order"),
    "energy_top30": ("gaussian",),
}
SEEDS: dict[Null, int] = {"smooth": 0, "own channels": 1, "gaussian": 3, "other times": 4, "other order": 5}
REDUCED = 64  # components used for reordered rows; the remainder counts as spread out


@dataclass(frozen=True)
class CurveNulls:
    """Draws of a curve's statistics under its nulls, made on first use and cached; the same for the same seed."""

    rows: Float[Array, "n d"]
    draws: int
    seed: int
    _of_shape: dict[Null, dict[Name, Float[Array, " draws"]]] = field(default_factory=dict, init=False, repr=False)

    def chances(self, name: Name) -> dict[Null, NullSummary]:
        """Return what each null that judges a statistic gives; empty where the curve is too short for it."""
        drawn = {null: self._drawn(name, null) for null in JUDGES[name]}
        return {null: chance(values) for null, values in drawn.items() if values is not None}

    def _drawn(self, name: Name, null: Null) -> Float[Array, " draws"] | None:
        if name == "fraying":
            return self._frayings(null) if len(self.rows) >= curve.FEWEST_FOR_START else None
        if name == "energy_top30":
            n, d = self.rows.shape
            return surrogates.gaussian_energy_shares(n, d, TOP_ENERGY, self.draws, self._rng(null))
        if null not in self._of_shape:
            found = [statistics(rows, OF_SHAPE) for rows in self._curves(null)]
            names = dict.fromkeys(name for values in found for name in values)  # some curves are too short for some
            self._of_shape[null] = {
                each: np.concatenate([values[each] for values in found if each in values]) for each in names
            }
        return self._of_shape[null].get(name)

    def _curves(self, null: Null) -> Iterator[Float[Array, "n c"]]:
        """Yield as many curves as are drawn under a null that judges statistics of shape."""
        like = null == "smooth"
        widths, spreads = (self.like_widths, self._like_spreads) if like else (self.own_widths, self._own_spreads)
        rng = self._rng(null)
        yield from (surrogates.smooth_curve(len(self.rows), width, rng, spreads) for width in widths)

    @cached_property
    def lag_one(self) -> float:
        """Return the correlation of neighbouring rows within the longest run without an outlier."""
        return surrogates.lag_one(curve.principal_scores(self._run, turning.COMPONENTS).values)

    @cached_property
    def own_widths(self) -> Float[Array, " draws"]:
        """Return widths of smoothing that make noise in channels like the curve's as smooth as the curve."""
        return self._widths("own channels", self._own_spreads)

    @cached_property
    def like_widths(self) -> Float[Array, " draws"]:
        return self._widths("smooth", self._like_spreads)

    def _widths(self, null: Null, spreads: Float[Array, " channels"]) -> Float[Array, " draws"]:
        return surrogates.matched_widths(self.lag_one, len(self.rows), self.draws, self._rng(null, 1), spreads)

    def _frayings(self, null: Null) -> Float[Array, " draws"]:
        if null == "other order":
            return reordered_frayings(self.rows, self.draws, self._rng(null))
        elsewhere = surrogates.at_other_times(self.rows, self._rng(null), self.draws)
        return np.array([curve.fraying(rows) or 0.0 for rows in elsewhere])

    @cached_property
    def _run(self) -> Float[Array, "rows d"]:
        return self.rows[curve.longest_run(len(self.rows), curve.outlier_positions(self.rows)[0])]

    @cached_property
    def _like_spreads(self) -> Float[Array, " channels"]:
        return np.ones(surrogates.channels_used(self._run))

    @cached_property
    def _own_spreads(self) -> Float[Array, " channels"]:
        return surrogates.channel_spreads(self._run)

    def _rng(self, null: Null, part: int = 0) -> np.random.Generator:
        return np.random.default_rng([self.seed, SEEDS[null], part])


def steps_of_others(rows: Float[Array, "n d"]) -> Float[Array, " others"]:
    """Return how far every position but the first is from the next, in median distances to the nearer neighbour."""
    median = float(np.median(curve.neighbour_distances(rows)))
    steps = curve.step_lengths(rows[1:])
    return steps / median if median > 0 else np.zeros(len(steps))


def reordered_frayings(rows: Float[Array, "n d"], draws: int, rng: np.random.Generator) -> Float[Array, " draws"]:
    centred = rows - rows.mean(axis=0)
    scores = centred @ curve.leading_axes(centred, REDUCED)
    energies = np.einsum("ij,ij->i", centred, centred)
    parts = curve.late_rows(len(rows)), curve.rows_without_end(len(rows))
    found = np.empty(draws)
    for draw in range(draws):
        order = rng.permutation(len(rows))
        late, without_end = (_three_of(scores[order[part]], energies[order[part]]) for part in parts)
        found[draw] = late - without_end
    return found


def _three_of(scores: Float[Array, "rows c"], energies: Float[Array, " rows"]) -> float:
    """Return the share of variance in three components of rows whose scores leave out some of their energy."""
    mean = scores.mean(axis=0)
    gram = scores.T @ scores - len(scores) * np.outer(mean, mean)
    total = float(energies.sum() - len(scores) * mean @ mean)
    return float(np.linalg.eigvalsh(gram)[-3:].sum()) / total if total > 0 else 0.0
