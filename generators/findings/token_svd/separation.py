import numpy as np
from jaxtyping import Float, Int8
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Vocabulary
from generators.findings.measured import Interval, StoredChance
from generators.findings.nulls import DRAWS, RESAMPLES, drawn, interval
from generators.maths.blocks import spread_ids
from generators.maths.ranks import areas_under_curve
from generators.maths.resampling import auc_of, resample_items

Kinds = Int8[Array, " V"]

MARKED, UNMARKED, LEFT_OUT = 1, 0, -1  # with the space marker; without it; special or unknown
BLOCK = 4096  # rows brought to float64 at once
RIDGE = 1e-6  # relative to the mean variance; keeps directions without spread finite
FEWEST = 20  # tokens of each kind
COMPARED = 5000  # tokens, spread over the ids, used for random planes
OTHER_PLANES = "random planes within the 16 directions after the first"


class Areas(TypedDict):
    """Areas under the ROC curve for telling tokens with the space marker from those without; chance is 0.5."""

    second: float
    third: float
    plane: float
    held_out_all_channels: float


def kinds_of(vocabulary: Vocabulary | None, count: int) -> Kinds:
    """Return for every token whether it carries the space marker, -1 for special ones and without a vocabulary."""
    if vocabulary is None:
        return np.full(count, LEFT_OUT, np.int8)
    return np.where(vocabulary.special, LEFT_OUT, vocabulary.marks_space).astype(np.int8)


def areas(E: Float[Array, "V d"], plane: Float[Array, "V 2"], kinds: Kinds) -> Areas:
    return {
        "second": auc(plane[:, 0], kinds),
        "third": auc(plane[:, 1], kinds),
        "plane": auc(best_line(plane, kinds), kinds),
        "held_out_all_channels": _held_out(E, kinds),
    }


def best_line(plane: Float[Array, "V 2"], kinds: Kinds) -> Float[Array, " V"]:
    """Return the projections on the line of a plane that separates both kinds best (Fisher's discriminant)."""
    return plane @ _lda(plane, kinds)


def auc(scores: Float[Array, " V"], kinds: Kinds) -> float:
    """Return the area under the ROC curve for telling both kinds apart, at least 0.5: the direction has no sign."""
    of_a_kind = kinds != LEFT_OUT
    area = float(areas_under_curve(scores[None, of_a_kind], kinds[None, of_a_kind] == MARKED)[0])
    return max(area, 1 - area)


def area_interval(plane: Float[Array, "V 2"], kinds: Kinds, seed: int) -> Interval:
    of_a_kind = kinds != LEFT_OUT
    statistic = auc_of(best_line(plane, kinds)[of_a_kind], kinds[of_a_kind] == MARKED)
    return interval(resample_items(statistic, int(of_a_kind.sum()), RESAMPLES, np.random.default_rng(seed)))


def other_planes(scores: Float[Array, "V m"], kinds: Kinds, seed: int) -> StoredChance:
    """Return the areas of the best lines in random planes of these directions, on at most 5,000 tokens.

    Planes of all channels would hold little of the leading directions' variance, and lose for that alone.
    """
    known = np.flatnonzero(kinds != LEFT_OUT)
    ids = known[spread_ids(len(known), COMPARED)]
    marked = kinds[ids] == MARKED
    directions = np.random.default_rng(seed).standard_normal((scores.shape[1], 2 * DRAWS), dtype=np.float32)
    planes = (scores[ids].astype(np.float32) @ directions).reshape(len(ids), DRAWS, 2)
    return drawn(OTHER_PLANES, _best_areas(planes, marked))


def _best_areas(planes: Float[Array, "n draws 2"], marked: Array) -> Float[Array, " draws"]:
    """Return the area along the best line of every plane, a spanning pair of directions each."""
    means = [planes[marked].mean(axis=0), planes[~marked].mean(axis=0)]
    within = _scatter(planes[marked] - means[0]) + _scatter(planes[~marked] - means[1])
    diagonal = np.trace(within, axis1=1, axis2=2)[:, None] / 2
    within[:, [0, 1], [0, 1]] += RIDGE * diagonal + np.finfo(np.float32).tiny
    lines = np.linalg.solve(within, (means[0] - means[1])[..., None])[..., 0]
    area = areas_under_curve(np.einsum("nki,ki->kn", planes, lines), marked[None])
    return np.maximum(area, 1 - area)


def _scatter(rows: Float[Array, "n draws 2"]) -> Float[Array, "draws 2 2"]:
    return np.einsum("nki,nkj->kij", rows, rows).astype(np.float64)


def _held_out(E: Float[Array, "V d"], kinds: Kinds) -> float:
    """Return the AUC of a linear discriminant on all channels, fitted on even ids and tested on odd ones."""
    even = np.arange(len(E)) % 2 == 0
    direction = _lda(E, np.where(even, kinds, LEFT_OUT))
    return auc(E @ direction.astype(E.dtype), np.where(even, LEFT_OUT, kinds))


def _lda(rows: Float[Array, "V c"], kinds: Kinds) -> Float[Array, " c"]:
    """Return Fisher's linear discriminant of tokens with the marker against those without, block by block."""
    c = rows.shape[1]
    scatter, sums, counts = np.zeros((c, c)), np.zeros((2, c)), np.zeros(2)
    for begin in range(0, len(rows), BLOCK):
        part = slice(begin, begin + BLOCK)
        for kind in (UNMARKED, MARKED):
            block = np.asarray(rows[part][kinds[part] == kind], np.float64)
            scatter += block.T @ block
            sums[kind] += block.sum(axis=0)
            counts[kind] += len(block)
    means = sums / counts[:, None]
    within = scatter - sum(counts[kind] * np.outer(means[kind], means[kind]) for kind in (UNMARKED, MARKED))
    within[np.diag_indices(c)] += RIDGE * np.trace(within) / c + np.finfo(np.float64).tiny
    return np.linalg.solve(within, means[MARKED] - means[UNMARKED])
