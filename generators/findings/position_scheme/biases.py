"""T5's relative biases: a table of heads and distances, which is the kernel itself if all content is equal."""

from collections import Counter
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Buckets
from generators.maths.distances import bucket_of
from generators.maths.ranks import spearman

DRAWS = 1000  # permutations of buckets
SEED = 20200106
OUTSIDE = (0.01, 0.99)  # quantiles over permuted buckets; a head beyond them prefers near or far
Preference = Literal["near", "far", "neither"]

BiasHead = TypedDict(
    "BiasHead",
    {
        "head": int,
        "prefers": Preference,
        "rho": float,
        "mean_distance": float,
        "peak_offset": int,
        "bias_at_-1": float | None,  # None where keys after the query are not seen
        "bias_at_0": float,
        "bias_at_1": float,
    },
)


class Peak(TypedDict):
    """At which offset the largest bias of so many heads is."""

    offset: int
    heads: int


class Biases(TypedDict):
    """What relative biases give each head if all content is equal; distances in tokens, biases in nats.

    `rho` of a head is Spearman's correlation over buckets of its bias with distance (0 where all biases are equal);
    99 % of permutations of buckets give more than `permuted_low`, as many less than `permuted_high`. Heads below and
    above prefer near and far; `near` and `far` count them. `mean_distance` is the mean |offset| under the softmax of
    a head's biases over all offsets up to `max_distance`, `uniform_distance` that of a head without biases.
    """

    buckets: int
    max_distance: int
    both_ways: bool
    uniform_distance: float
    draws: int
    permuted_low: float
    permuted_high: float
    near: int
    far: int
    peaks: list[Peak]
    heads: list[BiasHead]


class Bucketed(TypedDict):
    """The buckets that offsets fall into, from the furthest key after the query to the furthest before it."""

    rows: Int[Array, " used"]
    nearest: Int[Array, " used"]
    counts: Float[Array, " used"]
    distances: Float[Array, " used"]


def bucketed(buckets: Buckets) -> Bucketed:
    """Return which rows of the table are used up to `max_distance`, by how many offsets and at which distances.

    `nearest` is the offset of a bucket that is nearest to the query, `distances` the sums of its |offsets|.
    """
    offsets = np.arange(-buckets.max_distance if buckets.both_ways else 0, buckets.max_distance + 1)
    of = bucket_of(offsets, buckets)
    rows = np.array(list(dict.fromkeys(of.tolist())))
    members = [offsets[of == row] for row in rows]
    return {
        "rows": rows,
        "nearest": np.array([one[np.argmin(np.abs(one))] for one in members]),
        "counts": np.array([len(one) for one in members], float),
        "distances": np.array([np.abs(one).sum() for one in members], float),
    }


def relative_biases(table: Float[Array, "rows heads"], buckets: Buckets) -> tuple[Biases, dict[str, Array]]:
    used = bucketed(buckets)
    biases = np.asarray(table, np.float64)[used["rows"]].T  # (heads, used)
    low, high = permuted(used)
    heads = [_described(head, biases[head], used, low, high) for head in range(len(biases))]
    peaks = [head["peak_offset"] for head in heads]
    summary: Biases = {
        "buckets": buckets.count,
        "max_distance": buckets.max_distance,
        "both_ways": buckets.both_ways,
        "uniform_distance": float(used["distances"].sum() / used["counts"].sum()),
        "draws": DRAWS,
        "permuted_low": low,
        "permuted_high": high,
        "near": sum(head["prefers"] == "near" for head in heads),
        "far": sum(head["prefers"] == "far" for head in heads),
        "peaks": [{"offset": offset, "heads": count} for offset, count in Counter(sorted(peaks)).most_common()],
        "heads": heads,
    }
    return summary, {"bias_offsets": used["nearest"].astype(np.int32), "biases": biases.astype(np.float32)}


def permuted(used: Bucketed) -> tuple[float, float]:
    """Return between what 98 % of Spearman's correlations with distance lie if the order of buckets means nothing."""
    rng = np.random.default_rng(SEED)
    drawn = [_rho(rng.permutation(len(used["nearest"])).astype(float), used) for _ in range(DRAWS)]
    low, high = np.quantile(drawn, OUTSIDE)
    return float(low), float(high)


def _rho(biases: Float[Array, " used"], used: Bucketed) -> float:
    return spearman(biases, np.abs(used["nearest"]).astype(float)) or 0.0


def mean_distance(biases: Float[Array, " used"], used: Bucketed) -> float:
    """Return the mean |offset| under the softmax of biases over offsets."""
    weights = np.exp(biases - biases.max())
    return float(weights @ used["distances"] / (weights @ used["counts"]))


def _described(head: int, biases: Float[Array, " used"], used: Bucketed, low: float, high: float) -> BiasHead:
    by_offset = dict(zip(used["nearest"].tolist(), biases.tolist(), strict=True))
    by_distance = sorted(by_offset, key=lambda offset: (abs(offset), offset))
    rho = _rho(biases, used)
    return {
        "head": head,
        "prefers": "near" if rho < low else "far" if rho > high else "neither",
        "rho": rho,
        "mean_distance": mean_distance(biases, used),
        "peak_offset": max(by_distance, key=lambda offset: by_offset[offset]),
        "bias_at_-1": by_offset.get(-1),
        "bias_at_0": by_offset[0],
        "bias_at_1": by_offset[1],
    }
