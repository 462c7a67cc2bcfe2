"""The picture by which a page is shown where its link is shared: a title, verdicts counted, a figure; no more.

Cards are for light pages alone, 1200 x 630 pixels, as the places ask where links are shared.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from generators.base.verdicts import LOOKS
from generators.drawing.labels import characters
from generators.drawing.style import INK, PAGE, house_style

WIDTH, HEIGHT = 1200, 630  # pixels
DPI = 100
MARGIN = 64
COLUMN = 520  # pixels: width of the text next to a figure
WIDE = 1.7  # aspect ratio from which a figure goes below the text
BESIDE = (MARGIN + COLUMN + 32, 56, WIDTH - 40, HEIGHT - 56)  # left, top, right, bottom of the figure
BELOW = (40, 272, WIDTH - 40, HEIGHT - 16)
COLOURS = 128  # colors in the picture; more can't be told apart
TITLE_SIZES, TITLE_LINES = (62, 54, 46, 38, 32), 3  # font sizes in pixels, the first that fits is used; maximum lines
TEXT_SIZE, SMALL_SIZE = 27, 23
LEADING = 1.25
FAINT = "#5b6472"
# Of verdicts, as on light pages (`atlas.css`): of the words, and paler, of what is counted.
VERBS = {"holds": "hold", "partly": "partly", "fails": "fail", "untested": "untested"}


@dataclass(frozen=True)
class Card:
    """The words and counts of a card: above the title in small type, title, words below it, what is counted.

    `counts` are drawn as one bar below the words.
    """

    above: str
    title: str
    words: str
    counts: Mapping[str, int]
    counted: str  # what these numbers count: "44 claims"


def png(card: Card, figure: Callable[[], Any] | None = None) -> bytes:
    """Draw a card as a PNG; the same card gives the same bytes."""
    from PIL import Image

    made = None if figure is None else figure()
    below = bool(made is not None and made.get_figwidth() > WIDE * made.get_figheight())
    drawn = _picture(laid_out(card, wide=below or made is None, flat=below))
    if made is not None:
        _paste(drawn, made, BELOW if below else BESIDE)
    buffer = io.BytesIO()
    few = drawn.convert("RGB").quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(buffer, "PNG")
    return buffer.getvalue()


def laid_out(card: Card, *, wide: bool, flat: bool) -> Any:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update(house_style())
    figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor=PAGE)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.set_axis_off()
    width, bottom = (WIDTH - 2 * MARGIN if wide else COLUMN), (BELOW[1] - 8 if flat else HEIGHT - 72)
    y = 56.0 if flat else 92.0
    for line in wrapped(card.above, SMALL_SIZE, width, 1):
        _write(axes, MARGIN, y, line, SMALL_SIZE, FAINT)
    size, lines = _title(card.title, width, 1 if flat else TITLE_LINES)
    y += 4 if flat else 20
    for line in lines:
        y += size * LEADING
        _write(axes, MARGIN, y, line, size, INK, bold=True)
    y += 8 if flat else 18
    most = 1 if flat else max(int((bottom - 118 - y) // (TEXT_SIZE * LEADING)), 0)
    for line in wrapped(card.words, TEXT_SIZE, width, most):
        y += TEXT_SIZE * LEADING
        _write(axes, MARGIN, y, line, TEXT_SIZE, INK)
    _verdicts(axes, card, width, bottom, flat=flat)
    return figure


def _verdicts(axes: Any, card: Card, width: float, bottom: float, *, flat: bool) -> None:
    left: float = MARGIN
    _bar(axes, (MARGIN, bottom - (50 if flat else 64)), (width, 22 if flat else 26), card.counts)
    if flat and card.counted:
        _write(axes, left, bottom, f"{card.counted}:", SMALL_SIZE, FAINT)
        left += _width(f"{card.counted}:", SMALL_SIZE, False) + 20
    elif card.counted:
        _write(axes, left, bottom - 80, card.counted, SMALL_SIZE, FAINT)
    for kind, look in LOOKS.items():
        if card.counts.get(kind):
            said = f"{card.counts[kind]} {VERBS[kind]}"
            _write(axes, left, bottom, said, SMALL_SIZE, look.light, bold=True)
            left += _width(said, SMALL_SIZE, True) + 24


def _title(title: str, width: float, most: int) -> tuple[int, list[str]]:
    for size in TITLE_SIZES:
        lines = wrapped(title, size, width, most, bold=True)
        if " ".join(lines) == " ".join(_in_font(title).split()):
            return size, lines
    return size, lines


def wrapped(text: str, size: float, width: float, most: int, *, bold: bool = False) -> list[str]:
    """Wrap a text to at most `most` lines of `width` pixels; text that is cut ends with …"""
    words = [piece for word in _in_font(text).split() for piece in _pieces(word, size, width, bold)]
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and _width(longer, size, bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    if len(lines) <= most:
        return lines
    lines = lines[:most]
    while lines and lines[-1] and _width(f"{lines[-1]}…", size, bold) > width:
        lines[-1] = lines[-1][:-1]
    return [*lines[:-1], f"{lines[-1].rstrip()}…"] if lines else []


def _pieces(word: str, size: float, width: float, bold: bool) -> list[str]:
    pieces = [word]
    while len(pieces[-1]) > 1 and _width(pieces[-1], size, bold) > width:
        last, at = pieces[-1], len(pieces[-1]) - 1
        while at > 1 and _width(last[:at], size, bold) > width:
            at -= 1
        pieces[-1:] = [last[:at], last[at:]]
    return pieces


def _bar(axes: Any, at: tuple[float, float], size: tuple[float, float], counts: Mapping[str, int]) -> None:
    from matplotlib.patches import Rectangle

    total, left = sum(counts.values()), at[0]
    for kind, look in LOOKS.items():
        part = size[0] * counts.get(kind, 0) / total if total else 0
        if part:
            place = (left, at[1]), part, size[1]
            axes.add_patch(Rectangle(*place, facecolor=look.card, edgecolor=PAGE, linewidth=1.5))
        left += part


def _write(axes: Any, x: float, y: float, text: str, size: float, colour: str, *, bold: bool = False) -> None:
    axes.text(
        x, y, text, color=colour, fontsize=size * 72 / DPI, fontweight="bold" if bold else "normal", parse_math=False
    )


def _paste(page: Any, figure: Any, place: tuple[int, int, int, int]) -> None:
    left, top, right, bottom = place
    width, height = figure.get_size_inches()
    figure.set_dpi(min((right - left) / width, (bottom - top) / height))
    picture = _picture(figure)
    at = (left + (right - left - picture.width) // 2, top + (bottom - top - picture.height) // 2)
    page.paste(picture, at, picture)


def _picture(figure: Any) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.array(canvas.buffer_rgba()))


@cache
def _font(bold: bool) -> Any:
    from matplotlib.font_manager import FontProperties

    return FontProperties(family=house_style()["font.family"], weight="bold" if bold else "normal")


@cache
def _width(text: str, size: float, bold: bool) -> float:
    from matplotlib.textpath import TextToPath

    font = _font(bold)
    return float(TextToPath().get_text_width_height_descent(text, font, False)[0]) * size / font.get_size()


def _in_font(text: str) -> str:
    known = characters()
    return "".join(c if ord(c) in known or c.isspace() else "\N{WHITE SQUARE}" for c in text)
