"""Numbers, formulas and untrusted strings as they stand on a page."""

from functools import cache
from typing import Any

from markupsafe import Markup

SIGNIFICANT_DIGITS = 4
ABSENT = "–"
SYMBOLS = {"holds": "✓", "partly": "◐", "fails": "✗", "untested": "–"}  # of verdicts
AS_ENTITIES = str.maketrans({c: f"&#{ord(c)};" for c in "&<>\"'\\`*_{}[]()#+-.!|~^$:"})


def number(value: Any) -> str:
    """Return a value as a reader wants it: four significant digits, a dash for what is absent."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = f"{value:.{SIGNIFICANT_DIGITS}g}"
        return text.replace("e-0", "e-").replace("e+0", "e+").replace("-", "−", 1 if text.startswith("-") else 0)
    if isinstance(value, list | tuple):
        return ", ".join(number(item) for item in value)
    return str(value)


def in_markdown(text: str) -> Markup:
    """Return data as text inside a Markdown line: neither HTML nor Markdown in it is read as such."""
    return Markup(" ".join(text.split()).translate(AS_ENTITIES))


@cache
def formula(tex: str, display: bool = False) -> Markup:
    """Return a TeX formula as MathML (set large, if asked), made here so that the page needs no script for it."""
    from latex2mathml.converter import convert

    return Markup(convert(tex, display="block" if display else "inline"))
