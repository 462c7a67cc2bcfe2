"""Position embeddings whose rows differ; a table with the same row at every position carries no position."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.findings.inputs import Weights


def nonconstant_positions(weights: Weights) -> Float[Array, "n d"] | None:
    """Return the position embeddings in float64; None if there are none, or if all rows after the first are equal."""
    if "position_embedding" not in weights:
        return None
    P = np.asarray(weights["position_embedding"], np.float64)
    rest = P[1:] if len(P) > 2 else P
    return P if np.ptp(rest, axis=0).any() else None
