"""The claims from the most general to the least: by the share of models that can test it in which each holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from generators.compute.records import ClaimRecord
from generators.site.learned import FIRST, Lesson
from generators.site.view import ModelPage

GROUPS = "all", "some", "none", "untested"  # models in which a claim holds


@dataclass(frozen=True)
class Generality:
    """Lessons of all claims, the most general first, and the model that nearly every observation was made on.

    `first` is None where the atlas has no results of it.
    """

    lessons: tuple[Lesson, ...]
    first: ModelPage | None

    @cached_property
    def groups(self) -> list[tuple[str, list[Lesson]]]:
        """Return the lessons by where they hold, in their order; no group is empty."""
        found: dict[str, list[Lesson]] = {title: [] for title in GROUPS}
        for lesson in self.lessons:
            found[_group(lesson)].append(lesson)
        return [(title, these) for title, these in found.items() if these]

    @property
    def everywhere(self) -> list[Lesson]:
        """Return what holds in every model that can test it, of which there are at least two."""
        return [lesson for lesson in self.lessons if len(lesson.cases) > 1 and lesson.holding == len(lesson.cases)]

    @property
    def nowhere(self) -> list[Lesson]:
        """Return what holds in none of the models that can test it."""
        return [lesson for lesson in self.lessons if lesson.cases and not lesson.holding]

    @property
    def most_general_of_first(self) -> list[Lesson]:
        """Return, of what holds in the first model and in others, what holds in the largest share of models."""
        shared = [one for one in self.lessons if one.holding > 1 and one.first and one.first.claim.verdict == "holds"]
        return [lesson for lesson in shared if lesson.share == shared[0].share]

    @property
    def in_first_alone(self) -> list[Lesson]:
        """Return what holds in the first model and in no other that can test it, at least one; the least first."""
        return [lesson for lesson in reversed(self._alone) if _holding(lesson).name == FIRST]

    @property
    def in_another_alone(self) -> list[tuple[Lesson, ModelPage]]:
        """Return what holds in one other model alone of at least two that can test it, with that model."""
        return [(lesson, page) for lesson in self._alone if (page := _holding(lesson)).name != FIRST]

    @property
    def by_one(self) -> list[tuple[Lesson, ModelPage]]:
        """Return what holds in the only model that can test it, with that model."""
        return [(lesson, _holding(lesson)) for lesson in self.lessons if len(lesson.cases) == lesson.holding == 1]

    @property
    def _alone(self) -> list[Lesson]:
        return [lesson for lesson in self.lessons if lesson.holding == 1 < len(lesson.cases)]

    @property
    def of_first(self) -> dict[str, ClaimRecord]:
        """Return the first model's claims by id."""
        return {} if self.first is None else self.first.claims

    @property
    def untested(self) -> list[ClaimRecord]:
        """Return the claims that can't be tested in the first model."""
        return [claim for claim in self.of_first.values() if claim.verdict == "untested"]

    @property
    def tested(self) -> int:
        """Return how many claims can be tested in the first model."""
        return len(self.of_first) - len(self.untested)

    @property
    def why(self) -> list[str]:
        """Return the reasons why the first model's claims can't all be tested; none where findings don't say."""
        about = {claim.finding for claim in self.untested}
        sections = [] if self.first is None else [one for one in self.first.sections if one.finding.name in about]
        reasons = {
            "lacks weights": any(section.lacks_weights for section in sections),
            "cannot run": any(section.cannot_run for section in sections),
            "not applicable": any(section.not_applicable for section in sections),
        }
        return [reason for reason, given in reasons.items() if given]


def generality(lessons: Sequence[Lesson], pages: Sequence[ModelPage]) -> Generality:
    """Return lessons from the most general to the least; equals stay in the order of the site."""
    ordered = sorted(lessons, key=lambda lesson: (bool(lesson.cases), *lesson.generality), reverse=True)
    first = next((page for page in pages if page.name == FIRST), None)
    return Generality(tuple(ordered), first)


def _group(lesson: Lesson) -> str:
    if not lesson.cases:
        return "untested"
    if lesson.holding == len(lesson.cases):
        return "all"
    return "some" if lesson.holding else "none"


def _holding(lesson: Lesson) -> ModelPage:
    """Return the first model in which a claim holds; there must be one."""
    return next(case.page for case in lesson.cases if case.claim.verdict == "holds")
