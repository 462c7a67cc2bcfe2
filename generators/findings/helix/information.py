import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

GROUPS = 16  # groups of similar values (4 bits)
BLOCK = 16  # neighboring positions treated as one
SHUFFLES = 100
SEED = 20230715
FEWEST_IN_GROUP = 4
ROUNDING = 1e-6  # relative to the largest value: float32 rounding after a few sums
ANGLE_EPSILON = 1e-6  # radians: keeps rounding from moving the first row to the end of the circle


class Information(TypedDict):
    """What one number says about the position: mutual information in bits, and a share of variance.

    `norm` is the distance from the center of the curve in its three leading components, `angle` the angle in its
    strongest plane (from that of the first row), None where there is none. Bits are those between the group of a
    value (`groups` of equal size, so log2(groups) at most) and the block of 16 positions; `chance_bits` is the median
    of shuffled positions. `norm`, `angle` and `chance` are the share of the position's variance between these groups,
    which is low for an angle that comes round more than once, however much it says.
    """

    norm: float
    angle: float | None
    groups: int
    chance: float
    norm_bits: float
    angle_bits: float | None
    chance_bits: float


def information(scores: Float[Array, "rows c"], plane: Float[Array, "rows 2"] | None) -> Information:
    groups = max(1, min(GROUPS, len(scores) // FEWEST_IN_GROUP))
    norm, angle = np.linalg.norm(scores[:, :3], axis=1), None if plane is None else _angle_from_start(plane)
    rng = np.random.default_rng(SEED)
    shuffled = [bits(rng.permutation(len(scores)).astype(float), groups) for _ in range(SHUFFLES)]
    return {
        "norm": variance_explained_by(norm, groups),
        "angle": None if angle is None else variance_explained_by(angle, groups),
        "groups": groups,
        "chance": (groups - 1) / max(1, len(scores) - 1),
        "norm_bits": bits(norm, groups),
        "angle_bits": None if angle is None else bits(angle, groups),
        "chance_bits": float(np.median(shuffled)),
    }


def bits(values: Float[Array, " rows"], groups: int) -> float:
    """Return the mutual information, in bits, of groups of like values and blocks of neighbouring rows.

    0 where values differ by rounding only. Plug-in estimate: with few rows it is biased upwards, as chance is.
    """
    if np.ptp(values) <= ROUNDING * np.abs(values).max():
        return 0.0
    n = len(values)
    group = np.empty(n, np.intp)
    group[np.argsort(values, kind="stable")] = np.arange(n) * groups // n
    block = np.arange(n) // BLOCK
    joint = np.zeros((groups, block[-1] + 1))
    np.add.at(joint, (group, block), 1 / n)
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    met = joint > 0
    return float(np.sum(joint[met] * np.log2(joint[met] / apart[met])))


def _angle_from_start(plane: Float[Array, "rows 2"]) -> Float[Array, " rows"]:
    angles = np.arctan2(plane[:, 1], plane[:, 0])
    return (angles - angles[0] + ANGLE_EPSILON) % (2 * np.pi)


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
