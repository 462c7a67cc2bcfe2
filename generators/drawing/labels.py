"""Names of tokens in pictures: short, of characters that the font has, and not on top of one another."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from jaxtyping import Float
from numpy import ndarray as Array

LONGEST = 18  # characters of a label
SIZE = 7.5  # points


def label(name: str) -> str:
    """Return a token's name (`findings.token_cells.name`) as a picture shows it, cut to a few characters.

    The font of pictures has no sign for a space but ␣; other characters that it lacks are written as escapes.
    """
    shown = "".join(map(_in_font, name))
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def _in_font(character: str) -> str:
    code = ord(character)
    if code in _characters():
        return character
    if 0x2400 <= code <= 0x2420:  # the picture of a control character
        return "␣" if code == 0x2420 else f"\\x{code - 0x2400:02X}"
    return f"\\u{{{code:04X}}}"


def annotate(ax: Any, points: Float[Array, "n 2"], labels: Sequence[str], size: tuple[float, float]) -> None:
    """Write labels beside points, leaving out those that would cover an earlier one.

    Args:
        ax: axes whose limits are set.
        points: where.
        labels: what, literally: no character is markup.
        size: of the axes in inches.
    """
    to_inches = _scale(ax, size)
    taken: list[tuple[float, float, float]] = []
    for (x, y), text in zip(points, labels, strict=True):
        left, middle = to_inches(x, y)
        right = left + (0.62 * len(text) + 1) * SIZE / 72
        fits = right < size[0] and 0 < middle < size[1]
        if not fits or any(_overlap((left, right, middle), other) for other in taken):
            continue
        taken.append((left, right, middle))
        ax.annotate(text, (x, y), (3, 0), textcoords="offset points", va="center", fontsize=SIZE, parse_math=False)


def _overlap(a: tuple[float, float, float], b: tuple[float, float, float]) -> bool:
    """Return whether two labels (left, right, middle) cover one another."""
    return bool(a[0] < b[1] and a[1] > b[0] and abs(a[2] - b[2]) < 1.15 * SIZE / 72)


def _scale(ax: Any, size: tuple[float, float]) -> Callable[[float, float], tuple[float, float]]:
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    return lambda x, y: (size[0] * (x - left) / (right - left), size[1] * (y - bottom) / (top - bottom))


@cache
def _characters() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())
