import numpy as np
import pytest

from generators.maths import curve, surrogates, turning
from tests.maths import shapes


def correlation_at(rows, k):
    return np.mean(rows[k:] * rows[:-k])


def seen(rows):
    return surrogates.lag_one(curve.principal_scores(rows, turning.COMPONENTS).values)


# How smooth a curve is


def test_lag_one_is_the_mean_of_pearson_correlations_weighed_by_energy():
    scores = shapes.autoregressive(300, 3, 0, 0.8) * [3, 2, 1]
    each = [np.corrcoef(scores[1:, j], scores[:-1, j])[0, 1] for j in range(3)]
    assert surrogates.lag_one(scores) == pytest.approx(np.average(each, weights=np.sum(scores**2, axis=0)))
    assert surrogates.lag_one(np.zeros((20, 0))) == surrogates.lag_one(np.ones((20, 2))) == 0


@pytest.mark.parametrize(("n", "smoothing"), [(256, 1), (256, 5), (256, 30), (512, 60), (100, 12)])
def test_matched_widths_are_those_that_noise_was_made_with(n, smoothing):
    rng = np.random.default_rng(0)
    rows = [surrogates.smooth_curve(n, smoothing, rng) for _ in range(8)]
    widths = surrogates.matched_widths(float(np.mean([seen(each) for each in rows])), n, 20, rng)
    assert np.median(widths) == pytest.approx(smoothing, rel=0.12)
    assert widths.std() < 0.3 * smoothing


@pytest.mark.parametrize("correlation", [-1.0, 0.0, 1.0])
def test_widths_at_the_ends(correlation):
    widths = surrogates.matched_widths(correlation, 100, 5, np.random.default_rng(0))
    assert np.all((widths >= 0.25) & (widths <= 50))
    assert np.all(widths > 30) if correlation == 1 else np.all(widths < 0.5)


# Curves of a kind


@pytest.mark.parametrize("smoothing", [0, 0.3, 1, 2.5, 20])
def test_smooth_noise_correlates_as_a_gaussian_says_everywhere(smoothing):
    rng = np.random.default_rng(0)
    rows = np.hstack([surrogates.smooth_noise(90, smoothing, rng) for _ in range(60)])
    np.testing.assert_allclose(np.mean(rows**2, axis=1), 1, atol=0.15)  # at the ends as in the middle
    for k in (1, 3, 30):
        expected = np.exp(-(k**2) / (4 * smoothing**2)) if smoothing else 0
        assert correlation_at(rows, k) == pytest.approx(expected, abs=0.05)
    assert np.mean(rows[0] * rows[-1]) == pytest.approx(np.exp(-(89**2) / (4 * max(smoothing, 1) ** 2)), abs=0.05)


def test_a_smooth_curve_has_the_inner_products_of_noise_in_all_its_channels():
    """500 channels in fewer columns: distances of rows are those of 500 channels, to within their own spread."""
    rng = np.random.default_rng(0)
    spreads = np.full(500, 0.1)
    rows = surrogates.smooth_curve(256, 20, rng, spreads)
    assert rows.shape[1] < 64
    squares = np.sum(rows**2, axis=1)
    np.testing.assert_allclose(squares, 5, rtol=0.35)
    assert np.mean(np.sum(rows[20:] * rows[:-20], axis=1)) == pytest.approx(5 * np.exp(-0.25), rel=0.1)


def test_a_rough_curve_is_made_in_at_most_256_channels_of_which_none_holds_more_than_before():
    """As in GPT-1: a few channels are loud, and hundreds of others hold most of the variance."""
    spreads = np.append([6.0, 5, 4], np.ones(700))
    rows = surrogates.smooth_curve(300, 1, np.random.default_rng(0), spreads)
    assert rows.shape == (300, 256)
    variances = np.sort(rows.var(axis=0))[::-1]
    assert variances[:3].sum() / variances.sum() == pytest.approx(77 / 777, rel=0.15)
    whole = np.random.default_rng(1).standard_normal((300, 703)) * spreads
    assert curve.explained_variance(rows) == pytest.approx(curve.explained_variance(whole), rel=0.25)


@pytest.mark.parametrize(("n", "d", "count"), [(40, 12, 3), (12, 40, 3), (20, 20, 5), (16, 5, 30)])
def test_energy_shares_of_gaussian_rows_without_any_rows(n, d, count):
    rng = np.random.default_rng(0)
    found = surrogates.gaussian_energy_shares(n, d, count, 400, rng)
    plain = [curve.energy_share(rng.standard_normal((n, d)), count) for _ in range(400)]
    np.testing.assert_allclose(np.quantile(found, [0.1, 0.5, 0.9]), np.quantile(plain, [0.1, 0.5, 0.9]), rtol=0.04)


# Curves with something of a given one


def test_channels_keep_their_mean_and_spread():
    rng = np.random.default_rng(0)
    rows = 3 + rng.standard_normal((300, 40)) * np.geomspace(10, 0.001, 40)
    (drawn,) = surrogates.with_channels_of(rows, 2, rng, 1)
    loud = drawn.shape[1] - 1
    assert loud < 40
    np.testing.assert_allclose(drawn[:, :loud].mean(axis=0), 3, atol=3)
    np.testing.assert_allclose(drawn[:, :loud].std(axis=0), rows.std(axis=0)[:loud], rtol=0.3)
    assert np.ptp(drawn[:, -1]) == 0
    assert np.mean(np.sum(drawn**2, axis=1)) == pytest.approx(np.mean(np.sum(rows**2, axis=1)), rel=0.15)
    assert surrogates.channel_spreads(rows) == pytest.approx(np.sort(rows.std(axis=0))[::-1][:loud])


def test_as_many_channels_as_hold_nearly_all_the_variance_and_never_fewer_than_64():
    rows = np.random.default_rng(0).standard_normal((300, 200))
    assert 190 < surrogates.channels_used(rows) <= 200
    rows[:, 70:] *= 1e-3
    assert surrogates.channels_used(rows) in (69, 70)
    rows[:, 20:] *= 1e-3
    assert surrogates.channels_used(rows) == 64


def test_fewer_channels_hold_as_much_and_the_loudest_stay():
    assert surrogates.fewer(np.arange(3.0), 5).tolist() == [0, 1, 2]
    found = surrogates.fewer(np.append([9.0, 8, 7], np.ones(60)), 8)
    assert found[:2].tolist() == [9, 8]
    assert np.ptp(found[2:]) == 0
    assert np.sum(found**2) == pytest.approx(81 + 64 + 49 + 60)


def test_waves_at_other_times_keep_their_power():
    rng = np.random.default_rng(0)
    rows = shapes.embedded(shapes.coil(200, 4), 30, noise=0.1)
    first, second = surrogates.at_other_times(rows, rng, 2)
    scores = curve.principal_scores(rows, 64).values
    for drawn in (first, second):
        power = np.abs(np.fft.rfft(drawn, axis=0))
        np.testing.assert_allclose(power[1:-1], np.abs(np.fft.rfft(scores, axis=0))[1:-1], atol=1e-8)
    assert not np.allclose(first, second)
