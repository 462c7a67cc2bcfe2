"""The card of a page: all of it inside, nothing over anything else, and the same bytes from the same card."""

import io
from itertools import combinations

import pytest
from PIL import Image

from generators.drawing import card as cards
from generators.drawing.card import Card, laid_out, png, wrapped
from generators.drawing.style import canvas

COUNTS = {"holds": 14, "partly": 4, "fails": 21, "untested": 2}
LONG = "Stanford GPT-2 small, battlestar (seed 49), " * 4
TITLES = ("Helix", "all-MiniLM-L6-v2", LONG[:200].strip(), "W" * 200, "模型 $x_1$")
ABOVE = "Helix Atlas: 12 layers, 12288 channels, a-family-of-long-name, decoder"
QUESTION = "Which tokens stand out by the length of their embedding, and is there a spot where tokens huddle?" * 2


def card(title: str = "Helix", counts: dict[str, int] = COUNTS) -> Card:
    return Card(ABOVE, title, QUESTION, counts, "41 claims")


def figure():
    made = canvas(8, 3)
    made.add_subplot().plot([0, 1], [0, 1])
    return made


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


@pytest.mark.parametrize("title", TITLES, ids=["short", "hyphens", "long", "one word", "not in the font"])
@pytest.mark.parametrize(("wide", "flat"), [(True, True), (False, False), (True, False)])
def test_nothing_lies_over_anything_else_nor_outside(title, wide, flat):
    made = laid_out(card(title), wide=wide, flat=flat)
    texts = [text for text in made.axes[0].texts if text.get_text()]
    assert len(texts) > len(COUNTS)
    boxes = [one.get_window_extent() for one in (*texts, *made.axes[0].patches)]
    for box in boxes:
        assert box.x0 >= 0 and box.x1 <= cards.WIDTH and box.y0 >= 0 and box.y1 <= cards.HEIGHT
        assert not flat or cards.HEIGHT - box.y0 < cards.BELOW[1] + 2, "the figure stands below"
    for one, other in combinations(boxes, 2):
        both = min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(both) < 3, (title, one, other)


def test_a_picture_has_the_size_that_is_asked_for_and_is_small():
    for data in (png(card()), png(card(), figure)):
        assert opened(data).size == (1200, 630)
        assert len(data) < 60_000


def test_the_same_card_is_the_same_bytes_and_another_is_not():
    first = png(card(), figure)
    assert png(card(), figure) == first
    assert png(card(counts={**COUNTS, "holds": 13}), figure) != first
    assert png(card()) != first


def test_a_wide_figure_is_below_the_words_and_another_beside_them():
    def square():
        made = figure()
        made.set_size_inches(4, 4)
        return made

    def inked(data: bytes, box: tuple[int, int, int, int]) -> bool:
        return opened(data).convert("L").crop(box).getextrema()[0] < 200

    low = (40, 300, 600, 420)  # left of the middle, below the words
    assert inked(png(card(), figure), low)
    assert not inked(png(Card("", "Helix", "", {}, ""), square), low)
    assert inked(png(Card("", "Helix", "", {}, ""), square), cards.BESIDE)


def test_words_are_cut_off_where_they_find_no_place():
    assert wrapped("one two three", 20, 1000, 2) == ["one two three"]
    lines = wrapped("one two three four five", 20, 100, 2)
    assert len(lines) == 2 and lines[-1].endswith("…")
    assert wrapped("one two", 20, 1000, 0) == []
    assert "".join(wrapped("w" * 90, 20, 300, 9)) == "w" * 90, "a word wider than a line is broken"
    assert wrapped("模型", 20, 300, 1) == ["□□"], "a character that the font lacks is a mark, not a warning"
