"""What findings say of single channels, heads, tokens and positions of a model, for the panel that shows one.

A kind of entities has numbers, lines (several numbers for each, to be drawn), notes on single ones, and groups of
which each is a member or not. Everything says which finding it is from, in the order of findings. Pages fetch it when
a reader asks for an entity.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from generators.base.plain import as_compact_json
from generators.drawing.interactive import rounded
from generators.findings.facts import (
    EntityCount,
    EntityGroup,
    EntityKind,
    EntityLines,
    EntityNames,
    EntityNote,
    EntityNumbers,
    Fact,
)
from generators.findings.judging import NotMeasuredError
from generators.site.addresses import Notable, query
from generators.site.staging import Staging
from generators.site.view import ModelPage

LISTED: tuple[EntityKind, ...] = ("channel", "head", "token")  # of which those that results name are listed on pages
LIKE = "data/like.json"
DIGITS = 4  # significant ones, of a number
LINE_DIGITS = 3  # of a point of a line: a model has a hundred thousand gains


@dataclass(frozen=True)
class EntityColumn:
    """Numbers in the words of the finding that shows them; `ids` is None where every entity has one."""

    stated: EntityNumbers
    finding: str
    values: list[Any]
    ids: list[int] | None

    def with_more(self, other: "EntityColumn") -> "EntityColumn":
        """Return these numbers and what another finding adds; the finding that has a figure of them is named."""
        if self.ids is None or other.ids is None:
            return self
        known = dict(zip(other.ids, other.values, strict=True)) | dict(zip(self.ids, self.values, strict=True))
        names = other if self.stated.figure is None and other.stated.figure is not None else self
        ids = sorted(known)
        return EntityColumn(names.stated, names.finding, [known[i] for i in ids], ids)


@dataclass
class Entities:
    """All that is known of one kind of entities; `count` is None where it isn't known how many there are.

    `unknown` are findings that would say more and have nothing on this model, each with the sentence why.
    """

    count: int | None
    columns: dict[str, EntityColumn] = field(default_factory=dict)  # by what they say
    lines: list[tuple[str, EntityLines]] = field(default_factory=list)  # by finding, as the following
    notes: dict[int, list[tuple[str, EntityNote]]] = field(default_factory=dict)
    groups: list[tuple[str, EntityGroup]] = field(default_factory=list)
    unknown: list[tuple[str, str]] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)

    def add(self, fact: Fact, finding: str) -> None:
        match fact:
            case EntityCount():
                self.count = fact.count
            case EntityNames():
                self.names |= fact.names
            case EntityNumbers():
                self._add_numbers(fact, finding)
            case EntityLines():
                self.lines.append((finding, fact))
            case EntityNote():
                self.notes.setdefault(fact.index, []).append((finding, fact))
            case EntityGroup():
                self.groups.append((finding, fact))

    def _add_numbers(self, fact: EntityNumbers, finding: str) -> None:
        if fact.values is None or not len(fact.values):
            return
        by_id = sorted(fact.values.items()) if isinstance(fact.values, Mapping) else None
        values = fact.values if by_id is None else [value for _, value in by_id]
        ids = None if by_id is None else [i for i, _ in by_id]
        column = EntityColumn(fact, finding, [_short(value) for value in values], ids)
        before = self.columns.get(fact.says)
        self.columns[fact.says] = column if before is None else before.with_more(column)

    def as_json(self) -> dict[str, Any]:
        """Return plain data for `entities.js`; what is absent is left out."""
        names = sorted(self.names.items())
        lists: list[list[int]] = []
        return {
            "count": self.count,
            "columns": [_column(column, lists) for column in self.columns.values()],
            "id_lists": lists,
            "lines": [_line(finding, line) for finding, line in self.lines],
            "notes": {
                str(i): [_given({**vars(note), "index": None, "finding": finding}) for finding, note in notes]
                for i, notes in sorted(self.notes.items())
            },
            "groups": [{**vars(group), "finding": finding} for finding, group in self.groups],
            "unknown": [{"says": says, "finding": finding, "named": True} for finding, says in self.unknown],
            **({"ids": [i for i, _ in names], "names": [name for _, name in names]} if names else {}),
        }


def entities(page: ModelPage, kind: EntityKind) -> Entities:
    model = page.findings.model
    n_heads = model.n_layer * model.n_head
    counts = {"channel": model.d_model, "head": n_heads, "position": model.n_ctx, "token": model.vocab_size}
    made = Entities(counts[kind])
    if kind == "head":
        made.names = {i: f"L{i // model.n_head}H{i % model.n_head}" for i in range(n_heads)}
    for section in page.sections:
        says, name = section.finding.facts.entities.get(kind), section.finding.name
        if says is not None and section.measured is None:
            why = f"{section.finding.title}: nothing is known of this model's {kind}s. {section.record.reason or ''}"
            made.unknown.append((name, why.strip()))
        elif says is not None and section.measured is not None:
            with suppress(NotMeasuredError, KeyError):  # what was measured before some number existed says less
                for fact in says(section.measured, made.count):
                    made.add(fact, name)
    if kind == "token":
        made.names |= _named_in_tables(page)
    return made


def entity_files(page: ModelPage) -> tuple[dict[str, str], list[Notable]]:
    """Return what is known of a model's entities, as files for panels to fetch, and those that results name."""
    found = {kind: entities(page, kind) for kind in get_args(EntityKind)}
    plain = {kind: one.as_json() for kind, one in found.items()}
    tokens, model = {"token": plain.pop("token")}, page.findings.model
    findings = {
        section.finding.name: {
            "title": section.finding.title,
            "figures": {picture.name: picture.title for picture in section.pictures},
        }
        for section in page.sections
    }
    about = {"name": page.name, "title": page.title, "n_layer": model.n_layer, "n_head": model.n_head}
    files = {"things": {"model": about, "findings": findings, **plain}, "things-tokens": tokens}
    named = [one for kind in LISTED for one in _notable(kind, found[kind], model.n_head)]
    return {f"data/{page.name}/{file}.json": as_compact_json(content) for file, content in files.items()}, named


