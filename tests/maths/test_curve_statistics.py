import numpy as np
import pytest

from generators.maths import curve, turning
from generators.maths.curve_statistics import NAMES, statistics
from generators.maths.resampling import block_weights, interval
from tests.maths import shapes

N = 300


def frayed_helix(noise=0.05):
    rows = shapes.embedded(shapes.coil(N, 4), 20, noise=noise)
    rows[:60] += np.random.default_rng(1).standard_normal((60, 20)) * 0.3
    rows[0] += 20
    return rows


def plain(rows):
    """Return the statistics as the functions that measure one curve at a time give them."""
    outliers, relative = curve.outlier_positions(rows)
    scores = curve.principal_scores(rows[curve.longest_run(len(rows), outliers)], turning.COMPONENTS)
    looks = [turning.look_back(scores.values, k) for k in turning.offsets(len(scores.values))]
    return {
        "explained_variance_3d": curve.explained_variance(rows[1:]),
        "explained_variance_3d_kept": curve.explained_variance(np.delete(rows, np.union1d(0, outliers), axis=0)),
        "winding": turning.winding(turning.planes(scores.values, scores.energy)),
        "median_gain": turning.median_gain(looks),
        "fraying": curve.fraying(rows),
        "first_position_distance": relative[0],
        "norm_cv": curve.norm_cv(rows, outliers),
        "energy_top30": curve.energy_share(rows, 30),
    }


@pytest.mark.parametrize(
    "rows",
    [
        frayed_helix(),
        shapes.random_walk(N, 60, 0),
        shapes.random_walk(N + 1, 12, 1),
        np.random.default_rng(0).standard_cauchy((N, 9)),
    ],
)
def test_equal_weights_give_the_statistics_themselves(rows):
    found = statistics(rows)
    assert set(found) == set(NAMES)
    for name, value in plain(rows).items():
        assert found[name] == pytest.approx([value]), name
        assert statistics(rows, (name,), 3 * np.ones((2, len(rows))))[name] == pytest.approx([value, value]), name


def test_a_short_curve_has_no_start_and_a_very_short_one_no_looking_back():
    rng = np.random.default_rng(0)
    assert set(NAMES) - set(statistics(rng.standard_normal((120, 8)))) == {"fraying"}
    assert statistics(rng.standard_normal((4, 8)), ("median_gain",)) == {}


@pytest.mark.parametrize("rows", [np.ones((40, 4)), np.zeros((16, 3)), np.outer(np.arange(40.0) > 20, np.ones(3))])
def test_curves_that_hardly_are_one_have_finite_statistics(rows):
    for values in statistics(rows).values():
        assert np.all(np.isfinite(values))


def test_weights_are_rows_counted_more_than_once_with_all_that_is_fitted_held():
    rows = frayed_helix()
    weights = np.random.default_rng(0).integers(0, 3, (1, N)).astype(float)
    w = weights[0]
    found = statistics(rows, weights=weights)

    run = curve.longest_run(N, curve.outlier_positions(rows)[0])
    scores, wr = curve.principal_scores(rows[run], 8), w[run]
    away = rows[run] - rows[run].mean(0)
    expected = 0.0
    for plane in turning.planes(scores.values, scores.energy):
        steps = np.repeat(turning.angle_steps(scores.values @ plane.axes), wr[:-1].astype(int))
        share = np.sum(wr @ (scores.values @ plane.axes) ** 2) / np.sum(wr @ away**2)
        turns = abs(np.mean(steps)) * (len(wr) - 1) / (2 * np.pi)
        expected = max(expected, share * turns * abs(steps.sum()) / np.abs(steps).sum())
    assert found["winding"] == pytest.approx([expected])

    nearer = curve.neighbour_distances(rows)
    median = np.median(np.repeat(nearer, w.astype(int)))
    assert found["first_position_distance"] == pytest.approx([nearer[0] / median])

    late = np.arange(100, N)
    norms = np.repeat(np.linalg.norm(rows[late], axis=1), w[late].astype(int))
    assert found["norm_cv"] == pytest.approx([norms.std() / norms.mean()])

    centred = rows[1:] - rows[1:].mean(0)
    inside = (centred @ np.linalg.svd(centred)[2][:3].T) ** 2
    assert found["explained_variance_3d"] == pytest.approx([np.sum(w[1:] @ inside) / np.sum(w[1:] @ centred**2)])


def test_equal_norms_do_not_vary_in_any_resampling():
    rows = np.random.default_rng(0).standard_normal((N, 30))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    weights = block_weights(N, 20, np.random.default_rng(1))
    np.testing.assert_allclose(statistics(rows, ("norm_cv",), weights)["norm_cv"], 0, atol=1e-12)


def test_intervals_hold_the_values_and_are_narrow_where_all_stretches_are_alike():
    weights = block_weights(N, 200, np.random.default_rng(0))
    for rows in (shapes.embedded(shapes.coil(N, 12), 20, noise=0.02), frayed_helix()):
        values = statistics(rows)
        for name, drawn in statistics(rows, weights=weights).items():
            low, high = interval(drawn)
            assert low - 1e-9 <= values[name][0] <= high + 1e-9, name
    steady = statistics(shapes.embedded(shapes.circle(N, 12), 20, noise=1e-3), ("winding", "median_gain"), weights)
    assert interval(steady["winding"]) == pytest.approx((12, 12), abs=0.3)
    assert interval(steady["median_gain"]) == pytest.approx((1, 1), abs=0.01)
