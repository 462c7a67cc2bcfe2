"""What the cards of the atlas's own models share: how their templates are read."""

from pathlib import Path
from typing import Any

import jinja2


def filled(template: Path, record: dict[str, Any]) -> str:
    """Return a card's template, in Markdown, with what a record says.

    Raises:
        jinja2.UndefinedError: the record lacks what the card tells; says what.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["thousands"] = lambda number: f"{number:,}"
    environment.filters["fenced"] = fenced
    return environment.get_template(template.name).render(**record)


def fenced(text: str) -> str:
    """Return text as a block of Python code in Markdown that nothing in the text can end."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}python\n{text.rstrip()}\n{fence}"
