"""A ratio as a bar inside a page: to the right what is faster, to the left what is slower, on a logarithmic scale."""

import math
from collections.abc import Iterable

from markupsafe import Markup

from generators.drawing.style import COLOURS

WIDTH = 300  # of the picture's own units: it is as wide as its place
THICK, THIN = 10, 4  # CSS pixels
LEAST = 1.0  # unit, so that a ratio of one can be seen
FASTER, SLOWER = COLOURS[0], COLOURS[1]


def span_of(ratios: Iterable[float]) -> tuple[float, float]:
    """Return from where to where bars go that are to be compared; 1 is among them."""
    known = [1.0, *ratios]
    return min(known), max(known)


def ratio_bar(ratio: float, span: tuple[float, float], *, thin: bool = False) -> Markup:
    """Return the bar of a ratio above 0; it stands beside the number, which says the same."""
    low, high = (math.log(end) for end in span)
    scale = WIDTH / ((high - low) or 1.0)
    one, end = -low * scale, (math.log(ratio) - low) * scale
    left, width = min(one, end), max(LEAST, abs(end - one))
    colour, height = FASTER if ratio >= 1 else SLOWER, THIN if thin else THICK
    return Markup(
        f'<svg aria-hidden="true" viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none" width="100%" '
        f'height="{height}"><rect x="{left:.1f}" width="{width:.1f}" height="{height}" fill="{colour}"/>'
        f'<line x1="{one:.1f}" x2="{one:.1f}" y1="0" y2="{height}" stroke="currentColor" '
        f'vector-effect="non-scaling-stroke"/></svg>'
    )
