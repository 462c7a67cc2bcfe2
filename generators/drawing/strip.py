"""A claim at a glance: value, interval, threshold and what chance gives, on one line, as SVG inside a page.

Colours are the page's (`atlas.css`), so that the strip suits light and dark pages and prints.
"""

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from generators.base.text import number

WIDTH, HEIGHT = 280, 30  # CSS pixels
MARGIN = 10
MIDDLE = 15
LOGARITHMIC_FROM = 30.0  # ratio of the largest to the smallest number, all above 0
LEAST_BAND = 2.0  # pixels, so that a narrow band can be seen


def strip(
    value: float | None,
    interval: Sequence[float] | None,
    threshold: float | None,
    chance: tuple[float, float] | None,
    unit: str = "",
    interval_kind: str | None = None,
) -> Markup:
    """Return the strip of a claim; empty where there is nothing to set the value beside.

    Args:
        value: the effect size.
        interval: its stability range or 95 % interval, as `interval_kind` says.
        threshold: from where the claim holds.
        chance: median and limit of what the null gives.
        unit: of all of them.
    """
    if value is None or (threshold is None and chance is None):
        return Markup("")
    at = _scale([value, *(interval or ()), *(chance or ()), *(() if threshold is None else (threshold,))])
    parts = [f'<line class="strip-axis" x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{MIDDLE}" y2="{MIDDLE}"/>']
    if chance is not None:
        median, limit = map(at, chance)
        left, width = min(median, limit), max(LEAST_BAND, abs(limit - median))
        parts.append(f'<rect class="strip-chance" x="{left:.1f}" y="{MIDDLE - 7}" width="{width:.1f}" height="14"/>')
        parts.append(_tick("strip-median", median, 7))
    if threshold is not None:
        parts.append(_tick("strip-threshold", at(threshold), 11))
    if interval is not None:
        low, high = map(at, interval)
        parts.append(f'<line class="strip-interval" x1="{low:.1f}" x2="{high:.1f}" y1="{MIDDLE}" y2="{MIDDLE}"/>')
    parts.append(f'<circle class="strip-value" cx="{at(value):.1f}" cy="{MIDDLE}" r="4.5"/>')
    says = escape(in_words(value, interval, threshold, chance, unit, interval_kind))
    head = f'<svg class="strip" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return Markup(f'{head} aria-label="{says}">{"".join(parts)}</svg>')


def in_words(
    value: float,
    interval: Sequence[float] | None,
    threshold: float | None,
    chance: tuple[float, float] | None,
    unit: str,
    interval_kind: str | None = None,
) -> str:
    """Return what a strip shows, for those who can't see it."""
    said = [f"value {number(value)} {unit}".strip()]
    if interval is not None:
        said.append(f"{interval_kind or 'interval'} {number(interval[0])} to {number(interval[1])}")
    if threshold is not None:
        said.append(f"threshold {number(threshold)}")
    if chance is not None:
        said.append(f"chance {number(chance[0])}, its limit {number(chance[1])}")
    return ", ".join(said)


def _tick(kind: str, x: float, half: int) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{MIDDLE - half}" y2="{MIDDLE + half}"/>'


def _scale(shown: Sequence[float]) -> Callable[[float], float]:
    """Return how numbers become pixels: linear, or logarithmic where they lie orders of magnitude apart."""
    low, high = min(shown), max(shown)
    logarithmic = low > 0 and high / low > LOGARITHMIC_FROM
    warped: Callable[[float], float] = math.log if logarithmic else float
    begin, end = warped(low), warped(high)
    span = (end - begin) or 1.0
    return lambda number: MARGIN + (WIDTH - 2 * MARGIN) * (warped(number) - begin) / span
