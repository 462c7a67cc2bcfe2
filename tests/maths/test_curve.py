import numpy as np
import pytest

from generators.maths import curve
from tests.maths import shapes

# Scores and shares


def test_principal_scores_are_those_of_the_singular_value_decomposition():
    for shape in ((40, 12), (12, 40)):
        rows = np.random.default_rng(0).standard_normal(shape) * np.linspace(3, 1, shape[1])
        u, s, vt = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
        found = curve.principal_scores(rows, 8)
        np.testing.assert_allclose(np.abs(found.values), np.abs(u * s)[:, :8], atol=1e-10)
        np.testing.assert_allclose(np.abs(found.axes), np.abs(vt[:8].T), atol=1e-10)
        assert found.energy == pytest.approx(np.sum(s**2))
        assert np.all(found.axes[np.abs(found.axes).argmax(0), np.arange(8)] > 0)


@pytest.mark.parametrize("d", [10, 700])
def test_components_without_variance_are_left_out(d):
    rows = shapes.embedded(shapes.coil(300, 4), d)
    found = curve.principal_scores(rows, 8)
    assert found.values.shape == (300, 3)
    assert found.energy == pytest.approx(np.sum(found.values**2))


@pytest.mark.parametrize(("n", "count"), [(25, 1), (31, 3)])
def test_components_that_hold_equally_much_are_found(n, count):
    assert curve.principal_scores(np.eye(n), count).values.shape == (n, count)


def test_rows_that_are_all_alike_have_no_components_and_no_shares():
    assert curve.principal_scores(np.ones((20, 4)), 8).values.shape == (20, 0)
    assert curve.explained_variance(np.ones((20, 3))) is curve.energy_share(np.zeros((20, 3)), 2) is None


def test_explained_variance_against_the_spectrum():
    rows = np.random.default_rng(0).standard_normal((50, 9)) + 5
    s = np.linalg.svd(rows - rows.mean(0), compute_uv=False)
    assert curve.explained_variance(rows) == pytest.approx(np.sum(s[:3] ** 2) / np.sum(s**2))
    s = np.linalg.svd(rows, compute_uv=False)
    assert curve.energy_share(rows, 2) == pytest.approx(np.sum(s[:2] ** 2) / np.sum(s**2))


def test_fraying_is_what_the_start_costs_beyond_the_end():
    rows = shapes.embedded(shapes.coil(600, 4), 40, noise=0.01)
    assert curve.fraying(rows) == pytest.approx(0, abs=0.01)
    frayed = rows.copy()
    frayed[:100] += np.random.default_rng(1).standard_normal((100, 40))
    expected = curve.explained_variance(frayed[100:]) - curve.explained_variance(frayed[1:501])
    assert curve.fraying(frayed) == pytest.approx(expected)
    assert curve.fraying(frayed) > 0.5
    assert curve.fraying(frayed[::-1]) < -0.5


def test_as_many_rows_are_dropped_at_either_end_of_a_curve_that_is_long_enough():
    assert (curve.late_rows(321), curve.rows_without_end(321)) == (slice(100, 321), slice(1, 222))
    assert (curve.late_rows(199), curve.late_rows(200)) == (slice(1, 199), slice(100, 200))
    assert curve.fraying(np.random.default_rng(0).standard_normal((199, 8))) is None


# Outliers, steps, norms


def plain_outliers(rows):
    n = len(rows)
    nearer = [min(np.linalg.norm(rows[i] - rows[j]) for j in (i - 1, i + 1) if 0 <= j < n) for i in range(n)]
    return [i for i in range(n) if nearer[i] > 5 * np.median(nearer)], np.array(nearer) / np.median(nearer)


@pytest.mark.parametrize("at", [[], [0], [50], [99], [0, 7, 99]])
def test_planted_outliers_are_found(at):
    rows = np.random.default_rng(0).standard_normal((100, 16))
    rows[at] += 60 * np.random.default_rng(1).standard_normal((len(at), 16))
    found, relative = curve.outlier_positions(rows)
    expected, expected_relative = plain_outliers(rows)
    assert found.tolist() == expected == at
    np.testing.assert_allclose(relative, expected_relative)


@pytest.mark.parametrize(("distance", "outliers"), [(5.0, []), (5.125, [0])])
def test_an_outlier_exceeds_five_median_distances(distance, outliers):
    rows = np.append(-distance, np.arange(20.0))[:, None]
    found, relative = curve.outlier_positions(rows)
    assert (found.tolist(), relative[0]) == (outliers, distance)


def test_two_rows_far_out_together_and_identical_rows_are_no_outliers():
    rows = np.arange(20.0)[:, None]
    rows[[9, 10]] += 1000
    assert not len(curve.outlier_positions(rows)[0])
    assert not curve.outlier_positions(np.ones((20, 3)))[1].any()


@pytest.mark.parametrize(
    ("outliers", "run"),
    [
        ([], (0, 10)),
        ([0], (1, 10)),
        ([9], (0, 9)),
        ([0, 1, 9], (2, 9)),
        ([3], (4, 10)),
        ([7, 2], (3, 7)),
        ([4, 5], (0, 4)),  # as long as the other: the first
        (range(10), (0, 0)),
    ],
)
def test_the_longest_run_without_an_outlier(outliers, run):
    assert curve.longest_run(10, np.array(outliers, int)) == slice(*run)


def test_norms_of_late_rows_that_are_all_outliers_or_zeros_have_a_variation():
    assert curve.late_positions(20, np.arange(1, 20)).tolist() == list(range(1, 20))
    assert curve.norm_cv(np.zeros((300, 2)), np.array([], int)) == 0
