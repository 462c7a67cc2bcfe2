"""Heads of attention: their queries and keys, the softmax of the two, and its mean by offset.

An offset is query position - key position: 1 is the previous token, a negative one a token after the query.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

FIRST_QUERY = 100
FEWEST_FOR_LATE_QUERIES = 200


@dataclass(frozen=True)
class Kernel:
    """Mean attention by offset.

    Offsets run from 0 in a causal model, otherwise from the most negative one that a counted query has. A far offset
    exists for few queries, so its mean is a mean over few; `peak_all_queries` is the peak within a quarter of the
    context, averaged over all queries.
    """

    offsets: Int[Array, " offsets"]
    mean: Float[Array, " offsets"]
    peak: int
    peak_all_queries: int

    def at(self, offset: int) -> float:
        """Return the mean attention at an offset."""
        return float(self.mean[offset - int(self.offsets[0])])


def layer_norm(
    x: Float[Array, "n d"], gain: Float[Array, " d"], bias: Float[Array, " d"] | None, eps: float
) -> Float[Array, "n d"]:
    """Return rows centred and scaled to unit variance, times the gain, plus the bias where there is one."""
    centred = x - x.mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + eps) * gain
    return scaled if bias is None else scaled + bias


def rms_norm(x: Float[Array, "n d"], gain: Float[Array, " d"], eps: float) -> Float[Array, "n d"]:
    """Return rows scaled to a root mean square of 1, times the gain."""
    return x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + eps) * gain


def by_head(
    read: Float[Array, "n d"], weight: Float[Array, "d a"], bias: Float[Array, " a"] | None, n_head: int
) -> Float[Array, "heads n d_head"]:
    """Return what each head's queries (or keys) are of rows that its layer reads, in float32."""
    rows = read @ weight if bias is None else read @ weight + bias
    return rows.reshape(len(read), n_head, -1).transpose(1, 0, 2).astype(np.float32)


@dataclass(frozen=True)
class Scoring:
    """What a layer makes of scores before their softmax: which keys count, and what is done to the scores.

    `window` is how many keys a query sees on a side, itself included; with `cap`, scores s become
    cap tanh(s / cap); after that `bias` is added, for offsets from n - 1 back to 1 - n ahead in a context of n.
    """

    causal: bool
    window: int | None = None
    cap: float | None = None
    bias: Float[Array, "heads offsets"] | None = None

    def of(
        self, scores: Float[Array, "heads queries n"], offsets: Int[Array, "queries n"], first: int = 0
    ) -> Float[Array, "heads queries n"]:
        """Return what the softmax is taken of: scores of some heads, the first of which is number `first`."""
        if self.cap is not None:
            scores = self.cap * np.tanh(scores / np.float32(self.cap))
        if self.bias is not None:
            bias = self.bias[first : first + len(scores), scores.shape[-1] - 1 - offsets]
            scores = scores + bias.astype(scores.dtype)
        hidden = self.hides(offsets)
        return np.where(hidden, scores.dtype.type(-np.inf), scores) if hidden.any() else scores

    def hides(self, offsets: Int[Array, "..."]) -> Bool[Array, "..."]:
        """Return at which offsets keys are not seen."""
        later = offsets < 0 if self.causal else np.zeros(offsets.shape, bool)
        return later if self.window is None else later | (np.abs(offsets) >= self.window)


def positional_kernel(queries: Float[Array, "n d_head"], keys: Float[Array, "n d_head"], scoring: Scoring) -> Kernel:
    """Average a head's attention by offset over the query positions >= 100 (>= 1 in short contexts).

    Queries are already scaled, by 1/sqrt(d_head) and whatever else the model scales scores by.
    """
    return kernel_of(attention(queries, keys, scoring), scoring.causal)


def attention(
    queries: Float[Array, "n d_head"], keys: Float[Array, "n d_head"], scoring: Scoring, head: int = 0
) -> Float[Array, "n n"]:
    """Return the softmax over the keys that are seen of a head's scaled queries with them; `head` is its number."""
    from scipy.special import softmax

    positions = np.arange(len(keys))
    scores = scoring.of((queries @ keys.T)[None], positions[:, None] - positions, head)[0]
    return softmax(scores, axis=1)


def kernel_of(weights: Float[Array, "n n"], causal: bool) -> Kernel:
    """Average attention weights (queries down, keys across) by offset."""
    n = len(weights)
    start = first_query(n)
    offsets = np.arange(0 if causal else start - (n - 1), n)
    late = _sums_by_offset(weights[start:], start, offsets)
    early = _sums_by_offset(weights[:start], 0, offsets)
    mean = late / _queries_with(offsets, start, n)
    near = np.abs(offsets) < max(2, n // 4)
    mean_all = (late + early)[near] / _queries_with(offsets[near], 0, n)
    return Kernel(offsets, mean, int(offsets[np.argmax(mean)]), int(offsets[near][np.argmax(mean_all)]))


def uniform_kernel(n: int, causal: bool, window: int | None = None) -> Kernel:
    """Return the kernel of a head that attends equally to every key that it sees, at n positions."""
    nothing = np.zeros((n, 1), np.float32)
    return positional_kernel(nothing, nothing, Scoring(causal, window))


def first_query(n: int) -> int:
    """Return the first query position that counts in a context of n: early ones have too few keys to choose from."""
    return FIRST_QUERY if n >= FEWEST_FOR_LATE_QUERIES else 1


def _queries_with(offsets: Int[Array, " offsets"], start: int, n: int) -> Int[Array, " offsets"]:
    """Return at how many query positions from `start` on each offset exists."""
    return np.minimum(n - 1, n - 1 + offsets) - np.maximum(start, offsets) + 1


def _sums_by_offset(
    weights: Float[Array, "queries n"], start: int, offsets: Int[Array, " offsets"]
) -> Float[Array, " offsets"]:
    """Return attention summed over queries `start`.. at each offset; 0 where it never exists."""
    m, n = weights.shape
    sums = np.zeros(len(offsets))
    diagonals = _diagonal_sums(weights)  # of column - row, from -(m - 1) to n - 1
    diagonal = start - offsets + m - 1
    exists = (diagonal >= 0) & (diagonal < m + n - 1)
    sums[exists] = diagonals[diagonal[exists]]
    return sums


def _diagonal_sums(matrix: Float[Array, "m n"]) -> Float[Array, " diagonals"]:
    """Return the sums along all diagonals, from the lower left corner to the upper right one."""
    m, n = matrix.shape
    sheared = np.zeros((m, n + m), np.float32)
    sheared[:, :n] = matrix[::-1]
    return sheared.ravel()[: m * (n + m - 1)].reshape(m, n + m - 1).sum(axis=0, dtype=np.float64)
