"""Many curves at once give what each gives alone."""

import numpy as np
import pytest

from generators.maths import surrogates
from generators.maths.curve_statistics import OF_SHAPE, statistics
from generators.maths.curves import shape_statistics
from tests.maths import shapes

RNG = np.random.default_rng(5)


def interrupted(rows):
    rows = rows.copy()
    rows[len(rows) // 3] += 50 * rows.std()
    return rows


CURVES = {
    "smooth": [surrogates.smooth_curve(300, 3.0, RNG) for _ in range(7)],
    "slow": [surrogates.smooth_curve(300, width, RNG) for width in (20.0, 25.0, 80.0, 80.5)],
    "Gaussian": [RNG.standard_normal((120, 64)) for _ in range(5)],
    "walks": [surrogates.random_walk(200, RNG, 30) for _ in range(5)],
    "a helix": [shapes.embedded(shapes.coil(200, 6), 12, noise=noise) for noise in (0.0, 0.01, 0.3)],
    "outlier positions": [interrupted(RNG.standard_normal((90, 20))), RNG.standard_normal((90, 20))],
    "few rows": [RNG.standard_normal((16, 10)), RNG.standard_normal((5, 10))],
    "few channels": [RNG.standard_normal((100, channels)) for channels in (3, 8, 9)],
    "at rest": [np.ones((50, 12)), np.zeros((50, 12)), np.ones((50, 12)) + shapes.line(50)],
}


@pytest.mark.parametrize("kind", CURVES)
def test_many_curves_give_what_each_gives_alone(kind):
    together = [shape_statistics([rows]) for rows in CURVES[kind]]
    alone = [statistics(rows, OF_SHAPE) for rows in CURVES[kind]]
    for one, other in zip(together, alone, strict=True):
        assert set(one) == set(other)
        for name, values in other.items():
            assert one[name] == pytest.approx(values, rel=1e-8, abs=1e-9), name


@pytest.mark.parametrize("kind", ["smooth", "slow", "Gaussian", "walks"])
def test_a_stack_gives_what_its_curves_give(kind):
    together = shape_statistics(iter(CURVES[kind]))
    for name, values in together.items():
        alone = [statistics(rows, OF_SHAPE)[name][0] for rows in CURVES[kind]]
        assert values == pytest.approx(alone, rel=1e-8, abs=1e-9)
