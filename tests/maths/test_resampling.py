import numpy as np
import pytest
from scipy import stats

from generators.maths import resampling
from tests.synthetic import autoregressive

# Chance


@pytest.mark.parametrize(("draws", "beyond"), [(99, 0), (100, 0), (198, 0), (199, 1), (200, 1), (400, 3)])
def test_the_limit_leaves_fewer_than_one_in_a_hundred_beyond_it(draws, beyond):
    values = np.random.default_rng(0).permutation(draws).astype(float)
    large, small = resampling.chance(values), resampling.chance(values, "at most")
    assert np.sum(values > large.limit) == np.sum(values < small.limit) == beyond
    assert large.median == small.median == np.median(values)
    assert (large.draws, large.sense, small.sense) == (draws, "at least", "at most")


def test_a_few_draws_have_no_99th_percentile():
    with pytest.raises(ValueError, match="at least 99"):
        resampling.chance(np.arange(98.0))


@pytest.mark.parametrize(
    ("value", "large", "small"),
    [(10, False, True), (11, False, False), (60, False, False), (109, False, False), (110, True, False)],
)
def test_beyond_is_on_the_side_that_is_evidence_and_not_the_limit_itself(value, large, small):
    values = np.arange(11.0, 110.0)
    assert resampling.beyond(value, resampling.chance(values)) is large
    assert resampling.beyond(value, resampling.chance(values, "at most")) is small


def test_the_interval_leaves_a_fortieth_on_either_side():
    assert resampling.interval(np.arange(1001.0)) == pytest.approx((25, 975))


# Resampling


@pytest.mark.parametrize(("n", "block"), [(160, None), (1024, None), (1000, 64), (17, 5), (16, 1), (20, 20)])
def test_blocks_are_runs_of_neighbours_that_fill_the_context(n, block):
    weights = resampling.block_weights(n, 300, np.random.default_rng(0), block)
    assert weights.shape == (300, n)
    assert np.all(weights.sum(axis=1) == n)
    assert np.all(weights == weights.round())
    length = max(1, n // 16) if block is None else block
    edges = np.sum(weights != np.roll(weights, 1, axis=1), axis=1)
    assert edges.max() <= 2 * -(-n // length)


def test_every_position_is_drawn_as_often():
    weights = resampling.block_weights(64, 10_000, np.random.default_rng(0))
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=0.05)


def test_items_are_drawn_one_by_one():
    weights = resampling.item_weights(50, 4000, np.random.default_rng(0))
    assert np.all(weights.sum(axis=1) == 50)
    np.testing.assert_allclose(weights.var(), 49 / 50, rtol=0.02)
    assert abs(np.mean((weights[:, 1:] - 1) * (weights[:, :-1] - 1))) < 0.05


def test_batches_make_no_difference_to_what_is_drawn(monkeypatch):
    values = np.random.default_rng(0).standard_normal(40)
    statistic = resampling.ratio_of(values, np.ones(40))
    whole = resampling.resample_items(statistic, 40, 30, np.random.default_rng(1))
    monkeypatch.setattr(resampling, "BATCH_BYTES", 8 * 40 * 7)
    np.testing.assert_allclose(resampling.resample_items(statistic, 40, 30, np.random.default_rng(1)), whole)


def test_block_intervals_cover_the_mean_of_neighbours_that_go_together_and_item_intervals_do_not():
    rng = np.random.default_rng(0)
    covered = {"blocks": 0, "items": 0}
    for seed in range(80):
        values = autoregressive(512, 1, seed, 0.9)[:, 0]
        for name, weights in (
            ("blocks", resampling.block_weights(512, 200, rng)),
            ("items", resampling.item_weights(512, 200, rng)),
        ):
            low, high = resampling.interval(resampling.ratio_of(values, np.ones(512))(weights))
            covered[name] += low <= 0 <= high
    assert covered["blocks"] / 80 > 0.78  # a few blocks fall a little short of 95 %
    assert covered["items"] / 80 < 0.5


# Statistics of weights


def repeated(values, weights):
    return np.repeat(values, weights.astype(int))


@pytest.fixture
def drawn():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 12, 60).astype(float)  # with ties
    y = x + 4 * rng.standard_normal(60)
    return x, y, resampling.item_weights(60, 5, rng)


def test_correlations_are_those_of_the_items_repeated(drawn):
    x, y, weights = drawn
    pearson, spearman = resampling.pearson_of(x, y)(weights), resampling.spearman_of(x, y)(weights)
    for i, w in enumerate(weights):
        a, b = repeated(x, w), repeated(y, w)
        assert pearson[i] == pytest.approx(stats.pearsonr(a, b).statistic)
        assert spearman[i] == pytest.approx(stats.spearmanr(a, b).statistic)


def test_the_area_under_the_curve_is_that_of_the_items_repeated(drawn):
    x, _, weights = drawn
    positive = np.random.default_rng(1).random(60) < 0.4
    found = resampling.auc_of(x, positive)(weights)
    for i, w in enumerate(weights):
        ours, others = repeated(x[positive], w[positive]), repeated(x[~positive], w[~positive])
        wins = np.mean((ours[:, None] > others) + 0.5 * (ours[:, None] == others))
        assert found[i] == pytest.approx(wins)


def test_shares_and_spreads_are_those_of_the_items_repeated(drawn):
    x, y, weights = drawn
    rows = np.column_stack([x, y, x * y])
    shares, spreads = resampling.ratio_of(x, x + 1)(weights), resampling.spreads(rows, weights)
    for i, w in enumerate(weights):
        assert shares[i] == pytest.approx(repeated(x, w).sum() / repeated(x + 1, w).sum())
        np.testing.assert_allclose(spreads[i], np.repeat(rows, w.astype(int), axis=0).std(axis=0))


def test_the_first_direction_is_that_of_the_items_repeated():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((80, 12)) * np.geomspace(3, 0.1, 12) + 0.8
    _, _, right = np.linalg.svd(rows, full_matrices=False)
    mean = rows.mean(axis=0)
    leading = right[:8].T
    statistic = resampling.first_direction_cosine_of(rows @ leading, mean - leading @ (leading.T @ mean))
    assert statistic(np.ones((1, 80))) == pytest.approx([abs(right[0] @ mean) / np.linalg.norm(mean)])
    weights = resampling.item_weights(80, 4, rng)
    for w, found in zip(weights, statistic(weights), strict=True):
        again = np.repeat(rows, w.astype(int), axis=0)
        first = np.linalg.svd(again)[2][0]
        expected = abs(first @ again.mean(axis=0)) / np.linalg.norm(again.mean(axis=0))
        assert found == pytest.approx(expected, abs=0.01)


def test_what_is_constant_correlates_with_nothing():
    weights = resampling.item_weights(20, 3, np.random.default_rng(0))
    for statistic in (resampling.pearson_of, resampling.spearman_of):
        np.testing.assert_array_equal(statistic(np.ones(20), np.arange(20.0))(weights), 0)
    np.testing.assert_array_equal(resampling.auc_of(np.arange(20.0), np.zeros(20, bool))(weights), 0.5)
    np.testing.assert_array_equal(resampling.ratio_of(np.zeros(20), np.zeros(20))(weights), 0)
