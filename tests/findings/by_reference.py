"""Attention by the reference that torch's own models were compared with."""

from collections.abc import Mapping

import numpy as np

from generators.base.architecture import Architecture
from tests.checkpoint.oracle.said import Loaded, normed, probabilities

Array = np.ndarray


def attention_to(x: Array, weights: Mapping[str, Array], arch: Architecture, layer: int) -> Array:
    """Return attention (heads, queries, keys) of a layer that reads these rows."""
    exact = Loaded({role: array.astype(np.float64) for role, array in weights.items()}, arch)
    return probabilities(exact, layer, normed(exact, f"blocks.{layer}.ln1", x, arch))


def attention_to_positions(weights: Mapping[str, Array], arch: Architecture, layer: int) -> Array:
    P = weights["position_embedding"].astype(np.float64)
    return attention_to(normed(weights, "embedding_norm", P, arch), weights, arch, layer)
