"""Kernels of attention: planted offsets, the softmax and the averages by offset computed the plain way."""

import numpy as np
import pytest

from generators.maths.kernels import (
    Scoring,
    attention,
    by_head,
    kernel_of,
    layer_norm,
    uniform_kernel,
)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("n", "first"), [(5, 1), (230, 100)])
def test_attention_is_averaged_by_offset_over_the_queries_that_count(n, first, causal):
    weights = np.random.default_rng(1).random((n, n)).astype(np.float32)
    if causal:
        weights = np.tril(weights)
    kernel = kernel_of(iter([(np.arange(2), weights[:2]), (np.arange(2, n), weights[2:])]), n, causal)
    offsets = range(0 if causal else first - (n - 1), n)
    assert kernel.offsets.tolist() == list(offsets)
    for offset in offsets:
        values = [weights[query, query - offset] for query in range(first, n) if 0 <= query - offset < n]
        assert kernel.at(offset) == pytest.approx(np.mean(values, dtype=float), rel=1e-6)
    assert kernel.peak == offsets[int(np.argmax(kernel.mean))]


@pytest.mark.parametrize("causal", [True, False])
def test_scores_are_capped_then_biased_by_offset_and_only_of_keys_that_are_seen(causal):
    n, window, cap = 9, 4, 1.5
    rng = np.random.default_rng(3)
    queries, keys = 2 * rng.standard_normal((2, n, 5))
    bias = rng.standard_normal((3, 2 * n - 1))
    ((_, found),) = attention(queries, keys, Scoring(causal, window, cap, bias), head=2)
    for query in range(n):
        weights = np.zeros(n)
        for key in range(n):
            offset = query - key
            if abs(offset) < window and (offset >= 0 or not causal):
                score = cap * np.tanh(queries[query] @ keys[key] / cap)
                weights[key] = np.exp(score + bias[2, n - 1 - offset])
        np.testing.assert_allclose(found[query], weights / weights.sum(), rtol=1e-6)


def test_a_head_that_sees_a_window_attends_to_nothing_beyond_it():
    kernel = uniform_kernel(300, True, window=8)
    assert kernel.at(7) == pytest.approx(1 / 8)
    assert not kernel.mean[8:].any()


def test_heads_are_consecutive_columns():
    rng = np.random.default_rng(2)
    read, weight, bias = rng.standard_normal((7, 6)), rng.standard_normal((6, 8)), rng.standard_normal(8)
    heads = by_head(read, weight, bias, 4)
    assert (heads.shape, heads.dtype) == ((4, 7, 2), np.float32)
    np.testing.assert_allclose(heads[2], read @ weight[:, 4:6] + bias[4:6], rtol=1e-5)
    np.testing.assert_allclose(by_head(read, weight, None, 4)[3], read @ weight[:, 6:], rtol=1e-5)


def test_a_layer_norm_centres_scales_and_shifts():
    rng = np.random.default_rng(3)
    x, gain, bias = 5 + rng.standard_normal((4, 9)), rng.standard_normal(9), rng.standard_normal(9)
    for row, found in zip(x, layer_norm(x, gain, bias, 0.1), strict=True):
        np.testing.assert_allclose(found, (row - row.mean()) / np.sqrt(row.var() + 0.1) * gain + bias)
    np.testing.assert_allclose(layer_norm(x, gain, None, 0.1) + bias, layer_norm(x, gain, bias, 0.1))
