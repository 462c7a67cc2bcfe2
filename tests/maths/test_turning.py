from itertools import pairwise

import numpy as np
import pytest

from generators.maths import curve, turning
from tests.maths import shapes

N = 400


def planes_of(rows):
    scores = curve.principal_scores(rows, turning.COMPONENTS)
    return turning.planes(scores.values, scores.energy)


def looks_of(rows):
    scores = curve.principal_scores(rows, turning.COMPONENTS).values
    return [turning.look_back(scores, k) for k in turning.offsets(len(scores))]


# Planes


def plain_planes(scores, energy):
    """Return (share, turns, steadiness, radius_cv) of each plane, from the rotation's complex eigenvectors."""
    u, _, vt = np.linalg.svd(scores[:-1].T @ scores[1:])
    values, vectors = np.linalg.eig(u @ vt)
    found = []
    for value, vector in zip(values, vectors.T, strict=True):
        if value.imag > 1e-9:
            z = scores @ vector.conj() * np.sqrt(2)
            steps = [np.angle(b / a) for a, b in pairwise(z)]
            net = abs(sum(steps))
            radius = np.abs(z)
            steadiness, radius_cv = net / sum(map(abs, steps)), np.std(radius) / np.mean(radius)
            found.append((sum(radius**2) / energy, net / 2 / np.pi, steadiness, radius_cv))
    return sorted(found, key=lambda plane: -plane[0] * plane[1] * plane[2])


@pytest.mark.parametrize("components", [2, 3, 5, 8])
def test_planes_as_the_eigenvectors_of_the_rotation_give_them(components):
    noise = np.random.default_rng(components).standard_normal((N, components))
    scores = noise + np.resize(shapes.circle(N, 5), (N, components))
    scores -= scores.mean(0)
    found = turning.planes(scores, 2 * np.sum(scores**2))
    expected = plain_planes(scores, 2 * np.sum(scores**2))
    assert len(found) == len(expected)
    for plane, (share, turns, steadiness, radius_cv) in zip(found, expected, strict=True):
        assert (plane.share, plane.share_of_scores) == pytest.approx((share, 2 * share))
        assert (plane.turns, plane.tokens_per_turn) == pytest.approx((turns, (N - 1) / turns))
        assert (plane.steadiness, plane.radius_cv) == pytest.approx((steadiness, radius_cv))
        assert plane.winding == pytest.approx(share * turns * steadiness)
        np.testing.assert_allclose(plane.axes.T @ plane.axes, np.eye(2), atol=1e-12)
    assert turning.winding(found) == found[0].winding


def test_two_circles_of_equal_variance_that_components_mix_are_two_planes():
    rows = shapes.embedded(np.hstack([shapes.circle(N, 9), shapes.circle(N, 5)]), 48, noise=0.02)
    found = planes_of(rows)
    components = np.vstack([plane.axes.T for plane in found[:2]])
    assert np.all(np.sum(components[:2] ** 2, axis=0)[:4] < 0.99)  # no component lies in the first plane
    assert [round(plane.turns) for plane in found[:2]] == [9, 5]
    for plane in found[:2]:
        assert plane.share == pytest.approx(0.5, abs=0.03)
        assert plane.steadiness > 0.95


