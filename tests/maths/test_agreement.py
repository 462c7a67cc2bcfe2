"""Agreement of items over questions: counted by hand, against all shuffles, planted pairs, and where nothing is."""

from itertools import permutations

import numpy as np
import pytest

from generators.maths.agreement import agreement

UNKNOWN = np.nan


def test_it_is_what_counting_by_hand_gives():
    found = agreement(np.array([[0, 1, 2, UNKNOWN], [0, 1, 1, 2], [UNKNOWN, 0, 2, 2]]), fewest=1)
    assert found.shared[0, 1] == 3
    assert found.same[0, 1] == 2
    assert found.shared[0, 2] == 2
    assert found.same[0, 2] == 1
    assert found.same[1, 2] == 1


def test_what_chance_gives_is_the_mean_over_all_shuffles():
    answers = np.array([[0, 2], [0, UNKNOWN], [1, 2], [0, 1]])
    expected = agreement(answers, fewest=1).expected
    first = np.mean([p[0] == p[1] for p in permutations(answers[:, 0])])
    second = np.mean([p[0] == p[1] for p in permutations(answers[[0, 2, 3], 1])])
    assert expected[0, 1] == pytest.approx(first)
    assert expected[0, 2] == pytest.approx(first + second)


def test_a_planted_pair_is_beyond_chance_and_no_other_is():
    rng = np.random.default_rng(0)
    answers = rng.integers(0, 3, (10, 40)).astype(float)
    answers[7] = answers[2]
    found = agreement(answers, fewest=10)
    beyond = np.triu(found.excess > found.limit, 1)
    assert [tuple(int(i) for i in pair) for pair in np.argwhere(beyond)] == [(2, 7)]


def test_where_nothing_is_planted_one_table_in_a_hundred_is_beyond_chance():
    rng = np.random.default_rng(1)
    beyond = 0
    for _ in range(100):
        found = agreement(rng.choice([0.0, 1.0, 2.0], (6, 30), p=[0.2, 0.1, 0.7]), fewest=10)
        beyond += bool((np.triu(found.excess, 1) > found.limit).any())
    assert beyond <= 4


def test_items_that_share_too_little_are_no_witnesses():
    found = agreement(np.array([[0, UNKNOWN], [UNKNOWN, 0], [0, 0]]), fewest=2)
    assert found.shared[0, 1] == 0
    assert np.isnan(found.excess[0, 1])
    assert found.limit == float("inf")
