"""What the sources say about models, and what in the atlas answers each statement: `templates/statements.yml`."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import yaml

from generators.findings import FINDINGS
from generators.site.learned import Lesson
from generators.site.locations import packaged
from generators.site.questions import address_of

FILE = "statements.yml"
Status = Literal["answered", "in part", "absent"]
Where = Literal["in its model", "elsewhere", "open"]
WHERE: tuple[Where, ...] = get_args(Where)
TRUTHS = {"holds": "true", "partly": "partly true", "fails": "false"}


@dataclass(frozen=True)
class AnsweredBy:
    """A claim, a finding or a series that answers a statement: where it is, and in how many models a claim holds.

    `in_first`: GPT-2, of which nearly all statements speak, can test it; `somewhere`: any model can.
    """

    title: str
    address: str
    lesson: Lesson | None = None
    in_first: bool = False
    somewhere: bool = True


@dataclass(frozen=True)
class Statement:
    """What a source says, whether it is answered, by what, and why not wholly; `of_others`: of other models.

    `same` is the claim that says the same, where there is one.
    """

    says: str
    status: Status
    answers: tuple[AnsweredBy, ...]
    why: str | None
    of_others: bool = False
    same: AnsweredBy | None = None

    @property
    def truth(self) -> str | None:
        """Return whether it is true of GPT-2, where a claim that says the same is tested there."""
        first = self.same.lesson.first if self.same and self.same.lesson else None
        return None if first is None else TRUTHS.get(first.claim.verdict)

    @property
    def where(self) -> Where:
        """Return whether it is answered in the model of which it speaks, in others alone, or not."""
        if self.status == "absent" or not any(answer.somewhere for answer in self.answers):
            return "open"
        here = not self.of_others and any(answer.in_first for answer in self.answers)
        return "in its model" if here else "elsewhere"


@dataclass(frozen=True)
class Source:
    title: str
    statements: tuple[Statement, ...]

    @property
    def counts(self) -> dict[Where, int]:
        return counts([self])


def counts(sources: Sequence[Source]) -> dict[Where, int]:
    found = Counter(one.where for source in sources for one in source.statements)
    return {where: found[where] for where in WHERE}


def statements(
    lessons: Sequence[Lesson] = (), series: Mapping[str, str] | None = None, in_first: Collection[str] = ()
) -> tuple[Source, ...]:
    """Return all sources with their statements; `series` has the titles of the series that have a page.

    `in_first` names the findings that are computed for the model of which nearly all statements speak.
    """
    content: list[dict[str, Any]] = yaml.safe_load((packaged("templates") / FILE).read_text("utf-8"))
    known = _answers({lesson.rule.id: lesson for lesson in lessons}, in_first)
    return tuple(
        Source(one["source"], tuple(_statement(each, known, series or {}) for each in one["statements"]))
        for one in content
    )


def _answers(lessons: Mapping[str, Lesson], in_first: Collection[str]) -> dict[str, AnsweredBy]:
    found = {}
    for finding in FINDINGS:
        found[finding.name] = AnsweredBy(finding.title, address_of(finding), in_first=finding.name in in_first)
        for rule in finding.rules:
            lesson = lessons.get(rule.id)
            first, some = (lesson.first is not None, bool(lesson.cases or lesson.small)) if lesson else (False, True)
            found[rule.id] = AnsweredBy(rule.statement.rstrip("."), address_of(finding, rule.id), lesson, first, some)
    return found


def _statement(entry: Mapping[str, Any], known: Mapping[str, AnsweredBy], series: Mapping[str, str]) -> Statement:
    says, status = entry["says"], entry.get("status", "answered")
    same = next((name[1:] for name in entry.get("by", []) if name[0] == "="), None)
    names = [name.removeprefix("=") for name in entry.get("by", [])]
    answers = [known[name] for name in names]
    name = str(entry.get("series", ""))
    if name in series:
        answers.append(AnsweredBy(series[name], f"series/{name}/"))
    others = entry.get("about") == "others"
    return Statement(says, status, tuple(answers), entry.get("why"), others, known[same] if same else None)
