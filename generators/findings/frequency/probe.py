import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.frequency.tokens import FrequencyTokens
from generators.findings.measured import Interval
from generators.findings.nulls import RESAMPLES, interval
from generators.maths.resampling import resample_items, spearman_of

FOLDS = 5  # folds of neighboring ids, so that drift along the ids doesn't help
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # relative to the mean energy of a channel


class Probe(TypedDict):
    """Rank correlation of what the probe reads with frequency, on tokens that it was not fitted on."""

    rho: float
    interval: Interval
    n_tokens: int
    folds: int


def probe(E: Float[Array, "V d"], tokens: FrequencyTokens, seed: int) -> Probe:
    """Return how well ridge regression on all channels reads the rank by frequency of tokens spread over the ids.

    It is fitted on four fifths of them and read on the fifth, five times; of five penalties the best counts.
    """
    from scipy.stats import rankdata

    ids = tokens.compared
    ranks = rankdata(tokens.log_frequency[ids]).astype(np.float32)
    read = _held_out(E, ids, ranks / len(ranks))
    rhos = [float(spearman_of(column, ranks)(np.ones((1, len(ids))))[0]) for column in read.T]
    best = int(np.argmax(rhos))
    drawn = resample_items(spearman_of(read[:, best], ranks), len(ids), RESAMPLES, np.random.default_rng(seed))
    return {"rho": rhos[best], "interval": interval(drawn), "n_tokens": len(ids), "folds": FOLDS}


def _held_out(
    E: Float[Array, "V d"], ids: Int[Array, " m"], target: Float[Array, " m"]
) -> Float[Array, "m penalties"]:
    """Return what the probe reads of every token when fitted on the other folds, for every penalty."""
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import KFold

    rows = E[ids].astype(np.float32)
    penalties = np.array(PENALTIES) * float(np.var(rows, axis=0).sum()) * len(rows) / rows.shape[1]
    read = np.empty((len(ids), len(penalties)), np.float32)
    for fitted, held_out in KFold(FOLDS).split(rows):
        model = Ridge(alpha=penalties + np.finfo(np.float32).tiny, solver="cholesky")
        model.fit(rows[fitted], np.repeat(target[fitted, None], len(penalties), axis=1))
        read[held_out] = model.predict(rows[held_out])
    return read
