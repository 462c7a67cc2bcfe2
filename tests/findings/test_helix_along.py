from functools import partial

import numpy as np
import pytest
from scipy.signal import sawtooth, square

from generators.findings import plantings
from generators.findings.helix import along

N, D = 240, 32


def wavy(shape, seed=0, noise=0.02):
    """Return channels of one wave shape at three and four cycles and random phases, each with noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(N) / N
    columns = [rng.uniform(1, 2) * shape(2 * np.pi * (rng.choice([3, 4]) * t + rng.random())) for _ in range(D)]
    return np.column_stack(columns) + noise * rng.standard_normal((N, D))


SHAPES = {"cosine": (np.cos, 0), "triangle": (partial(sawtooth, width=0.5), 1 / 9), "square": (square, -1 / 3)}


@pytest.mark.parametrize("name", SHAPES)
def test_the_third_harmonic_tells_wave_shapes_apart(name):
    shape, expected = SHAPES[name]
    found = along.wave_shape(wavy(shape))
    assert found["third_harmonic"] == pytest.approx(expected, abs=0.015)
    assert found["channels"] == D // 4
    assert found["fit"] > 0.8
    assert found["interval"][0] < found["third_harmonic"] < found["interval"][1]
    assert (found["third_harmonic"] > found["chance"]["limit"]) == (name == "triangle")


def test_noise_is_no_slow_wave_and_constant_channels_have_no_shape():
    assert along.wave_shape(np.random.default_rng(0).standard_normal((N, D)))["fit"] < 0.2
    assert along.wave_shape(np.ones((N, D))) is None


def test_a_curve_that_turns_faster_at_its_start_is_found_out():
    t = np.arange(200)
    angle = np.cumsum(np.where(t < 20, 1.6, 0.2))
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(along.turn_rates(points, 10)[[0, 5]], [1.6 / (2 * np.pi), 0.2 / (2 * np.pi)])
    np.testing.assert_allclose(along.turn_rates(points[:, ::-1], 10), along.turn_rates(points, 10))
    start = along.along(points, slice(0, 200), points)["start"]
    assert start["times_median"] == pytest.approx(8)
    assert start["times_median"] > start["chance"]["limit"]


def test_nearest_rows_are_those_of_all_distances(monkeypatch):
    rows = np.random.default_rng(1).standard_normal((50, 4))
    monkeypatch.setattr(along, "BLOCK", 16)
    distances = np.linalg.norm(rows[:, None] - rows, axis=2) + np.diag([np.inf] * 50)
    for most, expected in ((50, range(50)), (20, range(0, 50, 3))):
        monkeypatch.setattr(along, "MOST_ASKED", most)
        asked, nearest, away = along.nearest_rows(rows)
        assert asked.tolist() == list(expected)
        assert nearest.tolist() == distances.argmin(axis=1)[asked].tolist()
        np.testing.assert_allclose(away, distances.min(axis=1)[asked])


def test_two_equal_rows_are_named():
    P = plantings.embed(plantings.coil(N, 3), D, noise=0.01)
    P[170] = P[12]
    found = along.smallest_distance(P)
    assert (found["distance"], found["positions"]) == (pytest.approx(0, abs=1e-9), [12, 170])


def test_neighbors_are_told_apart_and_cosines_rebuilt_on_a_helix_and_not_in_noise():
    helix = plantings.embed(plantings.coil(N, 3), D, noise=0.001)
    noise = np.random.default_rng(0).standard_normal((N, D))
    assert along.told_apart(helix)["neighbor_share"] == along.told_apart(helix)["median_offset"] == 1
    assert along.told_apart(noise)["neighbor_share"] < 0.1
    assert along.cosine_rebuilt(helix) > 0.99
    assert along.cosine_rebuilt(noise) < 0.1
    assert along.cosine_rebuilt(np.zeros((N, D))) is None
