"""A null for correlations with values that drift along an order of items.

Values are decomposed into waves along the order (half cosines, DCT-II), and every wave gets a random sign. The result
drifts as much and as slowly, in another direction. For a random walk, and nearly for any stationary series, the waves
are independent and both signs are equally likely, so the null is exact. Signs are random rather than phases (Theiler
et al. 1992), since a drift need not return to where it began.
"""

import numpy as np
import scipy.fft
from jaxtyping import Float
from numpy import ndarray as Array

from generators.maths.ranks import unit_ranks


def drifting_correlations(
    ranks: Float[Array, "quantities n"], values: Float[Array, " n"], draws: int, rng: np.random.Generator
) -> Float[Array, "draws quantities"]:
    """Return Spearman's correlations of quantities with values of which every wave along the items has a random sign.

    `ranks` are `unit_ranks` of one quantity per row, the items in their order. `draws` is an even number: with every
    set of signs comes its opposite, so that the median is 0.
    """
    waves = scipy.fft.dct(ranks, axis=1, norm="ortho")
    waves *= scipy.fft.dct(unit_ranks(values[None], np.float32), axis=1, norm="ortho")
    signs = np.where(rng.random((draws // 2, waves.shape[1]), dtype=np.float32) < 0.5, np.float32(-1), np.float32(1))
    found = (signs @ waves.T).astype(np.float64)
    return np.concatenate([found, -found])
