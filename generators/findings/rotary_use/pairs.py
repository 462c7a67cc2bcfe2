from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.base.architecture import Architecture, Rotary
from generators.base.runs import Run
from generators.findings.inputs import Inputs
from generators.findings.positional import queries_and_keys, scoring
from generators.maths.kernels import attention

REACH = 64  # offsets
CLOSE = 0.01  # largest mean |difference| in a query's attention for a match with the model


@dataclass(frozen=True)
class PairsOfHeads:
    """By head, layer by layer: of each pair its share of scores and the mean lengths of its queries times keys.

    `previous` and `first` are mean attention to the previous token and, of queries from 64 on, to the first.
    """

    shares: Float[Array, "heads pairs"]
    lengths: Float[Array, "heads pairs"]
    previous: Float[Array, " heads"]
    first: Float[Array, " heads"]


def pairs_of_heads(inputs: Inputs, run: Run, ids: Int[Array, "windows n"]) -> PairsOfHeads | None:
    """Return what pairs do in every head, None where the weights don't give the queries and keys of the model."""
    arch, weights = inputs.architecture, inputs.weights
    roles = [f"blocks.{i}.attn.{name}" for i in range(arch.n_layer) for name in "qk"]
    if any(role not in weights for role in roles) or len({_size(rotation) for rotation in arch.rotary}) != 1:
        return None
    streams = np.empty((arch.n_layer, *ids.shape, run.architecture.d_model), np.float32)
    looks = np.empty((arch.n_layer, len(ids), arch.n_head, *2 * ids.shape[1:]), np.float32)

    def see_states(stage: int, begin: int, states: Float[Array, "batch n d"]) -> None:
        if stage < arch.n_layer:
            streams[stage, begin : begin + len(states)] = states

    def see_attention(layer: int, begin: int, seen: Float[Array, "batch heads n n"]) -> None:
        looks[layer, begin : begin + len(seen)] = seen

    run.hidden_states(ids, see_states)
    run.attention(ids, see_attention)
    shares, lengths = [], []
    for layer in range(arch.n_layer):
        rotation = arch.rotary[layer]
        found = [queries_and_keys(weights, arch, rows, layer) for rows in streams[layer]]
        if rotation is None or not _are_the_models(found[0], inputs, layer, looks[layer, 0]):
            return None
        shares.append(np.mean([_score_shares(q, k, rotation) for q, k in found], axis=0))
        lengths.append(np.mean([_lengths(q, rotation) * _lengths(k, rotation) for q, k in found], axis=0))
    previous = np.diagonal(looks, -1, -2, -1).mean(axis=(1, 3))
    return PairsOfHeads(
        np.concatenate(shares),
        np.concatenate(lengths),
        previous.ravel(),
        looks[..., min(REACH, ids.shape[1] // 2) :, 0].mean(axis=(1, 3)).ravel(),
    )


def _size(rotation: Rotary | None) -> int | None:
    return None if rotation is None else rotation.dim


def channels_of(rotation: Rotary) -> tuple[Int[Array, " pairs"], Int[Array, " pairs"]]:
    pairs = np.arange(rotation.dim // 2)
    return (2 * pairs, 2 * pairs + 1) if rotation.adjacent else (pairs, pairs + rotation.dim // 2)


def _are_the_models(
    found: tuple[Float[Array, "heads n c"], Float[Array, "heads n c"]],
    inputs: Inputs,
    layer: int,
    looks: Float[Array, "heads n n"],
) -> bool:
    """Return whether queries and keys give the attention that the model shows; not if it changes them once more."""
    queries, keys = found
    scored = scoring(inputs.weights, inputs.architecture, layer, queries.shape[1])
    made = np.stack(
        [
            np.concatenate([weights for _, weights in attention(queries[head], keys[head], scored, head)])
            for head in range(len(queries))
        ]
    )
    return bool(np.abs(made - looks).sum(axis=-1).mean() < CLOSE)


def _score_shares(
    queries: Float[Array, "heads n c"], keys: Float[Array, "heads n c"], rotation: Rotary
) -> Float[Array, "heads pairs"]:
    """Return by how much each pair covaries with the score, over the variance of scores; all channels add up to 1.

    Scores of a query are centred over the last 64 tokens.
    """
    n = queries.shape[1]
    reach = min(REACH, n // 2)
    at = np.arange(reach, n)
    behind = at[:, None] - np.arange(reach)
    first, second = channels_of(rotation)
    found = np.empty((len(queries), len(first)))
    for head, (query, key) in enumerate(zip(queries, keys, strict=True)):
        near = key[behind]  # (queries, offsets, channels)
        near = near - near.mean(axis=1, keepdims=True)
        scores = np.einsum("qc,qoc->qo", query[at], near)
        each = query[at] * np.einsum("qo,qoc->qc", scores, near)  # covariance of each channel's part with the score
        each = each.sum(axis=0, dtype=np.float64)
        total = float(np.sum(scores.astype(np.float64) ** 2))
        found[head] = (each[first] + each[second]) / total if total > 0 else 0.0
    return found


def _lengths(rows: Float[Array, "heads n c"], rotation: Rotary) -> Float[Array, "heads pairs"]:
    """Return the mean length of rows in the plane of every pair."""
    first, second = channels_of(rotation)
    return np.hypot(rows[..., first], rows[..., second]).mean(axis=1)


def speeds(architecture: Architecture) -> list[int]:
    """Return the pairs of channels from the fastest to the slowest, by the first layer that rotates."""
    rotation = next(rotation for rotation in architecture.rotary if rotation is not None)
    return [int(pair) for pair in np.argsort(rotation.periods, kind="stable")]
