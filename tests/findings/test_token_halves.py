"""The token halves of `helix` and `channels`: absent without tokens; E is never copied."""

import tracemalloc

import numpy as np
import pytest

from generators.findings import plantings
from generators.findings.channels import FINDING as CHANNELS
from generators.findings.helix import FINDING as HELIX
from generators.maths.blocks import BLOCK_ROWS, blocks, mean_and_std, norms, spread_ids
from tests import synthetic

N, D, V = 240, 96, 3000
STRIPED = tuple(range(70, 76))  # position channels in which tokens are quiet and off zero


def positions() -> np.ndarray:
    """Return a helix that lives in the striped channels, with faint noise in all."""
    return plantings.embed(plantings.coil(N, 5), D, noise=0.005, channels=STRIPED).astype(np.float32)


def tokens() -> np.ndarray:
    """Return Gaussian tokens, narrow and shifted in six channels; those before 300 are very short."""
    E = np.random.default_rng(0).standard_normal((V, D)).astype(np.float32)
    E[:, STRIPED] = 0.2 * E[:, STRIPED] + np.float32(0.7)
    E[:300] *= 0.1
    return E


def computed(finding, E=None):
    weights = {"position_embedding": positions()}
    if E is not None:
        weights["token_embedding"] = E
    return synthetic.measure(finding, weights)


@pytest.mark.parametrize("count", [1, BLOCK_ROWS, 2 * BLOCK_ROWS + 7])
def test_blocks_are_all_the_rows_in_order(count):
    rows = np.random.default_rng(0).standard_normal((count, 3)).astype(np.float32)
    parts = list(blocks(rows))
    assert all(block.dtype == np.float64 and len(block) <= BLOCK_ROWS for _, block in parts)
    np.testing.assert_array_equal(np.vstack([block for _, block in parts]), rows.astype(np.float64))
    np.testing.assert_array_equal(np.concatenate([np.arange(count)[part] for part, _ in parts]), np.arange(count))
    assert not any(np.shares_memory(block, rows) for _, block in blocks(rows.astype(np.float64)))


def test_mean_std_and_norms_are_those_of_numpy():
    rows = (5 + np.random.default_rng(1).standard_normal((1300, 7))).astype(np.float32)
    rows[:, 2] = 0.3
    mean, std = mean_and_std(rows)
    whole = rows.astype(np.float64)
    np.testing.assert_allclose(mean, whole.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.delete(std, 2), np.delete(whole.std(axis=0), 2), rtol=1e-12)
    assert std[2] == 0
    np.testing.assert_allclose(norms(rows), np.linalg.norm(whole, axis=1), rtol=1e-12)


@pytest.mark.parametrize(
    ("count", "most", "ids"), [(5, 10, range(5)), (5, 5, range(5)), (101, 3, (0, 50, 100)), (1, 2000, (0,))]
)
def test_spread_ids_are_apart_and_reach_both_ends(count, most, ids):
    assert spread_ids(count, most).tolist() == [*ids]


def assert_alike_but_for_tokens(without, with_e):
    """Check that numbers about tokens are null without them and all others are the same, at any depth."""
    assert without.keys() == with_e.keys()
    for name, value in without.items():
        if any(word in name for word in ("token", "low_variance")):
            assert value is None, name
        elif isinstance(value, dict):
            assert_alike_but_for_tokens(value, with_e[name])
        else:
            assert with_e[name] == value, name


@pytest.mark.parametrize("finding", [HELIX, CHANNELS], ids=lambda finding: finding.name)
def test_without_tokens_only_their_part_is_absent(finding):
    with_e, without = computed(finding, tokens()), computed(finding)
    for name, values in without.arrays.items():
        np.testing.assert_array_equal(values, with_e.arrays[name])
    assert_alike_but_for_tokens(without.metrics, with_e.metrics)


@pytest.mark.parametrize("finding", [HELIX, CHANNELS], ids=lambda finding: finding.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_e_is_never_copied(finding, dtype):
    E = np.random.default_rng(0).standard_normal((80_000, 128), np.float32).astype(dtype)
    weights = {"position_embedding": synthetic.random_walk(64, 128, 0), "token_embedding": E}
    synthetic.measure(finding, weights)  # imports and caches are not its own
    tracemalloc.start()
    try:
        synthetic.measure(finding, weights)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.3 * E.size * 4
