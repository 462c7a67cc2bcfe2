from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Architecture
from generators.findings.inputs import Weights
from generators.findings.measured import Interval, StoredChance, Table, table_of
from generators.findings.nulls import RESAMPLES, drawn, interval
from generators.findings.positional import queries_and_keys, scoring, stream_of, window_of
from generators.maths.kernels import Kernel, OffsetSums, asked_positions, attention, first_query, uniform_kernel
from generators.maths.resampling import block_weights, ratio_of

SMALLEST_WEIGHT = 0.5  # smallest weight of a previous-token head at offset 1
REACH = 32  # offsets stored for the figures, on either side
PAIRINGS = 100  # random keys per query: the null of positions without order
RANDOM_KEYS = "the best head's weights on keys drawn at random"
SEED = 20230810


class Head(TypedDict):
    layer: int
    head: int
    peak_offset: int
    weight_at_1: float
    previous_token_head: bool


class Kernels(TypedDict):
    """What every head attends to; the interval is that of the best head's weight at offset 1 (`best_of`)."""

    heads: list[Head]
    interval_of_best: Interval


@dataclass(frozen=True)
class Looked:
    """What heads attend to, and the largest mean weight of any of them on keys drawn at random."""

    kernels: Kernels
    chance: StoredChance
    table: Table
    arrays: dict[str, Array]


def positional_heads(weights: Weights, architecture: Architecture, P: Float[Array, "n d"]) -> Looked:
    """Return what every head attends to if P is all that its layer reads; beyond layer 0 a caricature."""
    described, means, at_1 = [], [], []
    stream, unordered = stream_of(weights, architecture, P), np.zeros(PAIRINGS)
    asked = asked_positions(len(P))
    counted = asked[asked >= first_query(len(P))]
    for layer in range(architecture.n_layer):
        queries, keys = queries_and_keys(weights, architecture, stream, layer)
        scored, window = scoring(weights, architecture, layer, len(P)), window_of(architecture, layer)
        keys_at_random = random_keys(counted, len(P), architecture.causal, window)
        for head in range(architecture.n_head):
            parts = attention(queries[head], keys[head], scored, head)
            kernel, of_previous, at_random = _looked(parts, len(P), keys_at_random, architecture.causal)
            unordered = np.maximum(unordered, at_random)
            described.append(described_head(layer, head, kernel.peak, kernel.at(1)))
            means.append(kernel.mean)
            at_1.append(of_previous)
    best = best_of(described)
    uniform = uniform_kernel(len(P), architecture.causal, window_of(architecture, 0))
    near = np.abs(uniform.offsets) <= REACH
    resampled = block_weights(len(at_1[best]), RESAMPLES, np.random.default_rng(SEED))
    kernels = Kernels(
        heads=described,
        interval_of_best=interval(ratio_of(at_1[best], np.ones(len(at_1[best])))(resampled)),
    )
    arrays = {
        "kernel_offsets": uniform.offsets[near].astype(np.int32),
        "kernels": np.stack(means)[:, near].astype(np.float32),
        "uniform_kernel": uniform.mean[near].astype(np.float32),
    }
    table = table_of("What each head attends to if it sees positions alone", Head, described)
    return Looked(kernels, drawn(RANDOM_KEYS, unordered), table, arrays)


def _looked(
    parts: Iterable[tuple[Int[Array, " rows"], Float[Array, "rows n"]]],
    n: int,
    keys_at_random: Int[Array, "queries draws"],
    causal: bool,
) -> tuple[Kernel, Float[Array, " queries"], Float[Array, " draws"]]:
    """Return a head's kernel, each counted query's weight on the previous token, and the mean one on random keys."""
    sums, previous = OffsetSums(n, causal), []
    at_random, seen = np.zeros(keys_at_random.shape[1]), 0
    for positions, weights in parts:
        sums.add(positions, weights)
        late = positions >= first_query(n)
        rows, asked = weights[late], positions[late]
        previous.append(rows[np.arange(len(rows)), asked - 1].astype(np.float64))
        at_random += np.take_along_axis(rows, keys_at_random[seen : seen + len(rows)], axis=1).sum(
            axis=0, dtype=np.float64
        )
        seen += len(rows)
    return sums.kernel(), np.concatenate(previous), at_random / seen


def best_of(heads: Sequence[Head]) -> int:
    """Return which head looks most at the previous token, of previous-token heads where there are any."""
    return max(range(len(heads)), key=lambda i: (heads[i]["previous_token_head"], heads[i]["weight_at_1"]))


def random_keys(
    queries: Int[Array, " queries"], n: int, causal: bool, window: int | None = None
) -> Int[Array, "queries draws"]:
    """Return `PAIRINGS` keys at random for every query position, of those it may see: positions without order."""
    rng = np.random.default_rng(SEED)
    reach = n if window is None else window
    first = np.maximum(queries - reach + 1, 0)
    seen = (queries + 1 if causal else np.minimum(queries + reach, n)) - first
    return (first[:, None] + rng.random((len(queries), PAIRINGS)) * seen[:, None]).astype(np.intp)


def described_head(layer: int, head: int, peak: int, at_1: float) -> Head:
    return {
        "layer": layer,
        "head": head,
        "peak_offset": peak,
        "weight_at_1": at_1,
        "previous_token_head": peak == 1 and at_1 >= SMALLEST_WEIGHT,
    }
