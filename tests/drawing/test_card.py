"""The picture of a link: the page's figure, whole and in the middle."""

import io

import pytest
from PIL import Image, ImageOps

from generators.drawing.card import HEIGHT, MARGIN, WIDTH, png
from generators.drawing.style import canvas


def figure(width: float = 8.0, height: float = 3.0):
    made = canvas(width, height)
    made.add_subplot().plot([0, 1], [0, 1])
    return made


@pytest.mark.parametrize("size", [(8, 3), (4, 4), (3, 9)])
def test_a_figure_of_any_shape_is_whole_in_a_small_picture_of_the_size_that_is_asked_for(size):
    made = png(figure(*size))
    with Image.open(io.BytesIO(made)) as picture:
        assert picture.size == (WIDTH, HEIGHT) == (1200, 630)
        left, top, right, bottom = (
            ImageOps.invert(picture.convert("L")).point(lambda tone: 255 * (tone > 16)).getbbox()
        )
    assert min(left, top, WIDTH - right, HEIGHT - bottom) >= MARGIN - 1
    assert bottom - top > HEIGHT / 2 or right - left > WIDTH / 2
    assert len(made) < 60_000
