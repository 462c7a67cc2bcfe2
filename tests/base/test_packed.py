"""Packed lists of numbers: the same numbers in fewer bytes, and nothing else changed."""

import json

import numpy as np
import pytest

from generators.base.packed import FEWEST, packed, unpacked


def there_and_back(value):
    text = json.dumps(packed(value))
    return unpacked(json.loads(text))


@pytest.mark.parametrize(
    "numbers",
    [
        list(range(20)),
        [-1, 0, 1] * 5,
        [0.5, -0.25, 3.0, None, 0.0001, 1e5, 7, 8, 9],
        [None] * 9,
        [0.1 + 0.2] * 9,  # no end after a few decimals: stays as it is
        [1e300, 1e-300] * 8,
        [2**52, -(2**52)] * 4,
        [0.00000001] * 8,
        [30522, 0, 50256] * 4,
        [],
        [1, 2],
    ],
)
def test_every_number_comes_back(numbers):
    assert there_and_back(numbers) == numbers


def test_rounded_numbers_of_all_sizes_come_back_exactly():
    rng = np.random.default_rng(0)
    for digits in range(1, 7):
        values = [float(f"{v:.{digits}g}") for v in rng.standard_normal(500) * 10.0 ** rng.integers(-4, 6, 500)]
        assert there_and_back(values) == values


def test_what_is_no_long_list_of_numbers_stays_as_it_is():
    value = {"names": ["a b"] * 20, "yes": [True] * 20, "few": [1] * (FEWEST - 1), "mixed": [1, "a"] * 10, "n": None}
    assert packed(value) == value


def test_words_come_back_with_what_is_between_them():
    words = ["", "the", "\u2420the", '"', "\\", "\n", "", *"abc", ""]
    assert packed(words) == {"words": " ".join(words)}
    assert there_and_back(words) == words


def test_lists_are_packed_wherever_they_are_and_are_shorter():
    value = {"groups": [{"ids": list(range(0, 30000, 7)), "x": [0.4543, 0.4532] * 500}]}
    assert len(json.dumps(packed(value))) < len(json.dumps(value, separators=(",", ":"))) / 2
    assert there_and_back(value) == value
