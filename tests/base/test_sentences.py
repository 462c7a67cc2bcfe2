"""Pieces of sentences."""

import pytest

from generators.base.sentences import listed, many


@pytest.mark.parametrize(
    ("words", "said"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_words_are_listed(words, said):
    assert listed(words) == said


@pytest.mark.parametrize(("count", "said"), [(0, "0 models"), (1, "1 model"), (2, "2 models")])
def test_one_is_no_plural(count, said):
    assert many(count, "model") == said
