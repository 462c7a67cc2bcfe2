"""What models answer to the questions: each in a sentence, all together in another."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from generators.compute.records import ClaimRecord
from generators.site.learned import Lesson
from generators.site.pictures import Picture
from generators.site.questions import Question, questions
from generators.site.view import ModelPage, Section
from generators.site.words import environment, first_sentence

MOST_DRAWN = 6  # models whose figure a question's page shows


@dataclass(frozen=True)
class QuestionAnswer:
    """What one model answers: a sentence, the claim that it follows from (None: none is tested), what is shown."""

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
    def elsewhere(self) -> list[ClaimRecord]:
        """Return the claim that answers it, if that claim belongs to another question."""
        return [] if self.claim is None or self.claim in self.claims else [self.claim]

    @property
    def untold(self) -> dict[str, list[Section]]:
        """Return the findings that show nothing of this model, by the sentence that says why."""
        found: dict[str, list[Section]] = {}
        for section in self.sections:
            if section.problem is not None:
                lost = section.record.status == "failed" or not section.stored
                reason = section.record.reason or ""
                said = f"{section.problem} {reason}".strip() if lost else reason or section.problem
                found.setdefault(said, []).append(section)
        return found


def drawn_for(question: Question, pages: Sequence[ModelPage]) -> list[tuple[ModelPage, Picture]]:
    """Return one figure in the models that have it: of the finding whose claim answers first, larger models first.

    First comes the model in which most of the finding's claims hold.
    """
    answered_by = {rule.id: finding for finding in question.findings for rule in finding.rules}
    chosen: list[tuple[ModelPage, Section]] = []
    for finding in dict.fromkeys(answered_by[claim] for claim in question.answers if claim in answered_by):
        found = [(page, section) for page in pages for section in page.sections if section.finding is finding]
        drawn = [(page, section) for page, section in found if section.signature is not None]
        large = [one for one in drawn if not one[0].is_small]
        chosen = chosen or large or drawn
    first = max(chosen, key=lambda one: sum(claim.verdict == "holds" for claim in one[1].claims), default=None)
    ordered = sorted(chosen, key=lambda one: one is not first)[:MOST_DRAWN]
    return [(page, section.signature) for page, section in ordered if section.signature is not None]


def answers(page: ModelPage) -> list[QuestionAnswer]:
    return [_answer(question, page) for question in questions()]


def _answer(question: Question, page: ModelPage) -> QuestionAnswer:
    sections = [section for section in page.sections if section.finding in question.findings]
    pictures = [picture for section, picture in page.shown if section.finding in question.findings]
    claim = question.answering(page.claims)
    if claim is not None:
        value, words = claim.value or 0.0, question.answers[claim.id][claim.verdict]
        said = _rendered(words, value=value, count=f"{value:,.0f}", c=claim, claims=page.claims)
        return QuestionAnswer(question, said, claim, sections, pictures)
    tested = [claim for section in sections for claim in section.claims if claim.verdict != "untested"]
    if tested:
        return QuestionAnswer(question, _one_sentence(tested[0].answer), tested[0], sections, pictures)
    return QuestionAnswer(question, _why_not(sections), None, sections, pictures)


def _why_not(sections: Sequence[Section]) -> str:
    if any(section.lacks_weights for section in sections):
        return "We lack the weights that would answer this"
    if any(section.cannot_run for section in sections):
        return "Only running the model could answer this"
    reasons = [section.record.reason for section in sections if section.problem is not None and section.record.reason]
    reasons += [claim.answer for section in sections for claim in section.claims]
    return _one_sentence(reasons[0]) if reasons else "This model was not tested for it"


def _one_sentence(text: str) -> str:
    return first_sentence(text).rstrip(".")


def over_all(question: Question, lessons: Iterable[Lesson], pages: Sequence[ModelPage]) -> str:
    """Return the answer over the models that counts are over."""
    by_claim = {lesson.rule.id: lesson for lesson in lessons}

    def of(claim: str) -> str:
        lesson = by_claim[claim]
        if not lesson.tested:
            return "no model that we could test"
        return f"{lesson.holding} of {lesson.tested} model{'s' * (lesson.tested > 1)} tested"

    return _rendered(question.all, of=of, pages=pages)


def _rendered(words: str, **given: Any) -> str:
    return " ".join(_compiled(words).render(given).split())


@cache
def _compiled(words: str) -> Any:
    return environment().from_string(words)
