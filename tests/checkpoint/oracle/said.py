"""What the roles of a checkpoint say of norms, matrices and attention, computed with NumPy alone."""

from collections.abc import Mapping

import numpy as np

from generators.base.architecture import Architecture
from generators.findings.positional import score_scale
from generators.maths.distances import bias_by_offset, turned

Array = np.ndarray


def normed(weights: Mapping[str, Array], role: str, x: Array, a: Architecture, bare: bool = False) -> Array:
    """Apply the norm of a role to rows (n, channels), or to heads (n, heads, c)."""
    if f"{role}.gain" not in weights and not bare:
        return x
    centred = x - x.mean(axis=-1, keepdims=True) if a.norm == "layer" else x
    scaled = centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + a.norm_eps)
    return scaled * weights.get(f"{role}.gain", np.ones(1)) + weights.get(f"{role}.bias", np.zeros(1))


def projected(weights: Mapping[str, Array], role: str, x: Array) -> Array:
    return x @ weights[role].astype(np.float64) + weights.get(f"{role}.bias", np.zeros(1))


def probabilities(checkpoint: "Loaded", layer: int, x: Array) -> Array:
    """Return what the roles say of attention (heads, queries, keys) for what queries and keys are read from."""
    a, block = checkpoint.architecture, f"blocks.{layer}.attn"
    queries, keys = (heads_of(checkpoint, f"{block}.{name}", x) for name in "qk")
    rotation = a.rotary[layer] if a.rotary else None
    queries, keys = turned(queries, rotation), turned(keys, rotation)
    keys = np.repeat(keys, len(queries) // len(keys), axis=0)
    scores = queries @ keys.transpose(0, 2, 1) * score_scale(a, a.d_head, layer)
    if a.score_cap is not None:
        scores = a.score_cap * np.tanh(scores / a.score_cap)
    scores = _masked(scores + _bias(checkpoint, layer, len(x)), a, layer)
    if f"{block}.sinks" in checkpoint:
        sinks = np.broadcast_to(checkpoint[f"{block}.sinks"][:, None, None], (*scores.shape[:2], 1))
        scores = np.concatenate([scores, sinks], axis=2)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return (weights / weights.sum(axis=2, keepdims=True))[:, :, : len(x)]


def heads_of(checkpoint: "Loaded", role: str, x: Array) -> Array:
    """Return queries, keys or values as (heads, n, c), normed if the family norms them."""
    a, norm = checkpoint.architecture, f"{role}_norm"
    flat = projected(checkpoint, role, x)
    if checkpoint.get(f"{norm}.gain", np.zeros(0)).shape == flat.shape[1:]:  # one norm over all heads
        flat = normed(checkpoint, norm, flat, a)
        return flat.reshape(len(x), -1, a.d_head).transpose(1, 0, 2)
    rows = flat.reshape(len(x), -1, a.d_head)
    return normed(checkpoint, norm, rows, a).transpose(1, 0, 2)


def _bias(checkpoint: "Loaded", layer: int, n: int) -> Array:
    a = checkpoint.architecture
    bias = np.zeros((a.n_head, n, n))
    offsets = np.arange(n)[:, None] - np.arange(n)
    if a.slopes:
        bias = bias - np.array(a.slopes)[:, None, None] * offsets
    if a.buckets is not None:
        by_offset = bias_by_offset(checkpoint[f"blocks.{layer}.attn.relative_bias"], a.buckets, n)
        bias = bias + by_offset[:, n - 1 - offsets]
    return bias


def _masked(scores: Array, a: Architecture, layer: int) -> Array:
    n = scores.shape[1]
    offsets = np.arange(n)[:, None] - np.arange(n)
    window = a.windows[layer] if a.windows else None
    hidden = (offsets < 0) if a.causal else np.zeros((n, n), bool)
    if window is not None:
        hidden = hidden | (np.abs(offsets) >= window)
    return np.where(hidden, -np.inf, scores)


class Loaded(dict[str, Array]):
    """Roles in memory, with the architecture they are of."""

    def __init__(self, roles: Mapping[str, Array], architecture: Architecture) -> None:
        super().__init__(roles)
        self.architecture = architecture
