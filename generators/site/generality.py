"""The claims from the most general to the least: by the share of models that can test it in which each holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from generators.compute.records import ClaimRecord
from generators.site.learned import FIRST, Lesson, Recipe
from generators.site.view import ModelPage


@dataclass(frozen=True)
class Generality:
    """Lessons of all claims, the most general first, and the model that nearly every observation was made on.

    `first` is None where the atlas has no results of it.
    """

    lessons: tuple[Lesson, ...]
    first: ModelPage | None

    @cached_property
    def enough(self) -> list[Lesson]:
        return [lesson for lesson in self.lessons if lesson.enough]

    @property
    def in_most(self) -> list[Lesson]:
        return [lesson for lesson in self.enough if 2 * lesson.holding > lesson.tested]

    @property
    def everywhere(self) -> list[Lesson]:
        return [lesson for lesson in self.enough if lesson.in_all]

    @property
    def nowhere(self) -> list[Lesson]:
        return [lesson for lesson in self.enough if not lesson.holding]

    @property
    def most_general_of_first(self) -> list[Lesson]:
        """Return what holds in the first model and in others, in the largest share of three models or more."""
        shared = [
            one
            for one in self.lessons
            if one.enough and one.holding > 1 and one.first and one.first.claim.verdict == "holds"
        ]
        return [lesson for lesson in shared if lesson.share == shared[0].share]

    @property
    def in_first_alone(self) -> list[Lesson]:
        """Return what holds in the first model and in no other of three or more; the least general first."""
        return [lesson for lesson in reversed(self._alone) if _has_first(_holding(lesson))]

    @property
    def in_another_alone(self) -> list[tuple[Lesson, str]]:
        """Return what holds in one other model alone of three or more that can test it, with that model's title."""
        return [(lesson, one.title) for lesson in self._alone if not _has_first(one := _holding(lesson))]

    @property
    def _alone(self) -> list[Lesson]:
        return [lesson for lesson in self.lessons if lesson.enough and lesson.alone]

    @property
    def of_first(self) -> dict[str, ClaimRecord]:
        return {} if self.first is None else self.first.claims

    @property
    def untested(self) -> list[ClaimRecord]:
        return [claim for claim in self.of_first.values() if claim.verdict == "untested"]

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
    """Return lessons from the most general to the least, then those that fewer than three models can test.

    Equals stay in the order of the site.
    """

    def rank(lesson: Lesson) -> tuple[bool, bool, float, float, int]:
        return (lesson.enough, bool(lesson.cases), *lesson.generality)

    first = next((page for page in pages if page.name == FIRST), None)
    return Generality(tuple(sorted(lessons, key=rank, reverse=True)), first)


def _holding(lesson: Lesson) -> Recipe:
    """Return the first models in which a claim holds, of one recipe; there must be some."""
    return next(recipe for recipe in lesson.recipes if recipe.verdict == "holds")


def _has_first(recipe: Recipe) -> bool:
    return any(case.page.name == FIRST for case in recipe.cases)
