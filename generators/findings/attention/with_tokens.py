"""What every head attends to if it sees positions with tokens on them, drawn by how often they occur.

Positions alone are a caricature even in layer 0, because the norm scales a lone P up to the size of a whole input.
With tokens the input is E[u] + P (and the row that BERT-like models add for the type of a token). A norm of a sum is
linear but for one number per input, so every token and every position is projected once, and their sums only scaled.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.base.architecture import Architecture
from generators.base.frequencies import TokenFrequency
from generators.findings.attention.heads import (
    PAIRINGS,
    RANDOM_KEYS,
    REACH,
    SEED,
    Head,
    Kernels,
    Looked,
    best_of,
    described_head,
    random_keys,
)
from generators.findings.inputs import Inputs, Weights
from generators.findings.measured import table_of
from generators.findings.nulls import RESAMPLES, drawn, interval
from generators.findings.positional import score_scale, scoring, window_of
from generators.maths.kernels import Scoring, first_query
from generators.maths.resampling import item_weights

DRAWS = 64  # draws of tokens for every position
QUERIES = 16  # query positions per draw
ROWS = 4096  # sums of a token and a position per batch
POOL = 1024  # tokens that all draws sample from


@dataclass(frozen=True)
class _Sample:
    pool: Float[Array, "pool d"]
    tokens: Int[Array, "draws n"]
    queries: Int[Array, "draws queries"]


def kernels_with_tokens(inputs: Inputs, P: Float[Array, "n d"]) -> Looked:
    """Return what heads attend to for inputs E[u] + P, u drawn by frequency, 64 draws for all positions.

    Peaks are sought near the query.
    """
    sample = _sample(inputs, len(P))
    architecture, asked = inputs.architecture, sample.queries
    first = 0 if architecture.causal else max(-REACH, int(asked.min()) - (len(P) - 1))
    offsets = np.arange(first, min(REACH, int(asked.max())) + 1)
    added = inputs.weights.get("token_type_embedding")
    rows = P if added is None else P + added[0]
    layers = [_layer(inputs.weights, architecture, rows, sample, i, offsets) for i in range(architecture.n_layer)]
    near = np.concatenate([layer[0] for layer in layers])  # (heads, draws, offsets)
    unordered = np.max([layer[1] for layer in layers], axis=0)
    mean = np.nanmean(near, axis=1)
    heads = [
        described_head(*divmod(i, architecture.n_head), int(offsets[np.argmax(each)]), float(each[offsets == 1][0]))
        for i, each in enumerate(mean)
    ]
    at_1 = near[best_of(heads), :, offsets == 1].ravel()
    resampled = item_weights(DRAWS, RESAMPLES, np.random.default_rng(SEED))
    kernels = Kernels(heads=heads, interval_of_best=interval(resampled @ at_1 / DRAWS))
    arrays = {"token_kernel_offsets": offsets.astype(np.int32), "token_kernels": mean.astype(np.float32)}
    table = table_of(f"What each head attends to with tokens on the positions ({DRAWS} draws)", Head, heads)
    return Looked(kernels, drawn(RANDOM_KEYS, unordered), table, arrays)


def can_have_tokens(weights: Weights, architecture: Architecture) -> bool:
    """Return whether what attention reads of a token on a position is here, and one norm of their sum."""
    turns = any(rotation is not None for rotation in architecture.rotary)
    return "token_embedding" in weights and "embedding_norm.gain" not in weights and not turns


def _sample(inputs: Inputs, n: int) -> _Sample:
    rng = np.random.default_rng(SEED)
    E = inputs.weights["token_embedding"]
    known = next((f for f in inputs.frequencies if not f.proxy), None)
    ids = rng.choice(len(E), POOL, p=None if known is None else _shares(known))
    start, last = first_query(n), n - 1 if inputs.architecture.causal else n - 2
    queries = np.stack(
        [rng.choice(np.arange(start, last + 1), min(QUERIES, last + 1 - start), False) for _ in range(DRAWS)]
    )
    pool = np.asarray(E[ids], np.float64) * inputs.architecture.embedding_scale
    return _Sample(pool, rng.integers(POOL, size=(DRAWS, n)), queries)


def _shares(frequency: TokenFrequency) -> Float[Array, " V"]:
    """Return how often each token occurs as a share of all; tokens that the source can't speak about do not occur."""
    logs = np.where(np.isfinite(frequency.log_frequency), frequency.log_frequency, -np.inf)
    counts = np.expm1(logs) if frequency.source in ("counts", "corpus") else np.exp(logs)
    return np.asarray(counts / counts.sum(), np.float64)


