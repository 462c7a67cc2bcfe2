"""A claim at a glance: value, interval, threshold and what chance gives, on one line, as SVG inside a page.

Colours are the page's (`atlas.css`), so that the strip suits light and dark pages and prints.
"""

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from generators.base.text import PARTS, number, share

WIDTH, HEIGHT = 280, 44  # CSS pixels
MARGIN = 10
MIDDLE = 22
ABOVE, BELOW = 10, 42  # y of the text lines: the value above, the threshold below
EDGE = 22.0  # pixels from an end within which a number begins or ends at its place
LOGARITHMIC_FROM = 30.0  # ratio of the largest to the smallest number, all above 0
MOST_PLACES = 5  # decimal places; smaller numbers are written with an exponent
LEAST_BAND = 2.0  # pixels, so that a narrow band can be seen


def strip(
    value: float | None,
    interval: Sequence[float] | None,
    threshold: float | None,
    chance: tuple[float, float] | None,
    unit: str = "",
    interval_kind: str | None = None,
    sense: str | None = None,
    among: Sequence[float] = (),
) -> Markup:
    """Return the strip of a claim; empty where there is nothing to set the value beside.

    `interval_kind` says what the interval is; `chance` is the median and the limit of what the null gives; `sense` is
    "at least" or "at most", the side of the threshold on which the claim holds, which is marked; `among` are the
    numbers of all models where their strips stand one below the other, on one scale.
    """
    if value is None or (threshold is None and chance is None):
        return Markup("")
    shown = [value, *(interval or ()), *(chance or ()), *(() if threshold is None else (threshold,))]
    at = _scale([*shown, *among])
    parts = [f'<line class="strip-axis" x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{MIDDLE}" y2="{MIDDLE}"/>']
    if chance is not None:
        median, limit = map(at, chance)
        left, width = min(median, limit), max(LEAST_BAND, abs(limit - median))
        parts.append(f'<rect class="strip-chance" x="{left:.1f}" y="{MIDDLE - 7}" width="{width:.1f}" height="14"/>')
        parts.append(_tick("strip-median", median, 7))
    if threshold is not None:
        if sense is not None:
            left, right = (at(threshold), WIDTH) if sense == "at least" else (0, at(threshold))
            parts.append(
                f'<rect class="strip-holds" x="{left:.1f}" y="{MIDDLE + 8}" width="{right - left:.1f}" height="3"/>'
            )
        parts.append(_tick("strip-threshold", at(threshold), 11))
    if interval is not None:
        low, high = map(at, interval)
        parts.append(f'<line class="strip-interval" x1="{low:.1f}" x2="{high:.1f}" y1="{MIDDLE}" y2="{MIDDLE}"/>')
    parts.append(f'<circle class="strip-value" cx="{at(value):.1f}" cy="{MIDDLE}" r="4.5"/>')
    parts += [_number("strip-said", value, unit, at(value), ABOVE)]
    parts += [] if threshold is None else [_number("strip-needed", threshold, unit, at(threshold), BELOW)]
    says = escape(in_words(value, interval, threshold, chance, unit, interval_kind, sense))
    head = f'<svg class="strip" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return Markup(f'{head} aria-label="{says}">{"".join(parts)}</svg>')


def _number(kind: str, value: float, unit: str, x: float, y: int) -> str:
    rank = "rank " if unit.startswith("rank of") else ""
    text = share(value) if PARTS.match(unit) else rank + two_digits(value)
    side = "start" if x < EDGE else "end" if x > WIDTH - EDGE else "middle"
    return f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{side}">{escape(text)}</text>'


def two_digits(value: float) -> str:
    """Return a number with two significant digits (larger integers in full), without exponents."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}".replace("-", "−")
    places = max(0, 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}" if places <= MOST_PLACES else f"{value:.0e}"
    return text.replace("-", "−")


def in_words(
    value: float,
    interval: Sequence[float] | None,
    threshold: float | None,
    chance: tuple[float, float] | None,
    unit: str,
    interval_kind: str | None = None,
    sense: str | None = None,
) -> str:
    said = [f"value {number(value)} {unit}".strip()]
    if interval is not None:
        said.append(f"{interval_kind or 'interval'} {number(interval[0])} to {number(interval[1])}")
    if threshold is not None:
        said.append(f"threshold {f'{sense} ' if sense else ''}{number(threshold)}")
    if chance is not None:
        said.append(f"chance {number(chance[0])}, its limit {number(chance[1])}")
    return ", ".join(said)


def _tick(kind: str, x: float, half: int) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{MIDDLE - half}" y2="{MIDDLE + half}"/>'


def _scale(shown: Sequence[float]) -> Callable[[float], float]:
    """Return the map from numbers to pixels: linear, or logarithmic over orders of magnitude."""
    low, high = min(shown), max(shown)
    logarithmic = low > 0 and high / low > LOGARITHMIC_FROM
    warped: Callable[[float], float] = math.log if logarithmic else float
    begin, end = warped(low), warped(high)
    span = (end - begin) or 1.0
    return lambda number: MARGIN + (WIDTH - 2 * MARGIN) * (warped(number) - begin) / span
