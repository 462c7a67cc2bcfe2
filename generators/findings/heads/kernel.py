"""How much of its attention each head would give the previous token if positions were all that its layer reads."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.architecture import Architecture
from generators.findings.inputs import Weights
from generators.maths.kernels import by_head, layer_norm, positional_kernel


def weights_on_previous(
    weights: Weights, architecture: Architecture, P: Float[Array, "n d"]
) -> Float[Array, " heads"]:
    """Return the kernel's weight at offset 1 of every head, layer by layer; beyond layer 0 a caricature."""
    found = []
    for layer in range(architecture.n_layer):
        norm = f"blocks.{layer}.ln1"
        read = P
        if f"{norm}.gain" in weights:
            read = layer_norm(P, weights[f"{norm}.gain"], weights.get(f"{norm}.bias"), architecture.norm_eps)
        queries, keys = (
            by_head(read, weights[role], weights.get(f"{role}.bias"), architecture.n_head)
            for role in (f"blocks.{layer}.attn.q", f"blocks.{layer}.attn.k")
        )
        scale = np.sqrt(queries.shape[-1]) * (layer + 1 if architecture.scaled_by_layer else 1)
        queries = queries / np.float32(scale)
        found += [
            positional_kernel(queries[head], keys[head], architecture.causal).at(1)
            for head in range(architecture.n_head)
        ]
    return np.array(found)
