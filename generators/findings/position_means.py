"""Mean hidden states by position, of folds of windows, at one stage of the stream."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.findings.running import FOLDS
from generators.maths.resampling import jackknife


@dataclass(kw_only=True)
class PositionMeans:
    folds: Int[Array, " windows"]  # fold of each window (`folds_of`)
    n: int
    d: int
    text: slice  # the positions that are compared (`text_columns`)
    sums: Float[Array, "folds n d"] = field(init=False)  # summed over the windows of a fold

    def __post_init__(self) -> None:
        self.sums = np.zeros((FOLDS, self.n, self.d), np.float32)

    def add(self, begin: int, states: Float[Array, "batch n d"]) -> None:
        """Add the windows `begin`, `begin` + 1, ...; each by itself, so that batches make no difference."""
        for window, state in enumerate(states, start=begin):
            self.sums[self.folds[window]] += state
            self.add_window(window, state)

    def add_window(self, window: int, state: Float[Array, "n d"]) -> None:
        """Add what else is summed over windows."""

    def counts(self) -> Float[Array, " folds"]:
        return np.bincount(self.folds, minlength=FOLDS).astype(np.float64)

    def means(self, without: int | None = None) -> Float[Array, "n d"]:
        """Return the mean at each position, of all windows or without those of a fold."""
        remaining = without_fold(self.sums, without).sum(axis=0, dtype=np.float64)
        return remaining / without_fold(self.counts(), without).sum()

    def curve(self, without: int | None = None) -> Float[Array, "m d"]:
        """Return the means at the positions that are compared."""
        return self.means(without)[self.text]

    def halves(self) -> tuple[Float[Array, "m d"], Float[Array, "m d"]]:
        """Return the curves of even and of odd folds, each about its mean."""
        counts = self.counts()
        curves = (self.sums[i::2, self.text].sum(axis=0, dtype=np.float64) / counts[i::2].sum() for i in (0, 1))
        even, odd = (curve - curve.mean(axis=0) for curve in curves)
        return even, odd

    def interval(self, whole: float, without: Callable[[int], float]) -> tuple[float, float]:
        """Return the 95 % interval of a statistic of all windows, `without` those of each fold in turn."""
        return jackknife(np.array([without(fold) for fold in range(FOLDS)]), whole, self.counts())


def without_fold(by_fold: Array, fold: int | None) -> Array:
    return by_fold if fold is None else np.delete(by_fold, fold, axis=0)
