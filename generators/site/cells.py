"""The rows of a table on a page as HTML: a site has a quarter of a million cells, too many for a template.

A cell holds the raw value behind a rounded one that is not the only one of its column, to sort by; token strings are
fenced off so that they can't reorder their row.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from markupsafe import Markup, escape

from generators.base.text import number
from generators.site.addresses import linked, linked_items
from generators.site.columns import ShownColumn, ties

TOKENS = ("readable", "contained_in")  # columns of token strings; so are those that end in "_readable"


def is_number(value: object) -> bool:
    """Return whether a cell is a number; yes and no are words."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def header(columns: Sequence[ShownColumn], rows: Sequence[Sequence[Any]]) -> Markup:
    """Return the cells of a table's head; columns with numbers stand to the right."""
    return Markup("").join(
        Markup('<th scope="col"{}>{}</th>').format(
            Markup(' class="n"') if any(is_number(row[column.index]) for row in rows) else "", column.words
        )
        for column in columns
    )


def body(
    names: Sequence[str], columns: Sequence[ShownColumn], rows: Sequence[Sequence[Any]], *, with_links: bool
) -> Iterator[Markup]:
    """Yield the cells of every row that is shown.

    Args:
        names: of all columns as they are stored.
        columns: as the page shows them.
        rows: with a value for each name.
        with_links: whether channels, heads and tokens lead to their panels.
    """
    tied = {column.index: ties(rows, column.index) for column in columns}
    for row in rows:
        cells = []
        for column in columns:
            value = row[column.index]
            href = linked(names, row, column.index) if with_links else None
            items = linked_items(column.name, value) if with_links and href is None else None
            if href is not None or items is not None:
                cells.append(_leading(value, href, items))
            else:
                cells.append(_cell(column.name, value, tied[column.index]))
        yield Markup("".join(cells))


def _leading(value: Any, href: str | None, items: Sequence[tuple[Any, str]] | None) -> str:
    """Return a cell that names an entity, or lists entities."""
    if href is not None:
        return f'<td class="n">{_link(value, href)}</td>'
    return f"<td>{' '.join(_link(item, address) for item, address in items or ())}</td>"


def _link(words: Any, href: str) -> str:
    return f'<a href="{escape(href)}">{escape(words)}</a>'


def _cell(column: str, value: Any, tied: Collection[str]) -> str:
    if value is None:
        return f'<td data-value="">{number(value)}</td>'
    if is_number(value):
        said = number(value)
        behind = f' data-value="{value}"' if isinstance(value, float) and said in tied else ""
        return f'<td class="n"{behind}>{said}</td>'
    items = [value] if isinstance(value, str | bool) else value
    words = (escape(number(item)) for item in items)
    if column in TOKENS or column.endswith("_readable"):
        words = (Markup(f"<bdi><code>{word}</code></bdi>") for word in words)
    return f"<td>{' '.join(words)}</td>"
