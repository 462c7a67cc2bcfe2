"""The questions by which findings are grouped, and the answer of each: of a model, in a sentence; over all models."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from generators.compute.records import ClaimRecord
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.site.learned import Lesson
from generators.site.locations import packaged
from generators.site.pictures import Picture
from generators.site.view import ModelPage, Section
from generators.site.words import environment

FILE = "questions.yml"
HELIX = ("three-components", "winding")  # claims that make a helix where both hold, the first strongly


@dataclass(frozen=True)
class Question:
    """A question, in short, the findings that answer it in the order of the site, and the words of answers.

    `answers` are sentences by claim and verdict, the claims in the order in which they are asked; `all` is the sentence
    over all models.
    """

    name: str
    title: str
    short: str
    all: str
    answers: Mapping[str, Mapping[str, str]]
    findings: tuple[Finding[Any], ...]


@dataclass(frozen=True)
class QuestionAnswer:
    """What one model answers: a sentence, the claim that it follows from (None: none is tested), and what is shown."""

    question: Question
    sentence: str
    claim: ClaimRecord | None
    sections: list[Section]
    pictures: list[Picture] = field(default_factory=list)

    @property
    def claims(self) -> list[ClaimRecord]:
        return [claim for section in self.sections for claim in section.claims]

    @property
    def tested(self) -> list[ClaimRecord]:
        return [claim for claim in self.claims if claim.verdict != "untested"]

    @property
    def untold(self) -> dict[str, list[Section]]:
        """Return the findings that show nothing of this model, by the sentence that says why."""
        found: dict[str, list[Section]] = {}
        for section in self.sections:
            if section.problem is not None:
                found.setdefault(section.record.reason or section.problem, []).append(section)
        return found


@cache
def questions() -> tuple[Question, ...]:
    content = yaml.safe_load((packaged("templates") / FILE).read_text("utf-8"))
    return tuple(
        Question(**entry, findings=tuple(one for one in FINDINGS if one.question == number))
        for number, entry in enumerate(content, 1)
    )


def question_of(finding: Finding[Any]) -> Question:
    return questions()[finding.question - 1]


def answers(page: ModelPage) -> list[QuestionAnswer]:
    """Return what one model answers to each question; the first with a picture is the page's `hero`."""
    return [_answer(question, page) for question in questions()]


def _answer(question: Question, page: ModelPage) -> QuestionAnswer:
    sections = [section for section in page.sections if section.finding in question.findings]
    pictures = [section.signature for section in sections if section.signature is not None and not section.problem]
    for name, words in question.answers.items():
        claim = page.claims.get(name)
        if claim is not None and claim.verdict in words:
            said = _rendered(words[claim.verdict], value=claim.value, helix=is_helix(page))
            return QuestionAnswer(question, said, claim, sections, pictures)
    return QuestionAnswer(question, _why_not(sections), None, sections, pictures)


def _why_not(sections: Sequence[Section]) -> str:
    """Return in a sentence why a question has no answer: what its first finding says of it."""
    reasons = [section.record.reason for section in sections if section.problem is not None and section.record.reason]
    reasons += [claim.answer for section in sections for claim in section.claims]
    return reasons[0].rstrip(".") if reasons else "This was not asked"


def is_helix(page: ModelPage) -> bool:
    """Return whether the positions of a model wind, and lie in three dimensions at least half of the way from chance."""
    flat, winding = (page.claims.get(name) for name in HELIX)
    if flat is None or winding is None or {flat.verdict, winding.verdict} != {"holds"}:
        return False
    least = next(rule.given["helix"] for one in FINDINGS for rule in one.rules if rule.id == flat.id)
    return (flat.beyond_chance or 0) >= least


def over_all(question: Question, lessons: Iterable[Lesson], pages: Sequence[ModelPage]) -> str:
    """Return the answer over the models that counts are over."""
    by_claim = {lesson.rule.id: lesson for lesson in lessons}

    def of(claim: str) -> str:
        lesson = by_claim[claim]
        if not lesson.tested:
            return "no model that we could test"
        return f"{lesson.holding} of {lesson.tested} model{'s' * (lesson.tested > 1)} tested"

    return _rendered(question.all, of=of, helix=[page.title for page in pages if is_helix(page)])


def _rendered(words: str, **given: Any) -> str:
    return " ".join(_compiled(words).render(given).split())


@cache
def _compiled(words: str) -> Any:
    return environment().from_string(words)
