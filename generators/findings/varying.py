"""Position embeddings that tell positions apart; a table that is all alike (held at zero, say) is none."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.findings.inputs import Weights


def varying_positions(weights: Weights) -> Float[Array, "n d"] | None:
    """Return the position embeddings in float64; None where there are none, or all rows but the first are alike."""
    if "position_embedding" not in weights:
        return None
    P = np.asarray(weights["position_embedding"], np.float64)
    rest = P[1:] if len(P) > 2 else P
    return P if np.ptp(rest, axis=0).any() else None
