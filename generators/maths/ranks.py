"""Correlations, of values and of ranks."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array


def pearson(x: Float[Array, " n"], y: Float[Array, " n"]) -> float | None:
    """Return Pearson's correlation, None where either side is constant."""
    if not np.ptp(x) or not np.ptp(y):
        return None
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


def spearman(x: Float[Array, " n"], y: Float[Array, " n"]) -> float | None:
    """Return Spearman's rank correlation (ties share their mean rank), None where either side is constant."""
    from scipy.stats import rankdata

    return pearson(rankdata(x), rankdata(y))
