from itertools import pairwise

import numpy as np
import pytest
from scipy.special import j0

from generators.findings.helix import curves
from tests import synthetic

NOBODY = np.array([], int)


def circle(n, turns, phase=0.0):
    """Return n points that turn `turns` times (against the clock where positive) in n steps."""
    angle = 2 * np.pi * turns * np.arange(n) / n + phase
    return np.column_stack([np.cos(angle), np.sin(angle)])


def wobbling(points, spread, seed=0):
    """Return points with their radii changed smoothly, by about `spread`."""
    n = len(points)
    wave = np.sin(2 * np.pi * 3.3 * np.arange(n) / n + seed)
    return points * (1 + np.sqrt(2) * spread * wave)[:, None]


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
    scores = np.cumsum(rng.standard_normal((n, 4)), axis=0) + rng.standard_normal((n, 4))
    for score, wave in zip(scores.T, curves.waves(scores), strict=True):
        cycles, share = plain_wave(score)
        assert wave["cycles"] == cycles
        assert wave["period_tokens"] == n / cycles
        assert wave["share"] == pytest.approx(share)


@pytest.mark.parametrize("cycles", [1, 2, 7, 50, 100])
def test_a_pure_wave_is_found_whole(cycles):
    n = 201
    wave = np.cos(2 * np.pi * cycles * np.arange(n) / n + 0.4)
    (found,) = curves.waves(wave[:, None])
    assert found["cycles"] == cycles
    assert found["period_tokens"] == pytest.approx(n / cycles)
    assert found["share"] == pytest.approx(1, abs=1e-3)


def test_a_constant_offset_is_no_wave():
    n = 200
    (found,) = curves.waves(10 + np.cos(2 * np.pi * 20 * np.arange(n) / n)[:, None])
    assert found["cycles"] != 0


def test_a_wave_in_noise_holds_its_part_of_the_power():
    n = 2000
    rng = np.random.default_rng(0)
    mixed = np.cos(2 * np.pi * 30 * np.arange(n) / n) + rng.standard_normal(n) * np.sqrt(0.5)
    (found,) = curves.waves(mixed[:, None])
    assert found["cycles"] == 30
    assert found["share"] == pytest.approx(0.5, abs=0.05)


def test_white_noise_has_no_wave():
    for wave in curves.waves(np.random.default_rng(0).standard_normal((1000, 8))):
        assert wave["share"] < 0.05


def test_a_score_of_zeros_has_share_0():
    (wave,) = curves.waves(np.zeros((50, 1)))
    assert wave["share"] == 0


# Circles


def plain_circle(points, cycles):
    """Return radius_cv, circularity and turns by complex numbers, without unwrapping any angle."""
    z = points[:, 0] / np.std(points[:, 0]) + 1j * points[:, 1] / np.std(points[:, 1])
    n = len(z)
    steps = [np.angle(z[t + 1] / z[t]) for t in range(n - 1)]
    turns = sum(steps) / (2 * np.pi)
    quarter = round(n / cycles / 4)
    expected_gain = np.sign(turns) * 2 * np.pi * quarter * cycles / n
    gained = [np.angle(z[t + quarter] / z[t]) for t in range(n - quarter)]
    circularity = np.mean([np.cos(g - expected_gain) for g in gained])
    return np.std(abs(z)) / np.mean(abs(z)), circularity, turns


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize(("n", "turns"), [(400, 2), (400, 5), (511, 3), (511, 87), (130, 8)])
def test_a_circle_is_measured_as_complex_numbers_measure_it(n, turns, direction):
    points = wobbling(circle(n, direction * turns, phase=1.0), 0.15)
    points += 0.05 * np.random.default_rng(0).standard_normal(points.shape)
    radius_cv, circularity, signed_turns = plain_circle(points, turns)

    found = curves.find_circle(points, points.var(axis=0), NOBODY)

    assert found["pcs"] == [1, 2]
    assert found["cycles"] == turns
    assert found["period_tokens"] == pytest.approx(n / turns)
    assert found["radius_cv"] == pytest.approx(radius_cv)
    assert found["circularity"] == pytest.approx(circularity)
    assert found["turns"] == pytest.approx(signed_turns)
    assert found["turns"] == pytest.approx(direction * turns, abs=0.1 + turns / n)
    assert found["tokens_per_turn"] == pytest.approx(n / turns, rel=0.05)


