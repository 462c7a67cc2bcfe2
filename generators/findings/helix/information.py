"""How well a position is predicted by its distance from the center, and by its angle."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

GROUPS = 16
FEWEST_IN_GROUP = 4
ROUNDING = 1e-6  # of the largest value; that of float32 has grown by a few sums
A_LITTLE = 1e-6  # radians: rounding must not take the first row to the end of the circle


class Information(TypedDict):
    """Share of the variance of position that lies between groups of positions alike in one number.

    `norm` is the distance from the centre of the curve in its three leading components, `angle` the angle in its
    strongest plane (from that of the first row), None where there is none; `chance` is what a number gives that has
    nothing to do with position.
    """

    norm: float
    angle: float | None
    groups: int
    chance: float


def information(scores: Float[Array, "rows c"], plane: Float[Array, "rows 2"] | None) -> Information:
    """Return what norm and angle tell of the position of rows that follow one another."""
    groups = max(1, min(GROUPS, len(scores) // FEWEST_IN_GROUP))
    angle = None if plane is None else _angle_from_start(plane)
    return {
        "norm": variance_explained_by(np.linalg.norm(scores[:, :3], axis=1), groups),
        "angle": None if angle is None else variance_explained_by(angle, groups),
        "groups": groups,
        "chance": (groups - 1) / max(1, len(scores) - 1),
    }


def _angle_from_start(plane: Float[Array, "rows 2"]) -> Float[Array, " rows"]:
    angles = np.arctan2(plane[:, 1], plane[:, 0])
    return (angles - angles[0] + A_LITTLE) % (2 * np.pi)


def variance_explained_by(values: Float[Array, " rows"], groups: int) -> float:
    """Return the share of the variance of the row index that lies between groups of rows of like value.

    0 where values differ by rounding only.
    """
    if np.ptp(values) <= ROUNDING * np.abs(values).max():
        return 0.0
    order = np.argsort(values, kind="stable")
    rows = order - order.mean()
    total = float(np.sum(rows**2))
    between = sum(float(part.sum()) ** 2 / len(part) for part in np.array_split(rows, groups))
    return between / total if total else 0.0
