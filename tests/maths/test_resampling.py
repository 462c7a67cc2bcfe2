from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

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


@pytest.mark.parametrize("draws", [100, 250])
def test_one_more_draw_is_beyond_the_limit_one_time_in_a_hundred(draws):
    rng = np.random.default_rng(draws)
    passed = [
        resampling.beyond(rng.standard_normal(), resampling.chance(rng.standard_normal(draws))) for _ in range(2000)
    ]
    assert np.mean(passed) <= 0.01 + 3 * np.sqrt(0.01 / 2000)


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


@pytest.mark.parametrize("n", [160, 1024, 1000, 17, 5])
def test_blocks_are_runs_of_neighbours_that_fill_the_context(n):
    weights = resampling.block_weights(n, 300, np.random.default_rng(0))
    assert weights.shape == (300, n)
    assert np.all(weights.sum(axis=1) == n)
    assert np.all(weights == weights.round())
    edges = np.sum(weights != np.roll(weights, 1, axis=1), axis=1)
    assert edges.max() <= 2 * -(-n // max(1, n // 16))


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


@pytest.mark.parametrize(
    ("statistic", "plain"),
    [
        (resampling.pearson_of, lambda x, y: stats.pearsonr(x, y).statistic),
        (resampling.spearman_of, lambda x, y: stats.spearmanr(x, y).statistic),
        (lambda x, y: resampling.auc_of(x, y > 5), lambda x, y: roc_auc_score(y > 5, x)),
        (resampling.ratio_of, lambda x, y: x.sum() / y.sum()),
        (lambda x, y: partial(resampling.spreads, np.column_stack([x, y])), lambda x, y: [x.std(), y.std()]),
    ],
    ids=["Pearson", "Spearman", "area under the curve", "ratio", "spreads"],
)
def test_statistics_of_weights_are_those_of_the_items_repeated(statistic, plain):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 12, 60).astype(float)  # with ties
    y = x + 4 * rng.standard_normal(60)
    weights = resampling.item_weights(60, 5, rng)
    expected = [plain(np.repeat(x, w.astype(int)), np.repeat(y, w.astype(int))) for w in weights]
    np.testing.assert_allclose(statistic(x, y)(weights), expected)


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
        first, mean = np.linalg.svd(again)[2][0], again.mean(axis=0)
        assert found == pytest.approx(abs(first @ mean) / np.linalg.norm(mean), abs=0.01)


def test_what_is_constant_correlates_with_nothing():
    weights = resampling.item_weights(20, 3, np.random.default_rng(0))
    for statistic in (resampling.pearson_of, resampling.spearman_of):
        np.testing.assert_array_equal(statistic(np.ones(20), np.arange(20.0))(weights), 0)
    np.testing.assert_array_equal(resampling.auc_of(np.arange(20.0), np.zeros(20, bool))(weights), 0.5)
    np.testing.assert_array_equal(resampling.ratio_of(np.zeros(20), np.zeros(20))(weights), 0)
