"""How a table's columns stand on a page: in words, what matters first. CSV files keep names and order as stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from generators.base.text import number

# Told last: long, and for those who look a token up elsewhere.
LAST = ("raw_bytes", "best_raw_bytes")

# What tables of any finding may have; words for a finding's own columns are in its YAML file.
WORDS: Mapping[str, str] = MappingProxyType(
    {"high": "95 % to", "low": "95 % from", "raw_bytes": "bytes (hex)", "readable": "token"}
)


@dataclass(frozen=True)
class ShownColumn:
    """A column on a page: where it stands in the stored table, its name there, and what it is called here."""

    index: int
    name: str
    words: str


def ties(rows: Sequence[Sequence[Any]], column: int) -> frozenset[str]:
    """Return what different numbers of a column are written alike: sorting needs what stands behind these."""
    behind: dict[str, set[float]] = {}
    for row in rows:
        if isinstance(row[column], float):
            behind.setdefault(number(row[column]), set()).add(row[column])
    return frozenset(written for written, values in behind.items() if len(values) > 1)


def shown(names: Sequence[str], of_finding: Mapping[str, str] = MappingProxyType({})) -> list[ShownColumn]:
    """Return the columns of a table as a page shows them; `of_finding` has the words of its finding."""
    words = {**WORDS, **of_finding}
    columns = [ShownColumn(i, name, words.get(name, name.replace("_", " "))) for i, name in enumerate(names)]
    return sorted(columns, key=lambda column: column.name in LAST)
