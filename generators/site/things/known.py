"""What stored results know of the things of one model: its channels, heads, tokens and positions.

A kind of things has columns (a number for each), lines (several numbers for each, to be drawn), notes on single ones,
and groups of which each is a member or not. Everything says which finding it is from. Pages fetch it when a reader
asks for a thing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Int, Real
from numpy import ndarray as Array

from generators.drawing.interactive import rounded
from generators.findings.growing import NotMeasured
from generators.findings.measured import Measurements
from generators.site.view import ModelPage

DIGITS = 4  # significant ones, of a number
LINE_DIGITS = 3  # of a point of a line: a model has a hundred thousand gains
Order = Literal["largest", "strongest"]  # by value, or by size whatever the sign
Found = Measurements[Any] | None


@dataclass(frozen=True)
class Column:
    """A number for each thing, or for those with these `ids`; `order` says how they are ranked, None: not at all.

    `figure` is the name of the figure that shows it; `leads` says of which kind the things are that the values name;
    `name` is what `in-short.js` knows it by.
    """

    says: str
    values: list[Any]
    finding: str
    figure: str | None = None
    order: Order | None = None
    ids: list[int] | None = None
    leads: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Line:
    """Numbers of each thing at the same places; lines of one `drawing` are drawn together.

    `usual` is what is drawn beside them to compare: `usual_says` says what it is.
    """

    drawing: str
    across: str
    says: str
    at: list[int]
    values: list[list[float | None]]
    finding: str
    figure: str | None = None
    usual: list[float | None] | None = None
    usual_says: str = ""
    name: str | None = None


@dataclass(frozen=True)
class Note:
    """A sentence on one thing; `named` says whether a finding names the thing by it."""

    says: str
    finding: str
    named: bool = True


@dataclass(frozen=True)
class Group:
    """A sentence on the things with these `ids`, and one on all others."""

    says: str
    otherwise: str
    ids: list[int]
    finding: str


@dataclass
class Things:
    """All that is known of one kind of things; `count` is None where it isn't known how many there are.

    `unknown` are findings that would say more and have nothing on this model, each with the sentence why.
    """

    count: int | None
    columns: list[Column] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    notes: dict[int, list[Note]] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    unknown: list[Note] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)

    def note(self, index: int, says: str, finding: str, *, named: bool = True) -> None:
        """Add a sentence on one thing."""
        self.notes.setdefault(index, []).append(Note(says, finding, named))

    def add(
        self,
        says: str,
        values: Iterable[Any] | None,
        finding: str,
        figure: str | None = None,
        *,
        order: Order | None = None,
        ids: Int[Array, " n"] | Sequence[int] | None = None,
        leads: str | None = None,
        name: str | None = None,
    ) -> None:
        """Add a number for each thing; nothing where there are no values."""
        if values is None:
            return
        kept = None if ids is None else [int(i) for i in ids]
        self.columns.append(Column(says, _plain(values), finding, figure, order, kept, leads, name))

    def as_json(self) -> dict[str, Any]:
        """Return plain data for `things.js`; what is absent is left out."""
        names = sorted(self.names.items())
        lists: list[list[int]] = []
        return {
            "count": self.count,
            "columns": [_given({**vars(column), "ids": _place(column.ids, lists)}) for column in self.columns],
            "id_lists": lists,
            "lines": [_given(vars(line)) for line in self.lines],
            "notes": {str(i): [_given(vars(note)) for note in notes] for i, notes in sorted(self.notes.items())},
            "groups": [vars(group) for group in self.groups],
            "unknown": [_given(vars(note)) for note in self.unknown],
            **({"ids": [i for i, _ in names], "names": [name for _, name in names]} if names else {}),
        }


def measured(page: ModelPage) -> dict[str, Measurements[Any]]:
    """Return what was measured of a model, with its arrays, by finding."""
    found = {section.finding.name: section.measured for section in page.sections}
    return {name: one for name, one in found.items() if one is not None}


def unknown(page: ModelPage, findings: Sequence[str], what: str) -> list[Note]:
    """Return why each of these findings says nothing of `what`, for those that don't."""
    lacking = [s for s in page.sections if s.finding.name in findings and s.measured is None]
    return [
        Note(f"{section.finding.title}: nothing is known of {what}. {section.record.reason or ''}".strip(), name)
        for section in lacking
        for name in [section.finding.name]
    ]


def points(rows: Real[Array, "things places"]) -> list[list[float | None]]:
    """Return every thing's line."""
    return [rounded(row, LINE_DIGITS) for row in rows]


def medians(rows: Real[Array, "things places"]) -> list[float | None]:
    """Return the median over things at every place."""
    return rounded(np.median(rows, axis=0), LINE_DIGITS)


def array(found: Found, name: str) -> Array | None:
    """Return an array of a finding, None where it has none of that name."""
    return None if found is None else found.arrays.get(name)


def frequency_channel(page: ModelPage) -> str:
    """Return what the channel is called that goes with frequency as no other: more than chance lets one, or not."""
    claim = page.claims.get("frequency-channel")
    tracks = claim is not None and claim.verdict == "holds"
    return "the frequency channel" if tracks else "the channel that goes most with frequency"


def metric(found: Found, *path: str) -> Any:
    """Return a number of a finding by its names, None where one of them is absent."""
    value: Any = None if found is None else found.metrics
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return None if isinstance(value, NotMeasured) else value


def rows(found: Found, table: str) -> list[dict[str, Any]]:
    """Return the rows of a finding's table, none where it has no such table."""
    there = None if found is None else found.tables.get(table)
    return [] if there is None else there.named()


def _plain(values: Iterable[Any]) -> list[Any]:
    kept = np.asarray(list(values), object)
    return [_short(value) for value in kept]


def _short(value: Any) -> Any:
    """Return a number with as many digits as are shown; whole ones, yes and no, and words as they are."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return rounded([float(value)], DIGITS)[0]
    return value.item() if isinstance(value, np.generic) else value


def _place(ids: list[int] | None, lists: list[list[int]]) -> int | None:
    """Return where these ids stand among `lists`, to which they are added once."""
    if ids is None:
        return None
    if ids not in lists:
        lists.append(ids)
    return lists.index(ids)


def _given(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value is not None and value != ""}
