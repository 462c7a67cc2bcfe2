"""What the sources say about models, and what in the atlas answers each statement: `templates/statements.yml`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import yaml

from generators.base.errors import InputError
from generators.findings import FINDINGS
from generators.site.learned import Lesson
from generators.site.locations import packaged

FILE = "statements.yml"
Status = Literal["answered", "in part", "absent"]
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True)
class AnsweredBy:
    """A claim, a finding or a series that answers a statement: where it is, and in how many models a claim holds."""

    title: str
    address: str
    lesson: Lesson | None = None


@dataclass(frozen=True)
class Statement:
    """What a source says, whether it is answered, by what, and why not wholly."""

    says: str
    status: Status
    answers: tuple[AnsweredBy, ...]
    why: str | None


@dataclass(frozen=True)
class Source:
    """A text and its statements."""

    title: str
    statements: tuple[Statement, ...]

    @property
    def counts(self) -> dict[Status, int]:
        """Return how many statements have each status."""
        return counts([self])


def counts(sources: Sequence[Source]) -> dict[Status, int]:
    """Return how many statements of some sources have each status."""
    found = Counter(one.status for source in sources for one in source.statements)
    return {status: found[status] for status in STATUSES}


def statements(lessons: Sequence[Lesson] = (), series: Mapping[str, str] | None = None) -> tuple[Source, ...]:
    """Return all sources with their statements; `series` has the titles of the series that have a page.

    Raises:
        InputError: a statement names a claim or finding that isn't there, or lacks a reason or an answer.
    """
    content: list[dict[str, Any]] = yaml.safe_load((packaged("templates") / FILE).read_text("utf-8"))
    known = _answers({lesson.rule.id: lesson for lesson in lessons})
    return tuple(
        Source(one["source"], tuple(_statement(each, known, series or {}) for each in one["statements"]))
        for one in content
    )


def _answers(lessons: Mapping[str, Lesson]) -> dict[str, AnsweredBy]:
    found = {finding.name: AnsweredBy(finding.title, f"findings/{finding.name}/") for finding in FINDINGS}
    for finding in FINDINGS:
        for rule in finding.rules:
            address = f"findings/{finding.name}/#rule-{rule.id}"
            found[rule.id] = AnsweredBy(rule.statement.rstrip("."), address, lessons.get(rule.id))
    return found


def _statement(entry: Mapping[str, Any], known: Mapping[str, AnsweredBy], series: Mapping[str, str]) -> Statement:
    says, names, status = entry["says"], entry.get("by", []), entry.get("status", STATUSES[0])
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"{FILE}: “{says}” names what is neither a claim nor a finding: {', '.join(unknown)}.")
    if (
        status not in STATUSES
        or (status != STATUSES[0]) != ("why" in entry)
        or (status == STATUSES[2]) == bool(names)
    ):
        raise InputError(f"{FILE}: “{says}” needs answers unless absent, and a reason unless answered.")
    answers = [known[name] for name in names]
    name = str(entry.get("series", ""))
    if name in series:
        answers.append(AnsweredBy(series[name], f"series/{name}/"))
    return Statement(says, status, tuple(answers), entry.get("why"))
