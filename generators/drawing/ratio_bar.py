"""A ratio as a bar inside a page: to the right what is faster, to the left what is slower, on a logarithmic scale."""

import math
from collections.abc import Iterable

from markupsafe import Markup

from generators.drawing.style import COLOURS

WIDTH, HEIGHT = 150, 16  # CSS pixels
THICK = 10
LEAST = 1.0  # pixel, so that a ratio of one can be seen
FASTER, SLOWER = COLOURS[0], COLOURS[1]


def span_of(ratios: Iterable[float]) -> tuple[float, float]:
    """Return from where to where bars go that are to be compared; 1 is among them."""
    known = [1.0, *ratios]
    return min(known), max(known)


def ratio_bar(ratio: float, span: tuple[float, float]) -> Markup:
    """Return the bar of a ratio above 0; it stands beside the number, which says the same."""
    low, high = (math.log(end) for end in span)
    scale = WIDTH / ((high - low) or 1.0)
    one, end = -low * scale, (math.log(ratio) - low) * scale
    left, width = min(one, end), max(LEAST, abs(end - one))
    colour = FASTER if ratio >= 1 else SLOWER
    top = (HEIGHT - THICK) / 2
    return Markup(
        f'<svg aria-hidden="true" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
        f'<rect x="{left:.1f}" y="{top:g}" width="{width:.1f}" height="{THICK}" fill="{colour}"/>'
        f'<line x1="{one:.1f}" x2="{one:.1f}" y1="0" y2="{HEIGHT}" stroke="currentColor"/></svg>'
    )
