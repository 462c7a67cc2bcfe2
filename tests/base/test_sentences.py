"""Pieces of sentences."""

import pytest

from generators.base.sentences import layers, listed, many, ranges


@pytest.mark.parametrize(
    ("words", "said"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_words_are_listed(words, said):
    assert listed(words) == said


@pytest.mark.parametrize(("count", "said"), [(0, "0 models"), (1, "1 model"), (2, "2 models")])
def test_one_is_no_plural(count, said):
    assert many(count, "model") == said


def test_runs_of_numbers_are_ranges():
    assert ranges([0, 1, 3, 6, 7, 8]) == ["0-1", "3", "6-8"]
    assert [layers(each) for each in ([], [3], [0, 1, 3, 6, 7, 8], [7, 8, 9, 10])] == [
        *("no layer", "layer 3", "layers 0, 1, 3 and 6 to 8", "layers 7 to 10"),
    ]
