"""How a curve turns: the planes of its one-step rotation, and whether a rotation looks back along it.

Rows are the leading principal scores of a curve (`curve.principal_scores`), one per position, about their mean.
Planes of the fitted rotation follow jPCA (Churchland et al., "Neural population dynamics during reaching", Nature
2012). Any smooth curve has such planes, even without turning, so they are compared with `surrogates`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.linalg
from jaxtyping import Float, Int
from numpy import ndarray as Array

Map = Literal["rotation", "identity", "translation"]
ALL_MAPS: tuple[Map, ...] = ("rotation", "identity", "translation")

COMPONENTS = 8  # principal scores in which turning is sought
LOOK_BACK_OFFSETS = (1, 5, 10, 50)
JUDGED_OFFSETS = (1, 5, 10)  # the claim uses the median gain over these
FULL_TURN = 2 * np.pi
NO_ANGLE = 1e-6  # radians per step, below which a plane of a rotation does not turn
NO_RESIDUAL = 1e-12  # share of a curve's spread below which it counts as not moving


@dataclass(frozen=True)
class Plane:
    share: float  # share of the curve's variance
    share_of_scores: float  # share of the scores' variance
    turns: float  # net; a plane in space has no sense of turning, so never negative
    steadiness: float  # net angle / summed |angle steps|: 1 where it never turns back
    radius_cv: float
    tokens_per_turn: float | None  # None where there is no net turn
    axes: Float[Array, "components 2"] = field(repr=False, compare=False)

    @property
    def winding(self) -> float:
        return self.share * self.turns * self.steadiness


@dataclass(frozen=True)
class LookBack:
    """How well row t - k is predicted from row t, by maps fitted on the other half of the curve."""

    k: int
    r2_rotation: float
    r2_identity: float
    r2_translation: float
    gain: float  # gain of the rotation over predicting no movement: 1 if exact, negative if it does not generalize


@dataclass(frozen=True)
class Residuals:
    """Squared errors of looking back k rows, one per pair of rows, by maps fitted on the other half of the curve."""

    rows: Int[Array, " pairs"]  # the positions looked back from
    spread: Float[Array, " pairs"]  # squared distance of the row looked for from the mean of its half
    of: Mapping[Map, Float[Array, " pairs"]]


def rotation_onto(source: Float[Array, "rows c"], target: Float[Array, "rows c"]) -> Float[Array, "c c"]:
    """Return the orthogonal matrix R for which source R comes nearest to target (Procrustes)."""
    if not np.any(source):
        return np.eye(source.shape[1])
    return scipy.linalg.orthogonal_procrustes(source, target)[0]


def planes(scores: Float[Array, "rows c"], energy: float | None = None) -> tuple[Plane, ...]:
    """Return the planes of the best rotation of one step, strongest (by `winding`) first.

    `energy` is the summed squares of the whole curve, of which planes hold shares; of the scores alone if not given.
    """
    within = float(np.sum(scores**2))
    whole = within if energy is None else energy
    found = [_plane(scores, axes, within, whole) for axes in rotation_planes(rotation_onto(scores[:-1], scores[1:]))]
    return tuple(sorted(found, key=lambda plane: -plane.winding))


def winding(found: tuple[Plane, ...]) -> float:
    """Return the largest share x turns x steadiness among planes, 0 without any."""
    return max((plane.winding for plane in found), default=0.0)


def rotation_planes(rotation: Float[Array, "c c"]) -> list[Float[Array, "c 2"]]:
    """Return orthonormal bases of the planes in which a rotation turns, from its real Schur form."""
    form, vectors = scipy.linalg.schur(rotation, output="real")
    # The real Schur form of a rotation is block diagonal: a 2 x 2 block for each plane that turns, 1 or -1 elsewhere.
    # A nonzero entry below the diagonal marks the first row of such a block, and its two vectors span the plane.
    first = np.flatnonzero(np.abs(np.diagonal(form, -1)) > NO_ANGLE)
    return [vectors[:, i : i + 2] for i in first]


def angle_steps(points: Float[Array, "rows 2"]) -> Float[Array, " steps"]:
    """Return the angle about the origin gained from every point to the next, from -pi to pi."""
    angles = np.arctan2(points[:, 1], points[:, 0])
    return (np.diff(angles) + np.pi) % FULL_TURN - np.pi


def _plane(scores: Float[Array, "rows c"], axes: Float[Array, "c 2"], within: float, whole: float) -> Plane:
    points = scores @ axes
    steps = angle_steps(points)
    net, summed = abs(float(steps.sum())), float(np.abs(steps).sum())
    radius = np.hypot(points[:, 0], points[:, 1])
    energy = float(radius @ radius)
    mean = float(radius.mean())
    return Plane(
        share=energy / whole if whole else 0.0,
        share_of_scores=energy / within if within else 0.0,
        turns=net / FULL_TURN,
        steadiness=net / summed if summed else 0.0,
        radius_cv=float(radius.std()) / mean if mean else 0.0,
        tokens_per_turn=len(steps) * FULL_TURN / net if net else None,
        axes=axes,
    )


# Maps fitted on rows x and y, applied to other rows.
MAPS: Mapping[Map, Callable[[Array, Array, Array], Array]] = {
    "rotation": lambda x, y, source: source @ rotation_onto(x, y),
    "identity": lambda x, y, source: source,
    "translation": lambda x, y, source: source + (y - x).mean(axis=0),
}


def offsets(n: int) -> tuple[int, ...]:
    """Return how far to look back along n rows: less than a quarter of them."""
    return tuple(k for k in LOOK_BACK_OFFSETS if k < n / 4)


def look_back(scores: Float[Array, "rows c"], k: int) -> LookBack:
    """Fit maps from row t to row t - k on one half of the curve, test them on the other, and the other way round.

    The errors of both are added. The rotation is about the curve's mean, without any shift of its own.
    """
    errors = look_back_residuals(scores, k)
    left = {name: float(values.sum()) for name, values in errors.of.items()}
    spread = float(errors.spread.sum())
    return LookBack(
        k=k,
        gain=gain_over(left["rotation"], left["identity"], spread),
        **{f"r2_{name}": 1 - residual / spread if spread else 0.0 for name, residual in left.items()},
    )


def gain_over(rotation: float, identity: float, spread: float) -> float:
    """Return the share of the error of predicting no movement that a rotation removes; 0 if nothing moves."""
    return 1 - rotation / identity if identity > NO_RESIDUAL * spread else 0.0


def median_gain(found: list[LookBack]) -> float | None:
    """Return the median gain over the offsets 1, 5 and 10, or those of them that there are; None without any."""
    gains = [look.gain for look in found if look.k in JUDGED_OFFSETS]
    return float(np.median(gains)) if gains else None


def look_back_residuals(scores: Float[Array, "rows c"], k: int, maps: tuple[Map, ...] = ALL_MAPS) -> Residuals:
    """Return the squared errors of looking back k rows across halves.

    The halves are equally long, with k rows left out between them, so that no row of one is near a row of the other.
    """
    n = len(scores)
    half = (n - k) // 2
    sides = (slice(0, half), slice(half + k, n))
    rows = np.concatenate([np.arange(n)[tested][k:] for tested in sides])
    spread: list[Array] = []
    errors: dict[Map, list[Array]] = {name: [] for name in maps}
    for fitted, tested in (sides[::-1], sides):
        source, target = scores[tested][k:], scores[tested][:-k]
        spread.append(_squared_distances(target, target.mean(axis=0)))
        for name in maps:
            guess = MAPS[name](scores[fitted][k:], scores[fitted][:-k], source)
            errors[name].append(_squared_distances(target, guess))
    return Residuals(rows, np.concatenate(spread), {name: np.concatenate(errors[name]) for name in maps})


def _squared_distances(a: Float[Array, "rows c"], b: Array) -> Float[Array, " rows"]:
    away = a - b
    return np.einsum("ij,ij->i", away, away)