def _layer(
    weights: Weights,
    architecture: Architecture,
    rows: Float[Array, "n d"],
    sample: _Sample,
    layer: int,
    offsets: Int[Array, " offsets"],
) -> tuple[Float[Array, "heads draws offsets"], Float[Array, " pairings"]]:
    inner = _projected(weights, architecture, rows, sample.pool, layer)
    near = np.full((architecture.n_head, DRAWS, len(offsets)), np.nan)
    at_random = np.zeros((architecture.n_head, PAIRINGS))
    for draw, (tokens, queries) in enumerate(zip(sample.tokens, sample.queries, strict=True)):
        attention = inner.attention(tokens, queries, architecture)
        keys = queries[:, None] - offsets
        exists = (keys >= 0) & (keys < len(rows))
        found = np.take_along_axis(attention, np.clip(keys, 0, len(rows) - 1)[None], axis=2)
        np.divide(np.sum(found * exists, axis=1), exists.sum(axis=0), out=near[:, draw], where=exists.any(axis=0))
        random = random_keys(queries, len(rows), architecture.causal, window_of(architecture, layer))
        at_random += np.take_along_axis(attention, random[None], axis=2).mean(axis=1)
    return near, at_random.max(axis=0) / DRAWS


@dataclass(frozen=True)
class _Projected:
    """Queries and keys of every token and every position before the norm's scale, which depends on both together."""

    queries: tuple[Array, ...]
    keys: tuple[Array, ...]
    normed: tuple[Array, Array, float] | None  # tokens and positions before their sum is normed; epsilon
    score_scale: float
    scoring: Scoring

    def attention(
        self, tokens: Int[Array, " n"], queries: Int[Array, " queries"], architecture: Architecture
    ) -> Float[Array, "heads queries n"]:
        from scipy.special import softmax

        n = len(tokens)
        key_heads = architecture.n_kv_head or architecture.n_head
        keys = self._rows(self.keys, tokens, np.arange(n)).reshape(n, key_heads, -1)
        keys = np.repeat(keys, architecture.n_head // key_heads, axis=1)  # for heads that share keys
        projected = self._rows(self.queries, tokens[queries], queries).reshape(len(queries), architecture.n_head, -1)
        scores = np.matmul(projected.transpose(1, 0, 2), keys.transpose(1, 2, 0)) * np.float32(self.score_scale)
        return softmax(self.scoring.of(scores, queries[:, None] - np.arange(n)), axis=2)

    def _rows(
        self, side: tuple[Array, ...], tokens: Int[Array, " m"], positions: Int[Array, " m"]
    ) -> Float[Array, "m a"]:
        of_tokens, of_positions, constant = side
        return (of_tokens[tokens] + of_positions[positions]) * self._scale(tokens, positions)[:, None] + constant

    def _scale(self, tokens: Int[Array, " m"], positions: Int[Array, " m"]) -> Float[Array, " m"]:
        if self.normed is None:
            return np.ones(len(tokens), np.float32)
        of_tokens, of_positions, eps = self.normed
        scale = np.empty(len(tokens), np.float32)
        for begin in range(0, len(tokens), ROWS):
            part = slice(begin, begin + ROWS)
            rows = of_tokens[tokens[part]] + of_positions[positions[part]]
            scale[part] = 1 / np.sqrt(np.einsum("ij,ij->i", rows, rows) / rows.shape[1] + eps)
        return scale


def _projected(
    weights: Weights, architecture: Architecture, rows: Float[Array, "n d"], pool: Float[Array, "pool d"], layer: int
) -> _Projected:
    norm, role = f"blocks.{layer}.ln1", f"blocks.{layer}.attn"
    gain = weights.get(f"{norm}.gain")
    tokens, positions, normed = pool, rows, None
    if gain is not None:
        if architecture.norm == "layer":
            tokens, positions = (x - x.mean(axis=1, keepdims=True) for x in (tokens, positions))
        normed = tokens, positions, architecture.norm_eps
        tokens, positions = tokens * gain, positions * gain
    sides = []
    for name in "qk":
        W, bias = weights[f"{role}.{name}"], weights.get(f"{role}.{name}.bias")
        constant = np.zeros(W.shape[1]) if bias is None else np.asarray(bias, np.float64)
        if gain is not None and f"{norm}.bias" in weights:
            constant = constant + weights[f"{norm}.bias"] @ W
        sides.append(tuple(np.asarray(x, np.float32) for x in (tokens @ W, positions @ W, constant)))
    d_head = weights[f"{role}.q"].shape[1] // architecture.n_head
    scored = scoring(weights, architecture, layer, len(rows))
    return _Projected(sides[0], sides[1], normed, score_scale(architecture, d_head, layer), scored)
