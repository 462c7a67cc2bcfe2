"""What every head attends to if it sees positions alone."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Architecture
from generators.findings.contract import Weights
from generators.maths.kernels import Kernel, by_head, layer_norm, positional_kernel, uniform_kernel

SMALLEST_WEIGHT = 0.5  # of a previous-token head at offset 1
REACH = 32  # offsets kept for the figures, on either side

Head = TypedDict(
    "Head",
    {
        "layer": int,
        "head": int,
        "peak_offset": int,
        "weight_at_peak": float,
        "weight_at_-1": float | None,  # None in a causal model
        "weight_at_0": float,
        "weight_at_1": float,
        "peak_offset_all_queries": int,
        "previous_token_head": bool,
    },
)


@dataclass(frozen=True)
class Heads:
    """Every head's kernel in words and in numbers, layer by layer, and that of uniform attention."""

    described: list[Head]
    kernels: Float[Array, "heads offsets"]
    uniform: Kernel

    def near(self) -> dict[str, Array]:
        """Return the kernels at the offsets that figures show."""
        near = np.abs(self.uniform.offsets) <= REACH
        return {
            "kernel_offsets": self.uniform.offsets[near].astype(np.int32),
            "kernels": self.kernels[:, near].astype(np.float32),
            "uniform_kernel": self.uniform.mean[near].astype(np.float32),
        }


def positional_heads(weights: Weights, architecture: Architecture, P: Float[Array, "n d"]) -> Heads:
    """Return what every head attends to if P is all that its layer reads; beyond layer 0 a caricature."""
    described, means = [], []
    for layer in range(architecture.n_layer):
        queries, keys = queries_and_keys(weights, architecture, P, layer)
        for head in range(architecture.n_head):
            kernel = positional_kernel(queries[head], keys[head], architecture.causal)
            described.append(_described(kernel, layer, head, architecture.causal))
            means.append(kernel.mean)
    return Heads(described, np.stack(means), uniform_kernel(len(P), architecture.causal))


def queries_and_keys(
    weights: Weights, architecture: Architecture, P: Float[Array, "n d"], layer: int
) -> tuple[Float[Array, "heads n d_head"], Float[Array, "heads n d_head"]]:
    """Return what positions alone give as queries (scaled as the model scales scores) and keys."""
    read = _normed(weights, f"blocks.{layer}.ln1", P, architecture.norm_eps)
    queries, keys = (
        by_head(read, weights[role], weights.get(f"{role}.bias"), architecture.n_head)
        for role in (f"blocks.{layer}.attn.q", f"blocks.{layer}.attn.k")
    )
    scale = np.sqrt(queries.shape[-1]) * (layer + 1 if architecture.scaled_by_layer else 1)
    return queries / np.float32(scale), keys


def _normed(weights: Weights, norm: str, x: Float[Array, "n d"], eps: float) -> Float[Array, "n d"]:
    """Apply a layer norm; where the first layer has none before its attention, x passes unchanged."""
    if f"{norm}.gain" not in weights:
        return x
    return layer_norm(x, weights[f"{norm}.gain"], weights.get(f"{norm}.bias"), eps)


def _described(kernel: Kernel, layer: int, head: int, causal: bool) -> Head:
    return {
        "layer": layer,
        "head": head,
        "peak_offset": kernel.peak,
        "weight_at_peak": kernel.at(kernel.peak),
        "weight_at_-1": None if causal else kernel.at(-1),
        "weight_at_0": kernel.at(0),
        "weight_at_1": kernel.at(1),
        "peak_offset_all_queries": kernel.peak_all_queries,
        "previous_token_head": kernel.peak == 1 and kernel.at(1) >= SMALLEST_WEIGHT,
    }
