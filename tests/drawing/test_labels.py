"""Names of tokens in pictures."""

from itertools import combinations

import numpy as np
import pytest

from generators.drawing import style
from generators.drawing.labels import LONGEST, MOST_COVERED, annotate, label

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


def axes(limits=(0, 1)):
    ax = style.canvas(*SIZE).add_subplot()
    ax.set_xlim(*limits)
    ax.set_ylim(*limits)
    return ax


def boxes(ax):
    ax.figure.draw_without_rendering()
    return {text.get_text(): text.get_window_extent() for text in ax.texts}


def annotated(points, texts, dots=()):
    ax = axes()
    annotate(ax, np.array(points, float), texts, np.array([*points, *dots], float))
    return boxes(ax), ax.get_window_extent()


def test_a_label_is_beside_an_earlier_one_or_not_at_all():
    crowd = [(0.5, 0.5 + step) for step in np.linspace(0, 0.01, 9)]
    found, _ = annotated(crowd, [f"label {i}" for i in range(9)])
    assert next(iter(found)) == "label 0"
    assert 1 < len(found) < 9
    assert not any(one.overlaps(other) for one, other in combinations(found.values(), 2))


@pytest.mark.parametrize("covered", [MOST_COVERED, MOST_COVERED + 1])
def test_a_label_lies_on_no_cluster(covered):
    point, text = (0.5, 0.5), "label"
    around = [(0.5 + side * 0.03, 0.5 + up) for side in (-1, 1) for up in np.linspace(-0.005, 0.005, covered)]
    over = [(0.5, 0.5 + side * 0.029 + up) for side in (-1, 1) for up in np.linspace(-0.002, 0.002, covered)]
    found, _ = annotated([point], [text], around + over)
    assert list(found) == ([text] if covered <= MOST_COVERED else [])


def test_a_label_lies_on_no_point_that_is_named():
    ax = axes()
    points = np.array([(0.5, 0.5), (0.52, 0.5), (0.48, 0.5)])
    annotate(ax, points, ["label one", "two", "three"], points)
    assert "label one" in boxes(ax)
    for box in boxes(ax).values():
        assert not any(box.contains(x, y) for x, y in ax.transData.transform(points))


def test_labels_stay_in_the_axes():
    found, ends = annotated([(0.995, 0.5), (0.5, 1.5), (0.5, 0.999), (0.5, 0.5)], ["right", "beyond", "above", "in"])
    assert list(found) == ["right", "in"] or list(found) == ["right", "above", "in"]
    for box in found.values():
        assert ends.x0 <= box.x0
        assert box.x1 <= ends.x1 + 1
        assert box.y1 <= ends.y1 + 1


def test_no_character_of_a_label_is_markup():
    ax = axes()
    figure = ax.figure
    annotate(ax, np.array([[0.5, 0.5]]), ["$x_"], np.empty((0, 2)))
    assert [text.get_parse_math() for text in ax.texts] == [False]
    figure.canvas.draw()
