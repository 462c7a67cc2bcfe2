import math
from collections import Counter
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Architecture, Buckets, Rotary
from generators.base.sentences import ranges
from generators.findings.inputs import Inputs, Weights
from generators.findings.measured import Measurements, Table, table_of
from generators.findings.sizes import nonconstant_positions
from generators.maths.distances import bucket_of
from generators.maths.ranks import spearman
from generators.maths.sines import sines

Scheme = Literal["learned", "formula", "rotary", "alibi", "relative", "disentangled", "none"]

DRAWS = 1000  # permutations of buckets
SEED = 20200106
OUTSIDE = (0.01, 0.99)  # quantiles over permuted buckets; a head beyond them prefers near or far
Preference = Literal["near", "far", "neither"]
Kinds = dict[tuple[Rotary, int | None], list[int]]  # layers by their rotation and window

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


class PositionTable(TypedDict):
    positions: int
    channels: int


class Rotation(TypedDict):
    """How the queries and keys of some layers are turned, in pairs of channels; periods are tokens per turn.

    `turning` counts pairs that turn at least once within the context, `turning_in_window` those that do within the
    window that these layers see; None where there is no such limit. `strength` multiplies what is turned.
    """

    layers: list[int]
    dim: int
    share_of_head: float
    pairs: int
    shortest: float
    longest: float
    turning: int | None
    window: int | None
    turning_in_window: int | None
    scaling: str
    strength: float


class SlopeHead(TypedDict):
    """One head's slope in nats per token, and the distance at which equal content has half its weight."""

    head: int
    slope: float
    half_distance: float


class Slopes(TypedDict):
    shortest_half: float
    median_half: float
    longest_half: float
    heads: list[SlopeHead]


class Window(TypedDict):
    """Layers in which a query sees no more than `width` keys on a side, itself included."""

    width: int
    layers: int


class PositionSchemeMetrics(TypedDict):
    """Which schemes a model has (more than one where it adds up several), and the numbers of each; None elsewhere."""

    schemes: list[Scheme]
    n_ctx: int | None
    n_layers: int
    n_heads: int
    d_head: int
    causal: bool
    table: PositionTable | None
    rotations: list[Rotation]
    slopes: Slopes | None
    biases: Biases | None
    windows: list[Window]


def measure(inputs: Inputs) -> Measurements[PositionSchemeMetrics]:
    """Measure how a model knows positions, as its config, its table and its relative biases tell."""
    architecture, weights = inputs.architecture, inputs.weights
    table = weights["position_embedding"].shape if "position_embedding" in weights else None
    kinds = _kinds(architecture)
    arrays = {f"periods_{i}": np.array(rotation.periods, np.float32) for i, (rotation, _) in enumerate(kinds)}
    slopes = _slopes(architecture)
    biases = None
    if architecture.buckets is not None and "blocks.0.attn.relative_bias" in weights:
        biases, shown = relative_biases(weights["blocks.0.attn.relative_bias"], architecture.buckets)
        arrays |= shown
    widths = [width for width in architecture.windows if width is not None]
    metrics: PositionSchemeMetrics = {
        "schemes": _schemes(architecture, weights),
        "n_ctx": architecture.n_ctx,
        "n_layers": architecture.n_layer,
        "n_heads": architecture.n_head,
        "d_head": architecture.d_head,
        "causal": architecture.causal,
        "table": None if table is None else {"positions": table[0], "channels": table[1]},
        "rotations": [_rotation(architecture, *kind, layers) for kind, layers in kinds.items()],
        "slopes": slopes,
        "biases": biases,
        "windows": [{"width": width, "layers": widths.count(width)} for width in sorted(set(widths))],
    }
    return Measurements(metrics, _tables(metrics, kinds), arrays)


def _schemes(architecture: Architecture, weights: Weights) -> list[Scheme]:
    found: list[Scheme] = []
    kind, P = architecture.positions, nonconstant_positions(weights)
    if kind == "formula" or (P is not None and sines(P) is not None):
        found.append("formula")
    elif P is not None or (kind == "learned" and "position_embedding" not in weights):
        found.append("learned")
    if any(rotation is not None for rotation in architecture.rotary):
        found.append("rotary")
    if architecture.slopes:
        found.append("alibi")
    if architecture.buckets is not None:
        found.append("relative")
    elif kind == "relative":
        found.append("disentangled")
    return found or ["none"]


def _kinds(architecture: Architecture) -> Kinds:
    windows = architecture.windows or (None,) * architecture.n_layer
    found: Kinds = {}
    for layer, rotation in enumerate(architecture.rotary):
        if rotation is not None:
            found.setdefault((rotation, windows[layer]), []).append(layer)
    return found


def _rotation(architecture: Architecture, rotation: Rotary, window: int | None, layers: list[int]) -> Rotation:
    def turning(limit: int | None) -> int | None:
        return None if limit is None else sum(period <= limit for period in rotation.periods)

    return {
        "layers": layers,
        "dim": rotation.dim,
        "share_of_head": rotation.dim / architecture.d_head,
        "pairs": len(rotation.periods),
        "shortest": min(rotation.periods),
        "longest": max(rotation.periods),
        "turning": turning(architecture.n_ctx),
        "window": window,
        "turning_in_window": turning(window),
        "scaling": rotation.scaling,
        "strength": rotation.strength,
    }


def _slopes(architecture: Architecture) -> Slopes | None:
    """Return every head's slope; the weight of equal content halves every ln 2 / slope tokens."""
    if not architecture.slopes:
        return None
    halves = [math.log(2) / slope for slope in architecture.slopes]
    return {
        "shortest_half": min(halves),
        "median_half": float(np.median(halves)),
        "longest_half": max(halves),
        "heads": [
            {"head": head, "slope": slope, "half_distance": half}
            for head, (slope, half) in enumerate(zip(architecture.slopes, halves, strict=True))
        ],
    }


def _tables(metrics: PositionSchemeMetrics, kinds: Kinds) -> dict[str, Table]:
    tables = {}
    if kinds:
        title, n_ctx = "Rotated pairs of channels: tokens per turn", metrics["n_ctx"]
        pairs = [
            {
                "layers": ", ".join(ranges(layers)),
                "pair": pair,
                "period": period,
                "turns": None if n_ctx is None else n_ctx / period,
            }
            for (rotation, _), layers in kinds.items()
            for pair, period in enumerate(rotation.periods)
        ]
        tables["rotations"] = table_of(title, pairs[0], pairs)
    if metrics["slopes"] is not None:
        title = "Slopes of heads, and where equal content has half its weight"
        tables["slopes"] = table_of(title, SlopeHead, metrics["slopes"]["heads"])
    if metrics["biases"] is not None:
        title = "Relative biases of heads, in nats, and how far they would look by them alone"
        tables["biases"] = table_of(title, BiasHead, metrics["biases"]["heads"])
    return tables


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
    rng = np.random.default_rng(SEED)
    drawn = [_rho(rng.permutation(len(used["nearest"])).astype(float), used) for _ in range(DRAWS)]
    low, high = np.quantile(drawn, OUTSIDE)
    return float(low), float(high)


def _rho(biases: Float[Array, " used"], used: Bucketed) -> float:
    return spearman(biases, np.abs(used["nearest"]).astype(float)) or 0.0


def mean_distance(biases: Float[Array, " used"], used: Bucketed) -> float:
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