def test_an_ellipse_is_scaled_to_a_circle():
    points = circle(400, 4) * [1, 0.9]
    found = curves.find_circle(points, points.var(axis=0), NOBODY)
    assert found["radius_cv"] == pytest.approx(0, abs=1e-6)
    assert found["circularity"] == pytest.approx(1)


@pytest.mark.parametrize(("ratio", "there"), [(1.0, True), (0.75, True), (0.74, False), (0.0, False)])
def test_the_smaller_variance_is_three_quarters_of_the_larger(ratio, there):
    found = curves.find_circle(circle(400, 4), np.array([1, ratio]), NOBODY)
    assert (found is not None) is there


@pytest.mark.parametrize(("spread", "there"), [(0.30, True), (0.40, False)])
def test_the_radius_may_vary_by_035(spread, there):
    points = wobbling(circle(1000, 20), spread)
    assert bool(plain_circle(points, 20)[0] <= 0.35) is there
    assert (curves.find_circle(points, np.ones(2), NOBODY) is not None) is there


@pytest.mark.parametrize(("swing", "there"), [(0.6, True), (0.7, False)])
def test_the_angle_must_grow_evenly(swing, there):
    """An angle that hurries and lags three times a turn has the circularity J0(sqrt(2) swing), and radius 1."""
    n, turns = 1000, 10
    even = 2 * np.pi * turns * np.arange(n) / n
    angle = even + swing * np.sin(3 * even)
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    assert plain_circle(points, turns)[1] == pytest.approx(j0(np.sqrt(2) * swing), abs=0.01)
    assert (curves.find_circle(points, np.ones(2), NOBODY) is not None) is there


