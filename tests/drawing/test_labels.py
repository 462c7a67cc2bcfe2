"""Names of tokens in pictures."""

import numpy as np
import pytest

from generators.drawing import style
from generators.drawing.labels import LONGEST, annotate, label

SIZE = (6.0, 4.0)


@pytest.mark.parametrize(("name", "shown"), [
    ("word", "word"),
    ("#7", "#7"),
    ("␠the", "␣the"),
    ("␊␀", "\\x0A\\x00"),
    ("漢", "\\u{6F22}"),
    ("é$_{x}$", "é$_{x}$"),
    ("", ""),
])  # fmt: skip
def test_characters_that_the_font_lacks_are_written_as_escapes(name, shown):
    assert label(name) == shown


@pytest.mark.parametrize("length", [LONGEST - 1, LONGEST, LONGEST + 1, 500])
def test_long_names_are_cut(length):
    shown = label("x" * length)
    assert shown == "x" * length if length <= LONGEST else shown == "x" * (LONGEST - 1) + "…"


def annotated(points, texts):
    """Return which labels were written in axes from 0 to 1."""
    ax = style.canvas(*SIZE).add_subplot()
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    annotate(ax, np.array(points, float), texts, SIZE)
    return [text.get_text() for text in ax.texts]


def test_a_label_that_would_cover_an_earlier_one_is_left_out():
    assert annotated([(0.1, 0.5), (0.11, 0.5), (0.1, 0.9)], ["first", "second", "third"]) == ["first", "third"]


def test_a_label_that_would_stick_out_is_left_out():
    assert annotated([(0.99, 0.5), (0.5, 1.5), (0.5, 0.5)], ["right", "above", "inside"]) == ["inside"]


def test_no_character_of_a_label_is_markup():
    figure = style.canvas(*SIZE)
    ax = figure.add_subplot()
    annotate(ax, np.array([[0.5, 0.5]]), ["$x_"], SIZE)
    assert [text.get_parse_math() for text in ax.texts] == [False]
    figure.canvas.draw()