def write_like(pages: Sequence[ModelPage], staging: Staging) -> None:
    """Write which entity has a role in each model, by role: panels lead from one model's to the others'."""
    like: dict[str, list[dict[str, Any]]] = {}
    for page in pages:
        for one in page.named:
            for role, claim in one.roles:
                verdict = {"verdict": page.claims[claim].verdict} if claim in page.claims else {}
                there = {"model": page.name, "title": page.title, "index": one.index, **verdict}
                like.setdefault(role, []).append(there)
    staging.write(LIKE, as_compact_json(like))


def _named_in_tables(page: ModelPage) -> Iterator[tuple[int, str]]:
    for section in page.sections:
        for table in section.measured.tables.values() if section.measured is not None else ():
            if {"id", "readable"} <= {*table.columns}:
                named = zip(table.column("id"), table.column("readable"), strict=True)
                yield from ((i, name) for i, name in named if name)


def _notable(kind: EntityKind, found: Entities, n_head: int) -> Iterator[Notable]:
    for index, notes in sorted(found.notes.items()):
        says = [note.says for _, note in notes if note.named]
        if says:
            address = query(kind, "{}.{}".format(*divmod(index, n_head)) if kind == "head" else index)
            roles = tuple((note.role, note.claim) for _, note in notes if note.role)
            yield Notable(kind, index, found.names.get(index), address, " ".join(says), roles)


def _column(column: EntityColumn, lists: list[list[int]]) -> dict[str, Any]:
    """Return a column as plain data; its ids are put among `lists`, once, and it says where."""
    if column.ids is not None and column.ids not in lists:
        lists.append(column.ids)
    ids = None if column.ids is None else lists.index(column.ids)
    return _given({**vars(column.stated), "values": column.values, "ids": ids, "finding": column.finding})


def _line(finding: str, line: EntityLines) -> dict[str, Any]:
    values = [rounded(row, LINE_DIGITS) for row in line.values]
    usual = None if line.usual is None else rounded(line.usual, LINE_DIGITS)
    at = line.at.tolist()
    return _given({**vars(line), "at": at, "values": values, "usual": usual, "finding": finding})


def _short(value: Any) -> Any:
    """Return a number with as many digits as are shown; whole ones, yes and no, and words as they are."""
    if isinstance(value, float | np.floating):
        return rounded([float(value)], DIGITS)[0]
    return value.item() if isinstance(value, np.generic) else value


def _given(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in entries.items()
        if value is not None and not (isinstance(value, str) and not value)
    }
