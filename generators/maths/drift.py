"""Would anything do that drifts along an order of items as these values do?

Values are taken apart into waves along the order (half cosines, DCT-II), and every wave gets a random sign. What comes
out drifts as much, and as slowly, in directions of its own. For a random walk and, nearly, for whatever is stationary
along the order, the waves are independent and either sign is as likely: then the null is exact. Surrogates by random
signs instead of random phases (Theiler et al. 1992), since a drift need not come back to where it began.
"""

import numpy as np
import scipy.fft
from jaxtyping import Float
from numpy import ndarray as Array


def drifting_correlations(
    rows: Float[Array, "quantities n"], values: Float[Array, " n"], draws: int, rng: np.random.Generator
) -> Float[Array, "draws quantities"]:
    """Return Spearman's correlations of quantities with values of which every wave along the items has a random sign.

    Args:
        rows: one quantity per row, the items in their order; a constant one correlates with nothing: 0.
        values: what they are correlated with.
        draws: how many, an even number: with every set of signs comes its opposite, so that the median is 0.
        rng: seeded.
    """
    waves = scipy.fft.dct(_ranks(rows), axis=1, norm="ortho") * scipy.fft.dct(_ranks(values[None]), axis=1, norm="ortho")
    half = np.where(rng.random((draws // 2, waves.shape[1]), dtype=np.float32) < 0.5, np.float32(-1), np.float32(1))
    found = (half @ waves.T).astype(np.float64)
    return np.concatenate([found, -found])


def _ranks(rows: Float[Array, "quantities n"]) -> Float[Array, "quantities n"]:
    """Return centred ranks at unit length; zeros for a constant row."""
    from scipy.stats import rankdata

    ranks = rankdata(rows, axis=1) - (rows.shape[1] + 1) / 2
    lengths = np.linalg.norm(ranks, axis=1, keepdims=True)
    return np.divide(ranks, lengths, out=np.zeros_like(ranks), where=lengths > 0).astype(np.float32)