LINE, THERE = shapes.line(N), shapes.circle(N, 6)[: N // 2]


@pytest.mark.parametrize(("rows", "most"), [
    (shapes.embedded(LINE, 48), 0.75),
    (shapes.embedded(np.hstack([LINE, LINE**2]), 48), 0.75),  # a parabola bends
    (shapes.embedded(np.vstack([THERE, THERE[::-1]]), 16, noise=0.01), 0.1),  # half way and back
    (shapes.random_walk(N, 48, 0), 0.9),
])  # fmt: skip
def test_what_does_not_turn_does_not_wind(rows, most):
    assert turning.winding(planes_of(rows)) < most


def test_a_curve_of_one_direction_or_none_has_no_planes_nor_have_half_turns():
    assert turning.planes(shapes.line(30)) == turning.planes(np.zeros((30, 0)), 0.0) == ()
    assert turning.winding(()) == 0
    assert turning.rotation_planes(-np.eye(2)) == []


def test_angle_steps_take_the_short_way():
    angles = np.array([3.0, -3.0, -2.0, 2.5])
    steps = turning.angle_steps(np.column_stack([np.cos(angles), np.sin(angles)]))
    np.testing.assert_allclose(steps, [2 * np.pi - 6, 1, 4.5 - 2 * np.pi])


# Looking back


def plain_look_back(scores, k):
    """Return R^2 of rotation, standing still and translation."""
    half = (len(scores) - k) // 2
    sides = scores[:half], scores[half + k :]
    left, spread = np.zeros(3), 0.0
    for fitted, tested in (sides, sides[::-1]):
        (x, y), (now, target) = ((side[k:], side[:-k]) for side in (fitted, tested))
        u, _, vt = np.linalg.svd(x.T @ y)
        guesses = (now @ u @ vt, now, now + (y - x).mean(0))
        left += [np.sum((target - guess) ** 2) for guess in guesses]
        spread += np.sum((target - target.mean(0)) ** 2)
    return 1 - left / spread


@pytest.mark.parametrize("k", [1, 5, 10, 50])
@pytest.mark.parametrize("components", [1, 3, 8])
def test_look_back_matches_procrustes_across_halves(k, components):
    rng = np.random.default_rng(k)
    scores = np.cumsum(rng.standard_normal((231, components)), axis=0) * np.linspace(3, 1, components)
    scores -= scores.mean(0)
    rotation, identity, translation = plain_look_back(scores, k)
    found = turning.look_back(scores, k)
    assert (found.r2_rotation, found.r2_identity) == pytest.approx((rotation, identity))
    assert found.r2_translation == pytest.approx(translation)
    assert found.gain == pytest.approx(1 - (1 - rotation) / (1 - identity))


@pytest.mark.parametrize(("k", "turns"), [(1, 4), (10, 4), (10, 7), (5, -20)])
def test_looking_back_on_circles_is_a_rotation_that_carries_over(k, turns):
    found = turning.look_back(np.hstack([shapes.circle(N, turns), 0.8 * shapes.circle(N, 9)]), k)
    assert found.r2_rotation == pytest.approx(1)
    assert found.gain == pytest.approx(1)


def test_the_median_gain_of_known_curves():
    def gain(rows):
        return turning.median_gain(looks_of(rows))

    assert gain(shapes.embedded(np.hstack([shapes.circle(N, 5), shapes.circle(N, 9)]), 40, noise=0.01)) > 0.9
    assert gain(shapes.embedded(shapes.line(N), 40)) < 0.1
    assert abs(gain(np.random.default_rng(0).standard_normal((2000, 40)))) < 0.05
    assert gain(shapes.random_walk(N, 40, 0)) < 0.1
    assert gain(shapes.smoothed_noise(N, 40, 0, 5)) < 0.1


def test_a_curve_that_does_not_move_gains_nothing():
    found = turning.look_back(np.zeros((40, 0)), 1)
    assert (found.gain, found.r2_rotation) == (0, 0)


@pytest.mark.parametrize(
    ("n", "ks"), [(1020, (1, 5, 10, 50)), (200, (1, 5, 10)), (41, (1, 5, 10)), (40, (1, 5)), (4, ())]
)
def test_one_looks_back_less_than_a_quarter(n, ks):
    assert turning.offsets(n) == ks


def test_the_median_gain_is_over_1_5_and_10():
    rows = shapes.embedded(shapes.coil(N, 4), 20, noise=0.05)
    looks = looks_of(rows)
    assert [look.k for look in looks] == [1, 5, 10, 50]
    assert turning.median_gain(looks) == sorted(look.gain for look in looks[:3])[1]
    assert turning.median_gain([]) is None
