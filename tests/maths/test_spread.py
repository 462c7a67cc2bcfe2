"""What few draws spread, against known probabilities."""

import numpy as np
import pytest
from scipy import stats

from generators.maths.spread import beyond_spread


def test_of_two_it_is_one_half_by_symmetry_and_of_three_what_integration_gives():
    """Where three spread by r, the first at x, the next is farther with probability F(x - r) + 1 - F(x + r)."""
    grid = np.linspace(-5, 5, 101)
    x, y, z = np.meshgrid(grid, grid, grid, indexing="ij")
    spread = np.maximum(np.maximum(x, y), z) - np.minimum(np.minimum(x, y), z)
    density = stats.norm.pdf(x) * stats.norm.pdf(y) * stats.norm.pdf(z)
    farther = stats.norm.cdf(x - spread) + stats.norm.sf(x + spread)
    exact = float((farther * density).sum() / density.sum())
    assert (beyond_spread(2), beyond_spread(3)) == pytest.approx((0.5, exact), abs=0.006)


def test_one_draw_has_no_spread():
    with pytest.raises(ValueError, match="no spread"):
        beyond_spread(1)
