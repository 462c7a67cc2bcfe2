from itertools import count

import numpy as np
import pytest
from scipy.stats import binomtest

from generators.maths.resampling import beyond
from generators.maths.sequential import ENOUGH, MOST, chance_until_known, draws_until_known

NULLS = 1000


@pytest.mark.parametrize("sense", ["at least", "at most"])
def test_values_of_the_null_pass_as_often_as_they_may(sense):
    rng = np.random.default_rng(0)
    passed = drawn = 0
    for _ in range(NULLS):
        value, *others = rng.standard_normal(MOST + 1)
        draws = draws_until_known(iter(others), value, sense)
        passed += beyond(value, chance_until_known(draws, sense))
        drawn += len(draws)
    assert binomtest(passed, NULLS, 0.01).pvalue > 0.05
    assert drawn < NULLS * MOST / 4


def test_draws_end_with_the_tenth_that_reaches_the_value():
    draws = (float(number % 2) for number in count())
    np.testing.assert_array_equal(draws_until_known(draws, 1.0), [0.0, 1.0] * 10)
    assert next(draws) == 0.0  # the 21st: none was made and left unused


def test_a_value_that_none_reaches_gets_all_draws():
    draws = np.linspace(0, 1, MOST)
    found = draws_until_known(draws, -1.0, "at most")
    np.testing.assert_array_equal(found, draws)
    null = chance_until_known(found, "at most")
    assert (null.draws, null.limit) == (MOST, draws[1])


@pytest.mark.parametrize("sense", ["at least", "at most"])
@pytest.mark.parametrize("rest", [0, 5, 88, 89, 180])
def test_a_value_that_ended_the_draws_does_not_pass(sense, rest):
    sign = 1 if sense == "at least" else -1
    draws = np.r_[np.full(rest, -1.0), np.linspace(0.0, 1.0, ENOUGH)] * sign
    assert len(draws_until_known(draws, 0.0, sense)) == len(draws)
    assert not beyond(0.0, chance_until_known(draws, sense))
