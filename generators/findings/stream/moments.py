"""Sums over windows of one stage of the stream; all else follows, and single hidden states are not stored."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.findings.position_means import PositionMeans, without_fold
from generators.findings.running import FOLDS

RIDGE = 1e-3  # relative to the mean variance of a channel


@dataclass(kw_only=True)
class Moments(PositionMeans):
    squares: Float[Array, " folds"] = field(init=False)
    text_squares: Float[Array, " folds"] = field(init=False)  # of the positions compared
    grams: Float[Array, "folds d d"] = field(init=False)
    contexts: Float[Array, "windows d"] = field(init=False)  # means over these positions
    directions: Float[Array, "folds d d"] = field(init=False)  # Gram matrices of states of unit length

    def __post_init__(self) -> None:
        super().__post_init__()
        self.squares, self.text_squares = np.zeros(FOLDS), np.zeros(FOLDS)
        self.grams = np.zeros((FOLDS, self.d, self.d))
        self.contexts = np.zeros((len(self.folds), self.d))
        self.directions = np.zeros((FOLDS, self.d, self.d), np.float32)

    def add_window(self, window: int, state: Float[Array, "n d"]) -> None:
        fold, gram = self.folds[window], state.T @ state
        self.grams[fold] += gram
        self.squares[fold] += float(np.trace(gram, dtype=np.float64))
        self.text_squares[fold] += float(np.sum(np.square(state[self.text]), dtype=np.float64))
        self.contexts[window] = state[self.text].mean(axis=0, dtype=np.float64)
        directions = unit(state)
        self.directions[fold] += directions.T @ directions

    def mean(self) -> tuple[Float[Array, " d"], float]:
        """Return the mean of all states, and the share of its squared length in their mean squared length."""
        mean = self.means().mean(axis=0)
        whole = float(self.squares.sum()) / (self.counts().sum() * self.n)
        return mean, float(mean @ mean) / whole if whole > 0 else 0.0

    def along(
        self, directions: Float[Array, "directions d"], without: int | None = None
    ) -> Float[Array, " directions"]:
        """Return the mean squared cosine of states with each of some directions, times d: 1 is what chance gives."""
        gram = without_fold(self.directions, without).sum(axis=0, dtype=np.float64)
        energies = np.einsum("kd,de,ke->k", directions, gram, directions, optimize=True)
        whole = np.sum(directions**2, axis=1) * without_fold(self.counts(), without).sum() * self.n
        return energies * self.d / whole

    def share(self, without: int | None = None) -> float:
        """Return the share of the variance that lies between positions, freed of sampling noise.

        The components of variance of a one-way layout: what positions seem to differ by is lessened by what their
        windows' spread makes of it.
        """
        windows = float(without_fold(self.counts(), without).sum())
        means = self.curve(without)
        total = float(without_fold(self.text_squares, without).sum())
        within = max(total - windows * float(np.sum(means**2)), 0.0) / (len(means) * (windows - 1))
        between = windows * float(np.sum((means - means.mean(axis=0)) ** 2)) / (len(means) - 1)
        component = (between - within) / windows
        return component / (component + within) if component + within > 0 else 0.0

    def decoded(self) -> float:
        """Return the R^2 with which a ridge probe reads the position of single hidden states; folds are windows."""
        targets = np.arange(self.n) - (self.n - 1) / 2  # their mean is 0 in every fold
        products = np.einsum("fnd,n->fd", self.sums, targets, dtype=np.float64, optimize=True)
        totals, counts = self.sums.sum(axis=1, dtype=np.float64), self.counts() * self.n
        spread = float(targets @ targets) / self.n
        missed = 0.0
        for fold in range(FOLDS):
            if not counts[fold]:
                continue
            rest = np.arange(FOLDS) != fold
            size = counts[rest].sum()
            mean = totals[rest].sum(axis=0) / size
            covariance = self.grams[rest].sum(axis=0) / size - np.outer(mean, mean)
            penalty = RIDGE * max(float(np.trace(covariance)) / self.d, np.finfo(np.float64).tiny)
            weights = np.linalg.solve(covariance + penalty * np.eye(self.d), products[rest].sum(axis=0) / size)
            # Squared errors on the fold left out: sum of (t - w.(x - mean))^2, from its own sums.
            gram = self.grams[fold] - np.outer(totals[fold], mean) - np.outer(mean, totals[fold])
            gram += counts[fold] * np.outer(mean, mean)
            missed += counts[fold] * spread - 2 * weights @ products[fold] + weights @ gram @ weights
        return float(1 - missed / (counts.sum() * spread))


def unit(rows: Float[Array, "n d"]) -> Float[Array, "n d"]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
