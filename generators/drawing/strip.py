"""A claim at a glance: value, interval, threshold and what chance gives, on one line, as SVG inside a page.

Colours are the page's (`atlas.css`), so that the strip suits light and dark pages and prints.
"""

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from generators.base.text import PARTS, in_unit, number

WIDTH, HEIGHT = 280, 48  # CSS pixels
MARGIN = 10
MIDDLE = 22
ABOVE, BELOW = 10, 42  # y of the text lines: the value above, the threshold below
EDGE = 22.0  # pixels from an end within which a number begins or ends at its place
LOGARITHMIC_FROM = 30.0  # ratio of the largest to the smallest number, all above 0
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
    holds_from: float | None = None,
) -> Markup:
    """Return the strip of a claim; empty where there is nothing to set the value beside.

    `interval_kind` says what the interval is; `chance` is the median and the limit of what the null gives; `sense` is
    "at least" or "at most", the side of the threshold on which the claim holds; from `holds_from` on, that side is
    green. `among` are the numbers of all models where their strips stand one below the other, on one scale.
    """
    if value is None or (threshold is None and chance is None):
        return Markup("")
    shown = [value, *(interval or ()), *(chance or ()), *(() if threshold is None else (threshold,))]
    at, logarithmic = _scale([*shown, *among])
    parts = [f'<line class="strip-axis" x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{MIDDLE}" y2="{MIDDLE}"/>']
    if chance is not None:
        median, limit = map(at, chance)
        left, width = min(median, limit), max(LEAST_BAND, abs(limit - median))
        parts.append(f'<rect class="strip-chance" x="{left:.1f}" y="{MIDDLE - 7}" width="{width:.1f}" height="14"/>')
        parts.append(_tick("strip-median", median, 7))
    if holds_from is not None:
        left, right = (at(holds_from), WIDTH) if sense == "at least" else (0, at(holds_from))
        parts.append(
            f'<rect class="strip-holds" x="{left:.1f}" y="{MIDDLE + 8}" width="{right - left:.1f}" height="3"/>'
        )
    if threshold is not None:
        parts.append(_tick("strip-threshold", at(threshold), 11))
    if interval is not None:
        low, high = map(at, interval)
        parts.append(f'<line class="strip-interval" x1="{low:.1f}" x2="{high:.1f}" y1="{MIDDLE}" y2="{MIDDLE}"/>')
    parts.append(f'<circle class="strip-value" cx="{at(value):.1f}" cy="{MIDDLE}" r="4.5"/>')
    short = threshold is not None and sense is not None and (value < threshold) == (sense == "at least")
    beside = (threshold,) if threshold is not None and short else ()
    parts.append(_text("strip-said", _written(value, unit, *beside), at(value), ABOVE))
    if threshold is not None:
        parts.append(_text("strip-needed", _written(threshold, unit), at(threshold), BELOW))
    says = escape(in_words(value, interval, threshold, chance, unit, interval_kind, sense))
    if logarithmic:
        aside = threshold is None or at(threshold) < WIDTH / 2
        parts.append(_text("strip-scale", "log scale", WIDTH if aside else 0, BELOW))
        says += ", logarithmic scale"
    head = f'<svg class="strip" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return Markup(f'{head} aria-label="{says}">{"".join(parts)}</svg>')


def _text(kind: str, text: str, x: float, y: int) -> str:
    side = "start" if x < EDGE else "end" if x > WIDTH - EDGE else "middle"
    return f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{side}">{escape(text)}</text>'


def _written(value: float, unit: str, *beside: float) -> str:
    """Return a number with two significant digits (larger ones in full), more where it would look like another."""
    whole = abs(value) >= 100 and not PARTS.match(unit)
    text = f"{value:,.0f}".replace("-", "−") if whole else in_unit(value, unit, *beside)
    return f"rank {text}" if unit.startswith("rank of") else text


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


def _tick(kind: str, x: float, below: int) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{MIDDLE - 7}" y2="{MIDDLE + below}"/>'


def _scale(shown: Sequence[float]) -> tuple[Callable[[float], float], bool]:
    """Return the map from numbers to pixels, and whether it is logarithmic, as it is over orders of magnitude."""
    low, high = min(shown), max(shown)
    logarithmic = low > 0 and high / low > LOGARITHMIC_FROM
    warped: Callable[[float], float] = math.log if logarithmic else float
    begin, end = warped(low), warped(high)
    span = (end - begin) or 1.0
    return lambda number: MARGIN + (WIDTH - 2 * MARGIN) * (warped(number) - begin) / span, logarithmic
