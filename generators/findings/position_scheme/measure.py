import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from typing_extensions import TypedDict

from generators.base.architecture import Architecture, Rotary
from generators.findings.inputs import Inputs, Weights
from generators.findings.measured import Measurements, Table, table_of
from generators.findings.nonconstant_rows import nonconstant_positions
from generators.findings.position_scheme.biases import Biases, BiasHead, relative_biases
from generators.maths.sines import sines

Scheme = Literal["learned", "formula", "rotary", "alibi", "relative", "disentangled", "none"]


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
    """ALiBi: how far each head's kernel reaches, in tokens."""

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


class PairRow(TypedDict):
    """One rotated pair of channels of every head; `turns` is how often it turns within the context."""

    layers: str
    pair: int
    period: float
    turns: float | None


def measure(inputs: Inputs) -> Measurements[PositionSchemeMetrics]:
    """Measure how a model knows positions, as its config, its table and its relative biases tell.

    Reads `position_embedding` (n, d) for its size, and for whether it is one of sines, and
    `blocks.0.attn.relative_bias` (rows, heads) when there.

    Raises:
        ValueError: the table of relative biases has fewer rows than the config has buckets.
    """
    architecture, weights = inputs.architecture, inputs.weights
    table = weights["position_embedding"].shape if "position_embedding" in weights else None
    kinds = _kinds(architecture)
    arrays = {f"periods_{i}": np.array(kind.rotation.periods, np.float32) for i, kind in enumerate(kinds)}
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
        "rotations": [_rotation(architecture, kind) for kind in kinds],
        "slopes": slopes,
        "biases": biases,
        "windows": [{"width": width, "layers": widths.count(width)} for width in sorted(set(widths))],
    }
    return Measurements(metrics, _tables(metrics, kinds), arrays)


def _schemes(architecture: Architecture, weights: Weights) -> list[Scheme]:
    found: list[Scheme] = []
    kind, relative = architecture.positions, architecture.buckets is not None
    if kind == "formula" or _is_formula(weights):
        found.append("formula")
    elif (kind == "learned" or "position_embedding" in weights) and not _held(weights):
        found.append("learned")
    if any(rotation is not None for rotation in architecture.rotary):
        found.append("rotary")
    if architecture.slopes:
        found.append("alibi")
    if relative:
        found.append("relative")
    elif kind == "relative":
        found.append("disentangled")
    return found or ["none"]


def _is_formula(weights: Weights) -> bool:
    P = nonconstant_positions(weights)
    return P is not None and sines(P) is not None


def _held(weights: Weights) -> bool:
    """Return whether there is a table with equal rows, such as one held at zero."""
    return "position_embedding" in weights and nonconstant_positions(weights) is None


# Rotations


@dataclass(frozen=True)
class _Kind:
    """A rotation, with the window and the layers that have both."""

    rotation: Rotary
    window: int | None
    layers: list[int]


def _kinds(architecture: Architecture) -> list[_Kind]:
    windows = architecture.windows or (None,) * architecture.n_layer
    found: dict[tuple[Rotary, int | None], list[int]] = {}
    for layer, rotation in enumerate(architecture.rotary):
        if rotation is not None:
            found.setdefault((rotation, windows[layer]), []).append(layer)
    return [_Kind(rotation, window, layers) for (rotation, window), layers in found.items()]


def _rotation(architecture: Architecture, kind: _Kind) -> Rotation:
    rotation = kind.rotation

    def turning(limit: int | None) -> int | None:
        return None if limit is None else sum(period <= limit for period in rotation.periods)

    return {
        "layers": kind.layers,
        "dim": rotation.dim,
        "share_of_head": rotation.dim / architecture.d_head,
        "pairs": len(rotation.periods),
        "shortest": min(rotation.periods),
        "longest": max(rotation.periods),
        "turning": turning(architecture.n_ctx),
        "window": kind.window,
        "turning_in_window": turning(kind.window),
        "scaling": rotation.scaling,
        "strength": rotation.strength,
    }


# Slopes


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


# Tables


def _tables(metrics: PositionSchemeMetrics, kinds: list[_Kind]) -> dict[str, Table]:
    tables = {}
    if metrics["rotations"]:
        title = "Rotated pairs of channels: tokens per turn"
        tables["rotations"] = table_of(title, PairRow, _pairs(metrics["n_ctx"], kinds))
    if metrics["slopes"] is not None:
        title = "Slopes of heads, and where equal content has half its weight"
        tables["slopes"] = table_of(title, SlopeHead, metrics["slopes"]["heads"])
    if metrics["biases"] is not None:
        title = "Relative biases of heads, in nats, and how far they would look by them alone"
        tables["biases"] = table_of(title, BiasHead, metrics["biases"]["heads"])
    return tables


def _pairs(n_ctx: int | None, kinds: list[_Kind]) -> list[PairRow]:
    return [
        {
            "layers": _in_ranges(kind.layers),
            "pair": pair,
            "period": period,
            "turns": None if n_ctx is None else n_ctx / period,
        }
        for kind in kinds
        for pair, period in enumerate(kind.rotation.periods)
    ]


def _in_ranges(layers: list[int]) -> str:
    """Return layers as a table names them: "0-4, 6-10"."""
    starts = [layer for layer in layers if layer - 1 not in layers]
    ends = [layer for layer in layers if layer + 1 not in layers]
    return ", ".join(
        str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True)
    )
