"""Names of tokens in pictures: short, of characters that the font has, and on top of no other name and no cluster."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

LONGEST = 18  # characters of a label
SIZE = 8.5  # points
HEIGHT = 1.25 * SIZE  # line height
AWAY = 3  # distance from the dot's center, in points
GAP = 3  # points between labels in a line
MOST_COVERED = 1  # dots a label may cover; over more it would hide a cluster and be unreadable


def label(name: str) -> str:
    """Return a token's name (`findings.token_cells.name`) as a picture shows it, cut to a few characters.

    The font of pictures has no sign for a space but ␣; other characters that it lacks are written as escapes.
    """
    shown = "".join(map(_in_font, name))
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def _in_font(character: str) -> str:
    code = ord(character)
    if code in characters():
        return character
    if 0x2400 <= code <= 0x2420:  # control pictures
        return "␣" if code == 0x2420 else f"\\x{code - 0x2400:02X}"
    return f"\\u{{{code:04X}}}"


@dataclass(frozen=True)
class Box:
    """A label's box in points: left and right ends and the height of its middle."""

    left: float
    right: float
    middle: float

    def meets(self, other: "Box") -> bool:
        beside = self.left > other.right + GAP or other.left > self.right + GAP
        return bool(not beside and abs(self.middle - other.middle) < HEIGHT)

    def covered(self, dots: Float[Array, "n 2"]) -> int:
        across, up = dots[:, 0], dots[:, 1]
        within = (across > self.left) & (across < self.right) & (np.abs(up - self.middle) < HEIGHT / 2)
        return int(within.sum())

    def inside(self, low: Float[Array, " 2"], high: Float[Array, " 2"]) -> bool:
        across = low[0] <= self.left and self.right <= high[0]
        return bool(across and low[1] <= self.middle - HEIGHT / 2 and self.middle + HEIGHT / 2 <= high[1])


def annotate(ax: Any, points: Float[Array, "n 2"], labels: Sequence[str], dots: Float[Array, "m 2"]) -> None:
    """Write labels beside points, to the right, the left, above or below; where there is no room, none.

    There is room where a label stays in the axes, whose limits are set, clear of labels before it, and lies on none
    of the points and on `MOST_COVERED` of all `dots` at most. No character is markup.
    """
    ax.figure.draw_without_rendering()  # the layout determines the size of the axes
    scale = 72 / ax.figure.dpi
    drawn, marked = (ax.transData.transform(those) * scale for those in (dots, points))
    low, high = ax.bbox.get_points() * scale
    taken: list[Box] = []
    for point, (x, y), text in zip(points, marked, labels, strict=True):
        free = [
            (box, place)
            for box, place in _places(x, y, _width(text))
            if box.inside(low, high) and not any(map(box.meets, taken))
            if not box.covered(marked) and box.covered(drawn) <= MOST_COVERED
        ]
        if free:
            box, (across, up, side) = free[0]
            taken.append(box)
            offset = {"textcoords": "offset points", "ha": side, "va": "center"}
            ax.annotate(text, point, (across, up), fontsize=SIZE, parse_math=False, **offset)


def _places(x: float, y: float, width: float) -> Iterator[tuple[Box, tuple[float, float, str]]]:
    yield Box(x + AWAY, x + AWAY + width, y), (AWAY, 0, "left")
    yield Box(x - AWAY - width, x - AWAY, y), (-AWAY, 0, "right")
    for up in (SIZE, -SIZE):
        yield Box(x - width / 2, x + width / 2, y + up), (0, up, "center")


def _width(text: str) -> float:
    font = _font()
    font.set_size(SIZE, 72)
    font.set_text(text)
    return float(font.get_width_height()[0]) / 64


@cache
def _font() -> Any:
    from matplotlib.font_manager import findfont, get_font

    return get_font(findfont("DejaVu Sans"))


@cache
def characters() -> frozenset[int]:
    return frozenset(_font().get_charmap())
