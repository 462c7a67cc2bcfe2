"""How much of where a position stands its distance from the centre tells, and how much its angle."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

GROUPS = 16
FEWEST_IN_GROUP = 4


class Information(TypedDict):
    """Share of the variance of position that lies between groups of positions alike in one number.

    `norm` is the distance from the centre of the curve in its three leading components, `angle` the angle in its
    strongest plane, None where there is none; `chance` what a number gives that has nothing to do with position.
    """

    norm: float
    angle: float | None
    groups: int
    chance: float


def information(scores: Float[Array, "rows c"], plane: Float[Array, "rows 2"] | None) -> Information:
    """Return what norm and angle tell of the position of rows that follow one another."""
    groups = max(1, min(GROUPS, len(scores) // FEWEST_IN_GROUP))
    angle = None if plane is None else np.arctan2(plane[:, 1], plane[:, 0])
    return {
        "norm": told_by(np.linalg.norm(scores[:, :3], axis=1), groups),
        "angle": None if angle is None else told_by(angle, groups),
        "groups": groups,
        "chance": (groups - 1) / max(1, len(scores) - 1),
    }


def told_by(values: Float[Array, " rows"], groups: int) -> float:
    """Return the share of the variance of the row index between groups of rows of like value, equally many in each."""
    order = np.argsort(values, kind="stable")
    rows = order - order.mean()
    total = float(np.sum(rows**2))
    between = sum(float(part.sum()) ** 2 / len(part) for part in np.array_split(rows, groups))
    return between / total if total else 0.0
