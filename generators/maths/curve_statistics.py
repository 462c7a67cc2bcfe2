"""The numbers by which claims about a curve are judged: for one curve, for many surrogates, for resampled positions.

Directions, planes and maps are fitted once, on the curve as it is; what is then measured row by row is summed with a
weight per position (`resampling.block_weights`). Equal weights give the statistics themselves.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.maths import curve, turning

Name = Literal[
    "explained_variance_3d",  # without row 0
    "explained_variance_3d_kept",  # without row 0 and without outlier positions
    "winding",
    "median_gain",  # median over looking back 1, 5 and 10 rows
    "fraying",
    "first_position_distance",  # in median distances to the nearer neighbour
    "norm_cv",
    "energy_top30",
]
NAMES: tuple[Name, ...] = get_args(Name)
OF_SHAPE: tuple[Name, ...] = ("explained_variance_3d", "winding", "median_gain")  # judged against smooth surrogates
TOP_ENERGY = 30  # singular directions of P in which its energy is counted


@dataclass(frozen=True)
class MeasuredCurve:
    """A curve, in any orthonormal axes, with what is fitted to it when a statistic asks for it.

    Every statistic is given for each row of weights; None where the curve is too short for it.
    """

    rows: Float[Array, "n d"]

    def explained_variance_3d(self, weights: Float[Array, "draws n"]) -> Float[Array, " draws"]:
        return self._three(slice(1, len(self.rows)), weights)

    def explained_variance_3d_kept(self, weights: Float[Array, "draws n"]) -> Float[Array, " draws"]:
        return self._three(np.setdiff1d(np.arange(1, len(self.rows)), self._outliers), weights)

    def fraying(self, weights: Float[Array, "draws n"]) -> Float[Array, " draws"] | None:
        n = len(self.rows)
        if n < curve.FEWEST_FOR_START:
            return None
        return self._three(curve.late_rows(n), weights) - self._three(curve.rows_without_end(n), weights)

    def energy_top30(self, weights: Float[Array, "draws n"]) -> Float[Array, " draws"]:
        return _leading_share(self.rows, TOP_ENERGY, weights)

    def _three(
        self, part: slice | Int[Array, " inliers"], weights: Float[Array, "draws n"]
    ) -> Float[Array, " draws"]:
        chosen = self.rows[part]
        return _leading_share(chosen - chosen.mean(axis=0), 3, weights[:, part])

    def winding(self, weights: Float[Array, "draws n"]) -> Float[Array, " draws"]:
        scores, weights = self._scores, weights[:, self._run]
        whole = weights @ self._energies
        drawn = weights[:, :-1].sum(axis=1)
        scale = _ratio(np.full(len(weights), len(self._energies) - 1.0), drawn * whole)
        found = [np.zeros(len(weights))]
        for axes in turning.rotation_planes(turning.rotation_onto(scores[:-1], scores[1:])):
            points = scores @ axes
            steps = turning.angle_steps(points)
            net, summed = np.abs(weights[:, :-1] @ steps), weights[:, :-1] @ np.abs(steps)
            energy = weights @ np.einsum("ij,ij->i", points, points)
            found.append(scale * energy * net / turning.FULL_TURN * _ratio(net, summed))
        return np.max(found, axis=0)

    def median_gain(self, weights: Float[Array, "draws n"]) -> Float[Array, " draws"] | None:
        weights = weights[:, self._run]
        gains = []
        for k in turning.offsets(len(self._scores)):
            if k in turning.JUDGED_OFFSETS:
                errors = turning.look_back_residuals(self._scores, k, ("rotation", "identity"))
                drawn = weights[:, errors.rows]
                identity = drawn @ errors.of["identity"]
                moves = identity > turning.NO_RESIDUAL * (drawn @ errors.spread)
                gains.append(1 - _ratio(drawn @ errors.of["rotation"], identity, moves, 1.0))
        return np.median(gains, axis=0) if gains else None

    def first_position_distance(self, weights: Float[Array, "draws n"]) -> Float[Array, " draws"]:
        nearer = curve.neighbour_distances(self.rows)
        return _ratio(np.full(len(weights), nearer[0]), _medians(nearer, weights))

    def norm_cv(self, weights: Float[Array, "draws n"]) -> Float[Array, " draws"]:
        inliers = curve.late_positions(len(self.rows), self._outliers)
        return _variation(np.linalg.norm(self.rows[inliers], axis=1), weights[:, inliers])

    @cached_property
    def _outliers(self) -> Int[Array, " outliers"]:
        return curve.outlier_positions(self.rows)[0]

    @cached_property
    def _run(self) -> slice:
        return curve.longest_run(len(self.rows), self._outliers)

    @cached_property
    def _scores(self) -> Float[Array, "rows c"]:
        return curve.principal_scores(self.rows[self._run], turning.COMPONENTS).values

    @cached_property
    def _energies(self) -> Float[Array, " rows"]:
        """Return the squared distance of every row of the run from their mean."""
        away = self.rows[self._run] - self.rows[self._run].mean(axis=0)
        return np.einsum("ij,ij->i", away, away)


def statistics(
    rows: Float[Array, "n d"], names: tuple[Name, ...] = NAMES, weights: Float[Array, "draws n"] | None = None
) -> dict[Name, Float[Array, " draws"]]:
    """Return the statistics of a curve that it is long enough for, by name.

    `weights` say how often each position counts, one row per resampling; each once if not given.
    """
    measured = MeasuredCurve(rows)
    weights = np.ones((1, len(rows))) if weights is None else weights
    found = {name: getattr(measured, name)(weights) for name in names}
    return {name: values for name, values in found.items() if values is not None}


def _leading_share(
    rows: Float[Array, "rows d"], count: int, weights: Float[Array, "draws rows"]
) -> Float[Array, " draws"]:
    """Return the share of summed squares in the leading right singular vectors of unweighted rows."""
    inside = rows @ curve.leading_axes(rows, count)
    whole = weights @ np.einsum("ij,ij->i", rows, rows)
    return _ratio(weights @ np.einsum("ij,ij->i", inside, inside), whole)


def _medians(values: Float[Array, " n"], weights: Float[Array, "draws n"]) -> Float[Array, " draws"]:
    order = np.argsort(values)
    upto = np.cumsum(weights[:, order], axis=1)
    half = upto[:, -1:] / 2
    lower, upper = np.argmax(upto >= half, axis=1), np.argmax(upto > half, axis=1)
    return (values[order][lower] + values[order][upper]) / 2


def _variation(values: Float[Array, " n"], weights: Float[Array, "draws n"]) -> Float[Array, " draws"]:
    """Return std / mean of values; about their plain mean, so that equal values have exactly none."""
    centre = float(values.mean())
    total = weights.sum(axis=1)
    shift = _ratio(weights @ (values - centre), total)
    spread = np.sqrt(np.clip(_ratio(weights @ (values - centre) ** 2, total) - shift**2, 0, None))
    return _ratio(spread, centre + shift)


def _ratio(
    above: Float[Array, " draws"], below: Float[Array, " draws"], where: Array | None = None, otherwise: float = 0.0
) -> Float[Array, " draws"]:
    return np.divide(above, below, out=np.full_like(below, otherwise), where=below != 0 if where is None else where)
