"""Heads of attention: their queries and keys, the softmax of the two, and its mean by offset.

An offset is query position - key position: 1 is the previous token, a negative one a token after the query.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

from generators.maths.blocks import spread_ids

AT_ONCE = 2**22  # attention weights (queries x keys) of a head per batch
MOST_QUERIES = 4096  # query positions averaged over per head
FIRST_QUERY = 100
FEWEST_FOR_LATE_QUERIES = 200


@dataclass(frozen=True)
class Kernel:
    """Mean attention by offset.

    Offsets run from 0 in a causal model, otherwise from the most negative one that a counted query has. A far offset
    exists for few queries, so its mean is a mean over few.
    """

    offsets: Int[Array, " offsets"]
    mean: Float[Array, " offsets"]
    peak: int

    def at(self, offset: int) -> float:
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


def attention(
    queries: Float[Array, "n d_head"], keys: Float[Array, "n d_head"], scoring: Scoring, head: int = 0
) -> Iterator[tuple[Int[Array, " rows"], Float[Array, "rows n"]]]:
    """Yield query positions and the softmax over the keys that they see, some rows at a time.

    Queries are already scaled, by 1/sqrt(d_head) and whatever else the model scales scores by; `head` is the head's
    number. The positions are those of `asked_positions`.
    """
    from scipy.special import softmax

    positions = np.arange(len(keys))
    rows, step = asked_positions(len(keys)), max(1, AT_ONCE // len(keys))
    for begin in range(0, len(rows), step):
        part = rows[begin : begin + step]
        scores = scoring.of((queries[part] @ keys.T)[None], part[:, None] - positions, head)[0]
        yield part, softmax(scores, axis=1)


def asked_positions(n: int) -> Int[Array, " queries"]:
    """Return the query positions that are averaged over: all, or 4,096 spread over a longer context."""
    return np.union1d(spread_ids(n, MOST_QUERIES), [first_query(n)]) if n > MOST_QUERIES else np.arange(n)


def kernel_of(parts: Iterable[tuple[Int[Array, " rows"], Float[Array, "rows n"]]], n: int, causal: bool) -> Kernel:
    """Average a head's attention by offset over the query positions >= 100 (>= 1 in short contexts)."""
    sums = OffsetSums(n, causal)
    for positions, weights in parts:
        sums.add(positions, weights)
    return sums.kernel()


class OffsetSums:
    """Attention weights of a head, summed by offset as they come, of the queries that count.

    With each sum goes how many queries have a key at that offset.
    """

    def __init__(self, n: int, causal: bool) -> None:
        self._n, self._start = n, first_query(n)
        self._offsets = np.arange(0 if causal else self._start - (n - 1), n)
        self._sums, self._counts = np.zeros((2, len(self._offsets)))

    def add(self, positions: Int[Array, " rows"], weights: Float[Array, "rows n"]) -> None:
        least = int(self._offsets[0])
        late = positions >= self._start
        for position, row in zip(positions[late].tolist(), weights[late], strict=True):
            lowest = max(least, position - (self._n - 1))
            there = slice(lowest - least, position + 1 - least)
            # backwards, keys come in the order of their offsets; the last keys have none that counts
            self._sums[there] += row[position - lowest :: -1]
            self._counts[there] += 1

    def kernel(self) -> Kernel:
        mean = self._sums / self._counts
        return Kernel(self._offsets, mean, int(self._offsets[np.argmax(mean)]))


def uniform_kernel(n: int, causal: bool, window: int | None = None) -> Kernel:
    """Return the kernel of a head that attends equally to every key that it sees, at n positions."""
    nothing = np.zeros((n, 1), np.float32)
    return kernel_of(attention(nothing, nothing, Scoring(causal, window)), n, causal)


def first_query(n: int) -> int:
    """Return the first query position that counts in a context of n: early ones have too few keys to choose from."""
    return FIRST_QUERY if n >= FEWEST_FOR_LATE_QUERIES else 1
