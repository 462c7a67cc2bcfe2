"""What queries, keys and scores of a layer are if positions are all that it reads, as the architecture makes them."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.architecture import Architecture
from generators.findings.inputs import NotApplicableError, Weights
from generators.findings.sizes import NORM, PROJECTION, check_width
from generators.maths.distances import bias_by_offset, slope_biases, turned
from generators.maths.kernels import Scoring, by_head, layer_norm, rms_norm

# Weights and config fields read in addition to the query and key matrices.
ROLES = (
    "blocks.*.ln1.gain",
    "blocks.*.ln1.bias",
    "blocks.*.attn.q.bias",
    "blocks.*.attn.k.bias",
    "blocks.*.attn.relative_bias",
    *(f"{NORM}.{part}" for part in ("gain", "bias")),
    *(PROJECTION, f"{PROJECTION}.bias"),
)
CONFIG = (
    "n_layer",
    "n_head",
    "n_kv_head",
    "norm",
    "norm_eps",
    "causal",
    "scaled_by_layer",
    "score_scale",
    "score_cap",
    "positions",
    "rotary",
    "slopes",
    "buckets",
    "windows",
)
Rows = Float[Array, "n d"]


NO_ROTATIONS = "This model doesn't rotate queries and keys."


def without_rotations(architecture: Architecture) -> str | None:
    """Return why findings about rotations have no meaning for an architecture; None where they have one."""
    return None if any(architecture.rotary) else NO_ROTATIONS


def stream_of(weights: Weights, architecture: Architecture, P: Rows) -> Rows:
    """Return what the stream is before the first block where P is all that enters it."""
    rows = normed(weights, NORM, P, architecture)
    if PROJECTION in weights:
        rows = rows @ weights[PROJECTION] + weights.get(f"{PROJECTION}.bias", 0)
    check_width(rows, weights["blocks.0.attn.q"])
    if architecture.positions == "relative" and architecture.buckets is None:
        raise NotApplicableError(
            "Queries and keys are compared with embeddings of their distance too (DeBERTa): what positions do to "
            "attention can't be told from the position embedding alone."
        )
    if architecture.buckets is not None and "blocks.0.attn.relative_bias" not in weights:
        raise NotApplicableError(
            "Scores have a bias by distance that isn't in this checkpoint: what positions do to attention can't be "
            "told from the position embedding alone."
        )
    return rows


def queries_and_keys(
    weights: Weights, architecture: Architecture, rows: Rows, layer: int
) -> tuple[Float[Array, "heads n d_head"], Float[Array, "heads n d_head"]]:
    """Return what rows give as queries (scaled as the model scales scores) and keys, turned where it turns them."""
    read = normed(weights, f"blocks.{layer}.ln1", rows, architecture)
    heads = {"q": architecture.n_head, "k": architecture.n_kv_head or architecture.n_head}
    rotation = architecture.rotary[layer] if architecture.rotary else None
    queries, keys = (
        turned(by_head(read, weights[role], weights.get(f"{role}.bias"), heads[role[-1]]), rotation)
        for role in (f"blocks.{layer}.attn.q", f"blocks.{layer}.attn.k")
    )
    keys = np.repeat(keys, len(queries) // len(keys), axis=0)  # for heads that share keys
    return queries * np.float32(score_scale(architecture, queries.shape[-1], layer)), keys


def score_scale(architecture: Architecture, d_head: int, layer: int) -> float:
    scale = 1 / float(np.sqrt(d_head)) if architecture.score_scale is None else architecture.score_scale
    return scale / (layer + 1) if architecture.scaled_by_layer else scale


def scoring(weights: Weights, architecture: Architecture, layer: int, n: int) -> Scoring:
    """Return what a layer makes of its scores in a context of n: mask, window, cap, and biases by distance."""
    bias = np.zeros((architecture.n_head, 2 * n - 1))
    if architecture.slopes:
        bias += slope_biases(architecture.slopes, n)
    if architecture.buckets is not None:
        bias += bias_by_offset(weights[f"blocks.{layer}.attn.relative_bias"], architecture.buckets, n)
    return Scoring(
        architecture.causal,
        window_of(architecture, layer),
        architecture.score_cap,
        bias if bias.any() else None,
    )


def window_of(architecture: Architecture, layer: int) -> int | None:
    """Return how many keys a query of a layer sees on a side, itself included; None where it sees all."""
    return architecture.windows[layer] if architecture.windows else None


def normed(weights: Weights, norm: str, x: Rows, architecture: Architecture) -> Rows:
    """Apply a norm; where there is none, x passes unchanged."""
    if f"{norm}.gain" not in weights:
        return x
    gain, eps = weights[f"{norm}.gain"], architecture.norm_eps
    if architecture.norm == "rms":
        return rms_norm(x, gain, eps)
    return layer_norm(x, gain, weights.get(f"{norm}.bias"), eps)
