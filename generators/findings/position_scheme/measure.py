import math
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


class BiasHead(TypedDict):
    head: int
    prefers: Preference
    rho: float


class Biases(TypedDict):
    """What relative biases give each head if all content is equal.

    `rho` of a head is Spearman's correlation over buckets of its bias with distance (0 where all biases are equal).
    Heads beyond 99 % of permutations of buckets on either side prefer near and far; `near` and `far` count them.
    """

    near: int
    far: int
    heads: list[BiasHead]


class Rotation(TypedDict):
    """How the queries and keys of some layers are turned, in pairs of channels; periods are tokens per turn.

    `window` is how many tokens these layers see; None where there is no such limit.
    """

    layers: list[int]
    share_of_head: float
    pairs: int
    shortest: float
    longest: float
    window: int | None


class SlopeHead(TypedDict):
    """One head's slope in nats per token, and the distance at which equal content has half its weight."""

    head: int
    slope: float
    half_distance: float


class Slopes(TypedDict):
    shortest_half: float
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
    rotations: list[Rotation]
    slopes: Slopes | None
    biases: Biases | None
    windows: list[Window]


def measure(inputs: Inputs) -> Measurements[PositionSchemeMetrics]:
    """Measure how a model knows positions, as its config, its table and its relative biases tell."""
    architecture, weights = inputs.architecture, inputs.weights
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
        "rotations": [_rotation(architecture.d_head, *kind, layers) for kind, layers in kinds.items()],
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


def _rotation(d_head: int, rotation: Rotary, window: int | None, layers: list[int]) -> Rotation:
    return {
        "layers": layers,
        "share_of_head": rotation.dim / d_head,
        "pairs": len(rotation.periods),
        "shortest": min(rotation.periods),
        "longest": max(rotation.periods),
        "window": window,
    }


def _slopes(architecture: Architecture) -> Slopes | None:
    """Return every head's slope; the weight of equal content halves every ln 2 / slope tokens."""
    if not architecture.slopes:
        return None
    halves = [math.log(2) / slope for slope in architecture.slopes]
    return {
        "shortest_half": min(halves),
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
        title = "What heads prefer by their relative biases"
        tables["biases"] = table_of(title, BiasHead, metrics["biases"]["heads"])
    return tables


def bucketed(buckets: Buckets) -> tuple[Int[Array, " used"], Int[Array, " used"]]:
    """Return which rows of the table are used up to `max_distance`, and the offset of each nearest to the query.

    They go from the furthest key after the query to the furthest before it.
    """
    offsets = np.arange(-buckets.max_distance if buckets.both_ways else 0, buckets.max_distance + 1)
    of = bucket_of(offsets, buckets)
    rows = np.array(list(dict.fromkeys(of.tolist())))
    members = [offsets[of == row] for row in rows]
    return rows, np.array([one[np.argmin(np.abs(one))] for one in members])


def relative_biases(table: Float[Array, "rows heads"], buckets: Buckets) -> tuple[Biases, dict[str, Array]]:
    rows, nearest = bucketed(buckets)
    biases = np.asarray(table, np.float64)[rows].T  # (heads, used)
    low, high = permuted(nearest)
    rhos = [_rho(of_head, nearest) for of_head in biases]
    heads: list[BiasHead] = [
        {"head": head, "prefers": "near" if rho < low else "far" if rho > high else "neither", "rho": rho}
        for head, rho in enumerate(rhos)
    ]
    summary: Biases = {
        "near": sum(head["prefers"] == "near" for head in heads),
        "far": sum(head["prefers"] == "far" for head in heads),
        "heads": heads,
    }
    return summary, {"bias_offsets": nearest.astype(np.int32), "biases": biases.astype(np.float32)}


def permuted(nearest: Int[Array, " used"]) -> tuple[float, float]:
    rng = np.random.default_rng(SEED)
    drawn = [_rho(rng.permutation(len(nearest)).astype(float), nearest) for _ in range(DRAWS)]
    low, high = np.quantile(drawn, OUTSIDE)
    return float(low), float(high)


def _rho(biases: Float[Array, " used"], nearest: Int[Array, " used"]) -> float:
    return spearman(biases, np.abs(nearest).astype(float)) or 0.0