def no_circles():
    n = 400
    t = np.arange(n) / n
    wave = np.cos(2 * np.pi * 5 * t)
    return {
        "two frequencies": np.column_stack([wave, np.sin(2 * np.pi * 7 * t)]),
        "to and fro on a line": np.column_stack([wave, wave + 1e-3 * np.sin(2 * np.pi * 40 * t)]),
        "noise": np.random.default_rng(0).standard_normal((n, 2)),
        "half way, then back": np.vstack([circle(n, 6)[: n // 2], circle(n, 6)[n // 2 :: -1]]),
        "one component": wave[:, None],
        "nothing": np.zeros((n, 2)),
    }


@pytest.mark.parametrize("name", no_circles())
def test_no_circle_where_none_is(name):
    scores = no_circles()[name]
    assert curves.find_circle(scores, scores.var(axis=0), NOBODY) is None


@pytest.mark.parametrize(("turns", "there"), [(2.0, True), (2.5, False), (3.0, True)])
def test_both_components_must_have_the_same_cycles(turns, there):
    """Half a turn lies between two bins of the spectrum: one component peaks at 2, the other at 3."""
    points = circle(400, turns)
    assert {wave["cycles"] for wave in curves.waves(points)} == ({int(turns)} if there else {2, 3})
    assert (curves.find_circle(points, np.ones(2), NOBODY) is not None) is there


def test_the_first_pair_that_turns_is_the_circle():
    n = 400
    decoy = np.column_stack([np.sqrt(12) * np.linspace(-0.5, 0.5, n), circle(n, 9)[:, 0]])
    scores = np.hstack([decoy, circle(n, 6), circle(n, 3)])
    found = curves.find_circle(scores, np.ones(6), NOBODY)
    assert (found["pcs"], found["cycles"]) == ([3, 4], 6)


def test_circles_need_not_be_neighbours():
    n = 400
    scores = np.column_stack([circle(n, 6)[:, 0], np.linspace(-1, 1, n), circle(n, 6)[:, 1]])
    assert curves.find_circle(scores, np.ones(3), NOBODY)["pcs"] == [1, 3]


@pytest.mark.parametrize(("first", "second", "drift"), [(1, 2, 1.0), (2, 3, 1.5), (1, 3, 1.5), (4, 8, 4.0)])
def test_drift_makes_half_as_many_turns_as_the_rank_of_the_later_component(first, second, drift):
    assert curves.drift_turns([first, second]) == drift


def test_outliers_are_left_out_of_the_turns_alone():
    """Three rows in a row go once about the centre, between two positions that are near each other."""
    n = 400
    points = circle(n, 4)
    around = np.pi * np.array([0.5, 1.0, 1.5])
    at = np.array([200, 201, 202])
    points[at] = np.column_stack([np.cos(around), np.sin(around)])

    counted = curves.find_circle(points, np.ones(2), NOBODY)
    left_out = curves.find_circle(points, np.ones(2), at)

    assert counted["turns"] == pytest.approx(5, abs=0.05)
    assert left_out["turns"] == pytest.approx(4, abs=0.05)
    assert left_out["tokens_per_turn"] == pytest.approx((n - 3) / left_out["turns"])
    assert (left_out["radius_cv"], left_out["circularity"]) == (counted["radius_cv"], counted["circularity"])


def test_what_gains_no_angle_is_no_circle():
    """Only one row doesn't stand apart."""
    points = circle(8, 2)[[0, 1, 2, 3, 4]]
    assert curves.find_circle(points, np.ones(2), NOBODY) is not None
    assert curves.find_circle(points, np.ones(2), np.array([1, 2, 3, 4])) is None


# Outliers


def plain_outliers(rows):
    n = len(rows)
    nearer = [min(np.linalg.norm(rows[i] - rows[j]) for j in (i - 1, i + 1) if 0 <= j < n) for i in range(n)]
    return [i for i in range(n) if nearer[i] > 5 * np.median(nearer)], np.array(nearer) / np.median(nearer)


@pytest.mark.parametrize("at", [[], [0], [50], [99], [0, 7, 99]])
def test_planted_outliers_are_found(at):
    rows = np.random.default_rng(0).standard_normal((100, 16))
    rows[at] += 60 * np.random.default_rng(1).standard_normal((len(at), 16))
    found, relative = curves.outlier_positions(rows)
    expected, expected_relative = plain_outliers(rows)
    assert found.tolist() == expected == at
    np.testing.assert_allclose(relative, expected_relative)


@pytest.mark.parametrize(("distance", "outliers"), [(5.0, []), (5.125, [0])])
def test_an_outlier_exceeds_five_median_distances(distance, outliers):
    rows = np.append(-distance, np.arange(20.0))[:, None]
    found, relative = curves.outlier_positions(rows)
    assert found.tolist() == outliers
    assert relative[0] == distance


def test_two_rows_far_out_together_are_near_to_each_other():
    rows = np.arange(20.0)[:, None]
    rows[[9, 10]] += 1000
    assert curves.outlier_positions(rows)[0].tolist() == []


def test_identical_rows_are_no_outliers():
    found, relative = curves.outlier_positions(np.ones((20, 3)))
    assert found.tolist() == []
    assert not relative.any()


# Roughness


def plain_roughness(curve, block):
    blocks = [np.mean(curve[i : i + block], axis=0) for i in range(0, len(curve) - block + 1, block)]
    first = [sum((b - a) ** 2) for a, b in pairwise(blocks)]
    second = [sum((c - 2 * b + a) ** 2) for a, b, c in zip(blocks, blocks[1:], blocks[2:], strict=False)]
    return np.mean(second) / np.mean(first)


@pytest.mark.parametrize(("period", "block"), [(3.0, 1), (16.0, 1), (32.0, 2), (80.0, 5), (128.0, 8), (1000.0, 8)])
def test_roughness_after_averaging_blocks(period, block):
    curve = np.random.default_rng(0).standard_normal((331, 3)).cumsum(axis=0)
    assert curves.roughness(curve, period) == pytest.approx(plain_roughness(curve, block))


def test_roughness_of_known_curves():
    zigzag = np.tile([[0.0], [1.0]], (10, 1))
    assert curves.roughness(zigzag, 1) == pytest.approx(4)
    assert curves.roughness(synthetic.line(50), 1) == pytest.approx(0, abs=1e-20)
    white = np.random.default_rng(0).standard_normal((20000, 3))
    assert curves.roughness(white, 1) == pytest.approx(3, abs=0.1)
    angle_per_step = 2 * np.pi / 20  # of a chord and its change: |second| / |first| = 2 sin(angle / 2)
    assert curves.roughness(circle(200, 10), 20) == pytest.approx((2 * np.sin(angle_per_step / 2)) ** 2)


@pytest.mark.parametrize("curve", [np.ones((40, 3)), np.zeros((2, 3)), np.arange(6.0).reshape(2, 3)])
def test_roughness_is_none_without_a_curve(curve):
    assert curves.roughness(curve, 1) is None


# Looking back


def plain_r2(predicted, actual):
    mean = sum(actual) / len(actual)
    error = sum(float(sum((p - a) ** 2)) for p, a in zip(predicted, actual, strict=True))
    return 1 - error / sum(float(sum((a - mean) ** 2)) for a in actual)


def plain_look_back(scores, k):
    """Return R^2 of rotation, affine map and standing still; every second pair of rows is for fitting."""
    pairs = [(scores[t], scores[t - k]) for t in range(k, len(scores))]
    x, y = (np.array(side) for side in zip(*pairs[::2], strict=True))
    x_test, y_test = (np.array(side) for side in zip(*pairs[1::2], strict=True))
    u, _, vt = np.linalg.svd((x - x.mean(0)).T @ (y - y.mean(0)))
    rotation = u @ vt  # Schönemann's solution, by hand
    with_one = np.hstack([x, np.ones((len(x), 1))])
    affine = np.linalg.pinv(with_one) @ y
    return (
        plain_r2((x_test - x.mean(0)) @ rotation + y.mean(0), y_test),
        plain_r2(np.hstack([x_test, np.ones((len(x_test), 1))]) @ affine, y_test),
        plain_r2(x_test, y_test),
    )


@pytest.mark.parametrize("k", [1, 5, 10, 50])
@pytest.mark.parametrize("components", [1, 3, 8])
def test_look_back_matches_procrustes_and_least_squares(k, components):
    rng = np.random.default_rng(k)
    scores = np.cumsum(rng.standard_normal((230, components)), axis=0) * np.linspace(3, 1, components)
    rotation, affine, identity = plain_look_back(scores, k)

    found = curves.look_back(scores, k)

    assert found["k"] == k
    assert found["r2_rotation"] == pytest.approx(rotation)
    assert found["r2_affine"] == pytest.approx(affine)
    assert found["r2_identity"] == pytest.approx(identity)
    assert found["gain"] == pytest.approx(1 - (1 - rotation) / (1 - identity))


@pytest.mark.parametrize(("k", "turns"), [(1, 4), (10, 4), (10, 7), (5, -20)])
def test_looking_back_on_a_circle_is_a_rotation(k, turns):
    n = 400
    found = curves.look_back(np.hstack([circle(n, turns), 0.8 * circle(n, 9)]), k)
    assert found["r2_rotation"] == pytest.approx(1)
    assert found["gain"] == pytest.approx(1)
    periods = sorted([n / abs(turns), n / 9])
    np.testing.assert_allclose(found["tokens_per_turn"], periods, rtol=1e-3)


def test_looking_back_on_a_line_is_a_shift():
    """A shift counts as a rotation with means: why the claim asks for a circle, too."""
    found = curves.look_back(synthetic.line(200), 10)
    assert found["r2_rotation"] == pytest.approx(1)
    assert found["gain"] == pytest.approx(1)
    assert found["tokens_per_turn"] == []


def test_looking_back_in_noise_sees_nothing():
    found = curves.look_back(np.random.default_rng(0).standard_normal((2000, 8)), 10)
    assert found["r2_rotation"] < 0.05
    assert found["r2_affine"] < 0.05
    assert found["r2_identity"] < -0.8


def test_a_circle_that_comes_back_after_k_gains_nothing():
    n = 400
    noise = 0.05 * np.random.default_rng(0).standard_normal((n, 2))
    found = curves.look_back(circle(n, n / 10) + noise, 10)
    assert found["r2_identity"] > 0.98
    assert found["gain"] < 0.25


# Cosines


def test_cosine_by_offset_pair_by_pair():
    rows = np.random.default_rng(0).standard_normal((30, 5)) + 0.5
    for k, value in enumerate(curves.cosine_by_offset(rows, 15)):
        cosines = [
            rows[i] @ rows[i + k] / np.sqrt((rows[i] @ rows[i]) * (rows[i + k] @ rows[i + k])) for i in range(30 - k)
        ]
        assert value == pytest.approx(np.mean(cosines))


def test_cosine_by_offset_of_a_circle_is_a_cosine():
    found = curves.cosine_by_offset(3 * circle(120, 4), 60)
    np.testing.assert_allclose(found, np.cos(2 * np.pi * 4 / 120 * np.arange(61)), atol=1e-12)


def test_cosine_matrix_takes_every_step():
    rows = np.random.default_rng(0).standard_normal((10, 4))
    found = curves.cosine_matrix(rows, 3)
    assert found.shape == (4, 4)
    a, b = rows[3], rows[9]
    assert found[1, 3] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    np.testing.assert_allclose(np.diag(found), 1)


def test_a_row_of_zeros_has_cosine_0():
    rows = np.array([[1.0, 0], [0, 0], [1, 0]])
    np.testing.assert_allclose(curves.cosine_by_offset(rows, 2), [2 / 3, 0, 1])
