"""What notebooks about embeddings share: norms, attention by positions, planes of rows. NumPy and SciPy alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.special

Array = np.ndarray
Weights = Mapping[str, Array]
EPS = 1e-5  # of GPT-2's norms
HEADS_OF = 64  # channels of a head of GPT-2
FIRST_QUERY = 100


def layer_norm(rows: Array, gain: Array, bias: Array) -> Array:
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred / np.sqrt(rows.var(axis=1, keepdims=True) + EPS) * gain + bias


def heads_of(weights: Weights, rows: Array, layer: int, n_head: int) -> tuple[Array, Array]:
    """Return queries and keys (heads, n, d_head) of rows that a layer reads."""
    block = f"blocks.{layer}"
    read = layer_norm(rows, weights[f"{block}.ln1.gain"], weights[f"{block}.ln1.bias"])
    sides = [read @ weights[f"{block}.attn.{side}"] + weights[f"{block}.attn.{side}.bias"] for side in "qk"]
    queries, keys = (side.reshape(len(rows), n_head, -1).transpose(1, 0, 2) for side in sides)
    return queries, keys


def attention(queries: Array, keys: Array) -> Array:
    """Return causal attention (n, n) of one head."""
    scores = queries @ keys.T / np.sqrt(queries.shape[1])
    scores[np.triu_indices(len(scores), 1)] = -np.inf
    return scipy.special.softmax(scores, axis=1)


def by_offset(looks: Array) -> Array:
    """Return mean attention by offset, over queries from position 100 on where there are enough."""
    n = len(looks)
    start = FIRST_QUERY if n >= 2 * FIRST_QUERY else 1
    return np.array([np.diagonal(looks, -offset)[max(0, start - offset) :].mean() for offset in range(n)])


def components_for(variances: Array, share: float) -> int:
    """Return how many of the largest variances hold a share of their sum."""
    upto = np.cumsum(np.sort(variances)[::-1])
    return int(np.searchsorted(upto / upto[-1], share)) + 1


def rotation(d: int, rng: np.random.Generator) -> Array:
    """Return a random rotation."""
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def top(P: Array) -> Array:
    """Return the 30 strongest directions of P, or as many as a tenth of its rows."""
    return np.linalg.svd(P, full_matrices=False)[2][: max(1, min(30, len(P) // 10, P.shape[1]))]


def spearman(a: Array, b: Array) -> float:
    return float(scipy.stats.spearmanr(a, b).statistic)


def close(found: Any, expected: Any, atol: float = 1e-3) -> None:
    """Assert that numbers are the same but for float32."""
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=1e-2, atol=atol)
