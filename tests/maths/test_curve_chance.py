import numpy as np
import pytest

from generators.maths import curve
from generators.maths.curve_chance import JUDGES, CurveNulls, reordered_frayings
from tests.maths import shapes

N = 210


def test_every_statistic_has_its_nulls():
    helix = CurveNulls(shapes.embedded(shapes.coil(N, 6), 40, noise=0.03), 99, 0)
    for name, judges in JUDGES.items():
        found = helix.chances(name)
        assert tuple(found) == judges
        assert {(null.draws, null.sense) for null in found.values()} == {(99, "at least")}


def test_short_curves_lack_what_they_are_too_short_for():
    nulls = CurveNulls(shapes.random_walk(40, 8, 0), 99, 0)
    assert nulls.chances("fraying") == {}
    assert set(nulls.chances("winding")) == {"smooth", "own channels"}


def test_the_same_seed_gives_the_same_chances():
    rows = shapes.random_walk(210, 8, 0)
    first, again, other = (CurveNulls(rows, 99, seed).chances("fraying") for seed in (0, 0, 1))
    assert first == again != other


def test_smoothness_is_taken_where_no_outlier_is_between():
    rows = shapes.smoothed_noise(N, 24, 0, 10)
    plain = CurveNulls(rows, 99, 0).lag_one
    rows[[0, 1, N - 1]] += 100 * np.random.default_rng(0).standard_normal((3, 24))
    assert CurveNulls(rows, 99, 0).lag_one == pytest.approx(plain, abs=0.002)
    assert plain > 0.99


def test_reordered_frayings_as_the_rows_themselves_give_them():
    rows = shapes.random_walk(210, 20, 0) * np.geomspace(2, 1, 210)[:, None]
    found = reordered_frayings(rows, 99, np.random.default_rng(5))
    generator = np.random.default_rng(5)
    plain = [curve.fraying(rows[generator.permutation(210)]) for _ in range(99)]
    np.testing.assert_allclose(found, plain, atol=1e-10)
