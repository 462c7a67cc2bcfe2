from itertools import pairwise

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


def test_rows_that_are_all_alike_have_no_components():
    assert curve.principal_scores(np.ones((20, 4)), 8).values.shape == (20, 0)
    assert curve.leading_axes(np.zeros((20, 4)), 3).shape == (4, 0)


def test_explained_variance_against_the_spectrum():
    rows = np.random.default_rng(0).standard_normal((50, 9)) + 5
    s = np.linalg.svd(rows - rows.mean(0), compute_uv=False)
    assert curve.explained_variance(rows) == pytest.approx(np.sum(s[:3] ** 2) / np.sum(s**2))
    s = np.linalg.svd(rows, compute_uv=False)
    assert curve.energy_share(rows, 2) == pytest.approx(np.sum(s[:2] ** 2) / np.sum(s**2))


def test_nothing_has_no_shares():
    assert curve.explained_variance(np.ones((20, 3))) is None
    assert curve.energy_share(np.zeros((20, 3)), 2) is None


def test_fraying_is_what_the_start_costs_beyond_the_end():
    rows = shapes.embedded(shapes.coil(600, 4), 40, noise=0.01)
    assert curve.fraying(rows) == pytest.approx(0, abs=0.01)
    frayed = rows.copy()
    frayed[:100] += np.random.default_rng(1).standard_normal((100, 40))
    s_late = np.linalg.svd(frayed[100:] - frayed[100:].mean(0), compute_uv=False) ** 2
    s_start = np.linalg.svd(frayed[1:501] - frayed[1:501].mean(0), compute_uv=False) ** 2
    expected = s_late[:3].sum() / s_late.sum() - s_start[:3].sum() / s_start.sum()
    assert curve.fraying(frayed) == pytest.approx(expected)
    assert curve.fraying(frayed) > 0.5
    assert curve.fraying(frayed[::-1]) < -0.5


def test_as_many_rows_are_dropped_at_either_end():
    stored = np.arange(321)
    late, without_end = stored[curve.late_rows(321)], stored[curve.rows_without_end(321)]
    assert late.tolist() == list(range(100, 321))
    assert without_end.tolist() == list(range(1, 222))
    assert len(late) == len(without_end)


def test_a_short_curve_has_no_start_to_leave_out():
    assert curve.fraying(np.random.default_rng(0).standard_normal((199, 8))) is None
    assert curve.late_rows(199) == slice(1, 199)
    assert curve.late_rows(200) == slice(100, 200)


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
    assert found.tolist() == outliers
    assert relative[0] == distance


def test_two_rows_far_out_together_are_near_to_each_other():
    rows = np.arange(20.0)[:, None]
    rows[[9, 10]] += 1000
    assert curve.outlier_positions(rows)[0].tolist() == []


def test_identical_rows_are_no_outliers():
    found, relative = curve.outlier_positions(np.ones((20, 3)))
    assert found.tolist() == []
    assert not relative.any()


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


def test_step_lengths():
    np.testing.assert_allclose(curve.step_lengths(np.array([[0.0, 0], [3, 4], [3, 4], [3, 5]])), [5, 0, 1])


def test_norm_cv_is_of_late_rows_that_are_no_outliers():
    rows = np.ones((300, 2)) * np.where(np.arange(300) % 2, 1.0, 3.0)[:, None]
    rows[:100] *= 7
    rows[200] *= 100
    assert curve.norm_cv(rows, np.array([200])) == pytest.approx(0.5, abs=0.01)
    assert curve.norm_cv(np.ones((300, 2)), np.array([], int)) == pytest.approx(0, abs=1e-12)
    assert curve.norm_cv(np.zeros((300, 2)), np.array([], int)) == 0


def test_late_rows_that_are_all_outliers_count_after_all():
    assert curve.late_positions(20, np.arange(1, 20)).tolist() == list(range(1, 20))


# Waves


def plain_wave(score):
    """Return the strongest cycles and their share by an explicit Fourier sum under an explicit Hann window."""
    n = len(score)
    t = np.arange(n)
    windowed = score * (0.5 - 0.5 * np.cos(2 * np.pi * t / (n - 1)))
    power = {
        f: sum(windowed * np.cos(2 * np.pi * f * t / n)) ** 2 + sum(windowed * np.sin(2 * np.pi * f * t / n)) ** 2
        for f in range(1, n // 2 + 1)
    }
    peak = max(power, key=power.__getitem__)
    return peak, sum(v for f, v in power.items() if abs(f - peak) <= 2) / sum(power.values())


@pytest.mark.parametrize("n", [15, 100, 127])
def test_waves_match_an_explicit_fourier_sum(n):
    rng = np.random.default_rng(n)
    scores = 10 + np.cumsum(rng.standard_normal((n, 4)), axis=0) + rng.standard_normal((n, 4))
    for score, wave in zip(scores.T, curve.waves(scores), strict=True):
        cycles, share = plain_wave(score)
        assert wave.cycles == cycles
        assert wave.period_tokens == n / cycles
        assert wave.share == pytest.approx(share)


def test_a_score_of_zeros_has_share_0():
    (wave,) = curve.waves(np.zeros((50, 1)))
    assert wave.share == 0


# Roughness


def plain_roughness(rows, block):
    blocks = [np.mean(rows[i : i + block], axis=0) for i in range(0, len(rows) - block + 1, block)]
    first = [sum((b - a) ** 2) for a, b in pairwise(blocks)]
    second = [sum((c - 2 * b + a) ** 2) for a, b, c in zip(blocks, blocks[1:], blocks[2:], strict=False)]
    return np.mean(second) / np.mean(first)


@pytest.mark.parametrize(("period", "block"), [(3.0, 1), (16.0, 1), (32.0, 2), (80.0, 5), (128.0, 8), (1000.0, 8)])
def test_roughness_after_averaging_blocks(period, block):
    rows = np.random.default_rng(0).standard_normal((331, 3)).cumsum(axis=0)
    assert curve.roughness(rows, period) == pytest.approx(plain_roughness(rows, block))


@pytest.mark.parametrize("rows", [np.ones((40, 3)), np.zeros((2, 3)), np.arange(6.0).reshape(2, 3)])
def test_roughness_is_none_without_a_curve(rows):
    assert curve.roughness(rows, 1) is None
