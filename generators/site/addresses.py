"""Where the panel on an entity opens: a query of its model's page, and which cells of tables name an entity."""

from collections.abc import Sequence
from typing import Any

PLACE = "things"  # the section of a model's page where links lead without the script that opens panels
INDICES = {"channel": "channel", "id": "token", "best_id": "token", "most_yielded": "token"}
LISTS = {"top_channels": "channel"}


def query(kind: str, index: int | str) -> str:
    """Return the link to a thing from its model's page."""
    return f"?{kind}={index}#{PLACE}"


def query_of_head(layer: int, head: int) -> str:
    """Return the link to a head from its model's page."""
    return query("head", f"{layer}.{head}")


def linked(columns: Sequence[str], row: Sequence[Any], at: int) -> str | None:
    """Return the link to the thing that a cell of a table names, None where it names none."""
    name, cell = columns[at], row[at]
    if isinstance(cell, bool) or not isinstance(cell, int):
        return None
    if name in INDICES:
        return query(INDICES[name], cell)
    if name == "head" and "layer" in columns:
        return query_of_head(row[columns.index("layer")], cell)
    return None


def linked_items(column: str, cell: Any) -> list[tuple[Any, str]] | None:
    """Return what a cell lists, each with its link, None where the column doesn't list entities."""
    if column not in LISTS or not isinstance(cell, list | tuple):
        return None
    return [(item, query(LISTS[column], item)) for item in cell]
