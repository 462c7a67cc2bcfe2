"""Rank correlations of many with many: those of SciPy, and the strongest one against chance."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from generators.maths.rank_pairs import rank_correlations, strongest


def noise(rows: int, n: int = 12, seed: int = 0):
    return np.random.default_rng(seed).standard_normal((rows, n))


def test_each_pair_is_correlated_over_the_items_known_of_both_as_scipy_does():
    x, y = noise(3), np.round(noise(4, seed=1))  # with ties
    x[0, :3] = y[2, 2:5] = np.nan
    rho, n = rank_correlations(x, y, fewest=4)
    for i, one in enumerate(x):
        for j, other in enumerate(y):
            both = np.isfinite(one) & np.isfinite(other)
            assert n[i, j] == both.sum()
            assert rho[i, j] == pytest.approx(spearmanr(one[both], other[both]).statistic)


def test_too_few_items_and_constants_have_no_correlation():
    x, y = noise(2), noise(2, seed=1)
    x[0, 7:], y[1] = np.nan, 3.0
    rho, _ = rank_correlations(x, y, fewest=8)
    assert np.isfinite(rho).tolist() == [[False, False], [True, False]]


def test_a_planted_pair_is_found_and_is_beyond_chance():
    x = noise(10, n=20)
    x[7] = -np.exp(x[2])
    found = strongest(x, x, np.triu(np.ones((10, 10), dtype=bool), 1), fewest=8)
    assert (found.row, found.column, found.n, found.pairs) == (2, 7, 20, 45)
    assert found.rho == pytest.approx(-1)
    assert found.chance < found.limit < 1
    assert found.beyond_chance


def test_the_strongest_of_noise_is_as_strong_as_chance_gives():
    beyond = 0
    for seed in range(10):
        x = noise(8, seed=seed)
        beyond += strongest(x, x, np.triu(np.ones((8, 8), dtype=bool), 1), fewest=8).beyond_chance
    assert beyond <= 1


def test_without_an_allowed_pair_there_is_none():
    x = noise(3)
    assert strongest(x, x, np.zeros((3, 3), dtype=bool), fewest=8) is None
    assert strongest(x, x, np.ones((3, 3), dtype=bool), fewest=13) is None
