"""Numbers, formulas and untrusted strings as pages show them."""

import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from markupsafe import Markup

SIGNIFICANT_DIGITS = 4
TINY = 1e-5  # smaller numbers are written as a power of ten
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
NEAR = 0.05  # distance from 1 below which a share gets as many digits as its complement
MOST_DIGITS = 6  # digits of a number in prose that has to differ from another one
NO_BREAK = "\u00a0"
PERCENT = re.compile(r"(?<=\d) ?%(?![0-9A-Fa-f]{2})")  # but no URL escape
MINUS = re.compile(r"(?<![\w.)\]/=-])-(?=\d)")
PARTS = re.compile(r"(?:share )?of |share$")  # units of shares
QUANTITIES = {
    "rank correlation",
    "correlation",
    "cosine",
    "AUC",
    "winding score",
    "attention weight",
    "relative change",
}
QUANTITIES |= {"std/mean", "rank of the channel", "factor of length"}  # units that are written before the number
ABSENT = "–"
AS_ENTITIES = str.maketrans({c: f"&#{ord(c)};" for c in "&<>\"'\\`*_{}[]()#+-.!|~^$:"})


def number(value: Any) -> str:
    """Return a value with four significant digits, or a dash if it is absent."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        text = f"{value:.{SIGNIFICANT_DIGITS}g}"
        return text.replace("e-0", "e-").replace("e+0", "e+").replace("-", "−", 1 if text.startswith("-") else 0)
    if isinstance(value, list | tuple):
        return ", ".join(number(item) for item in value)
    return str(value)


def two(value: float, *beside: float) -> str:
    """Return a number for prose: two significant digits, and more where it would look like one of those `beside` it.

    >>> two(0.02894), two(1234.5), two(0.4996, 0.5)
    ('0.029', '1,200', '0.4996')
    """
    return _told_apart(_plain, value, beside)


def share(value: float, *beside: float) -> str:
    """Return a share in percent for prose: two significant digits, and more where it is close to 0 or 1, or `beside`.

    >>> share(0.6323), share(0.9991), share(0.0286), share(0.8996, 0.9)
    ('63\xa0%', '99.9\xa0%', '2.9\xa0%', '89.96\xa0%')
    """
    return _told_apart(_percent, value, beside)


def share_within(value: float, low: float, high: float) -> str:
    """Return a share with the ends of its interval.

    >>> share_within(0.2191, 0.217, 0.25)
    '21.9\xa0% (21.7\xa0% to 25\xa0%)'
    """
    return f"{share(value, low, high)} ({share(low, value)} to {share(high, value)})"


def _told_apart(write: Callable[[float, int], str], value: float, beside: Sequence[float]) -> str:
    for digits in range(2, MOST_DIGITS):
        text = write(value, digits)
        if all(other == value or write(other, digits) != text for other in beside):
            return text
    return write(value, MOST_DIGITS)


def in_units(unit: str) -> str:
    """Return a unit of costs as it follows a number."""
    return "in cosine with the unchanged states" if unit == "1 - cosine" else unit


def in_unit(value: float, unit: str, *beside: float) -> str:
    """Return an effect for prose without its unit: shares of something in percent.

    >>> in_unit(0.93, "of variance"), in_unit(0.93, "cosine")
    ('93\xa0%', '0.93')
    """
    if PARTS.match(unit):
        return share(value, *beside)
    near_one = 1 - NEAR <= abs(value) < (1 if unit.startswith("times") else 0.995)
    return two(round(value, 2) if near_one and unit != "cosine" and not beside else value, *beside)


def with_unit(value: float, unit: str, *beside: float) -> str:
    """Return an effect for prose with its unit.

    >>> with_unit(0.93, "share of variance"), with_unit(2.1, "times the norm"), with_unit(1, "layers")
    ('93\xa0% of the variance', '2.1 times the norm', '1 layer')
    >>> with_unit(0.6, "rank correlation"), with_unit(8, "rank of the channel")
    ('rank correlation 0.6', 'rank 8')
    """
    if unit in QUANTITIES:
        return f"{unit.partition(' of ')[0]} {in_unit(value, unit)}"
    words = unit
    if PARTS.match(unit):
        what = PARTS.sub("", unit, count=1)
        words = f"of {'the ' if ' ' not in what else ''}{what}" if what else ""
    elif value == 1 and unit.endswith("s") and unit != "times":
        words = unit[:-1]
    return f"{in_unit(value, unit, *beside)} {words}".strip()


def ordinal(place: int) -> str:
    """Return a place in a ranking.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 22, 113, 261)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd', '113th', '261st']
    """
    ending = "th" if place // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def typeset(sentence: str) -> str:
    """Return a sentence with a no-break space before each %, and a minus sign where a number is negative."""
    return MINUS.sub("−", PERCENT.sub(f"{NO_BREAK}%", sentence))


def _percent(value: float, digits: int) -> str:
    """Return a share in percent; close to 1 with as many digits as it takes not to be all."""
    if 0 < 1 - value <= NEAR:
        least = (d for d in range(MOST_DIGITS) if round(100 * value, d) < 100)
        decimals = next(least, MOST_DIGITS) + digits - 2
    else:
        decimals = max(0, digits - 3 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{_fixed(100 * value, min(decimals, MOST_DIGITS))}{NO_BREAK}%"


def _plain(value: float, digits: int) -> str:
    """Return a number with `digits` significant digits and no exponent; whole numbers, which may be counts, stay."""
    if not math.isfinite(value) or not value:
        return f"{value:g}"
    if abs(value) < TINY:
        mantissa, exponent = f"{value:.{digits - 1}e}".replace("-", "−", value < 0).split("e")
        return f"{mantissa} × 10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    rest = 1 - abs(value)
    if 0 < rest <= NEAR:  # a correlation of 0.997 is not 1
        return _fixed(value, min(digits + 1, digits - 2 - math.floor(math.log10(rest))))
    rounded = value if float(value).is_integer() else float(f"{value:.{digits - 1}e}")
    return _fixed(rounded, max(0, digits - 1 - math.floor(math.log10(abs(rounded)))))


def _fixed(value: float, decimals: int) -> str:
    """Return a number with at most `decimals` decimals, without trailing zeros or a negative zero."""
    text = f"{value:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text.replace("-", "−")


def in_markdown(text: str) -> Markup:
    """Escape data for a Markdown line: HTML and Markdown in it have no effect."""
    return Markup(" ".join(text.split()).translate(AS_ENTITIES))


@cache
def formula(tex: str, display: bool = False) -> Markup:
    """Return a TeX formula as MathML (set large, if asked), made here so that the page needs no script for it."""
    from latex2mathml.converter import convert

    return Markup(convert(tex, display="block" if display else "inline"))
