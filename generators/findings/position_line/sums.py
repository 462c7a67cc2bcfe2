from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.findings.running import FOLDS


@dataclass(kw_only=True)
class PositionSums:
    """What is stored of the hidden states (windows, n, d) of one stage."""

    folds: Int[Array, " windows"]  # fold of each window (`folds_of`)
    n: int
    d: int
    sums: Float[Array, "folds n d"] = field(init=False)  # summed over the windows of a fold
    squares: Float[Array, " d"] = field(init=False)  # summed over windows and positions, without position 0

    def __post_init__(self) -> None:
        self.sums = np.zeros((FOLDS, self.n, self.d), np.float32)
        self.squares = np.zeros(self.d)

    def add(self, begin: int, states: Float[Array, "batch n d"]) -> None:
        """Add the windows `begin`, `begin` + 1, ...; each by itself, so that batches make no difference."""
        for window, state in enumerate(states, start=begin):
            self.sums[self.folds[window]] += state
            self.squares += np.einsum("nd,nd->d", state[1:], state[1:], dtype=np.float64)

    def counts(self) -> Float[Array, " folds"]:
        return np.bincount(self.folds, minlength=FOLDS).astype(np.float64)

    def means(self, folds: slice | list[int] = slice(None)) -> Float[Array, "m d"]:
        """Return the mean hidden state at each position but the first, of all windows or those of some folds."""
        return self.sums[folds, 1:].sum(axis=0, dtype=np.float64) / self.counts()[folds].sum()

    def variances(self) -> Float[Array, " d"]:
        count = len(self.folds) * (self.n - 1)
        return self.squares / count - self.means().mean(axis=0) ** 2
