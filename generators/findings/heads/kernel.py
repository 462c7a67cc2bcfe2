import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.architecture import Architecture
from generators.findings.inputs import Weights
from generators.findings.positional import queries_and_keys, scoring, stream_of
from generators.maths.kernels import attention, kernel_of


def weights_on_previous(
    weights: Weights, architecture: Architecture, P: Float[Array, "n d"]
) -> Float[Array, " heads"]:
    """Return the kernel's weight at offset 1 of every head, layer by layer; beyond layer 0 a caricature."""
    found, stream = [], stream_of(weights, architecture, P)
    for layer in range(architecture.n_layer):
        queries, keys = queries_and_keys(weights, architecture, stream, layer)
        scored = scoring(weights, architecture, layer, len(P))
        found += [
            kernel_of(attention(queries[head], keys[head], scored, head), len(P), architecture.causal).at(1)
            for head in range(architecture.n_head)
        ]
    return np.array(found)
