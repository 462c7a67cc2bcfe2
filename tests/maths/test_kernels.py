"""Kernels of attention: averages by offset; their softmax is in `tests/findings/test_positional.py`."""

import numpy as np
import pytest

from generators.maths.kernels import kernel_of, uniform_kernel


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


def test_a_head_that_sees_a_window_attends_to_nothing_beyond_it():
    kernel = uniform_kernel(300, True, window=8)
    assert kernel.at(7) == pytest.approx(1 / 8)
    assert not kernel.mean[8:].any()
