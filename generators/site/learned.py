"""What we learned: every claim over all models, from verdicts and effects; the most general and the least.

True for three models as for fifty: of few, names are given; of many, to the extremes only, and the rest is counted.
Models of one recipe count as one; small models and members of a series as none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from generators.compute.records import ClaimRecord
from generators.findings.judging import Rule
from generators.site.view import ModelPage, counted

FIRST = "gpt2"  # the model that nearly every observation was made on
FEWEST = 3  # models from which on a sentence says "all", "most" or "only"


@dataclass(frozen=True)
class Case:
    page: ModelPage
    claim: ClaimRecord


@dataclass(frozen=True)
class Recipe:
    """The models of one recipe that can test a claim: they count once."""

    cases: tuple[Case, ...]

    @property
    def verdict(self) -> str:
        """Return the verdict that all of them share; `partly` where they differ."""
        first, *others = {case.claim.verdict for case in self.cases}
        return "partly" if others else first

    @property
    def title(self) -> str:
        titles = [case.page.title for case in self.cases]
        return titles[0] if len(titles) == 1 else f"{' + '.join(titles)} (one recipe)"


@dataclass(frozen=True)
class Lesson:
    """One claim over all models: how often it holds, and what runs against the first model.

    `small` are the small models and members of series that can test it; they are in no count of models.
    """

    rule: Rule[Any]
    cases: tuple[Case, ...]  # tested
    untested: int
    first: Case | None  # the model that the observation was made on, where it is tested
    lacking: ModelPage | None = None  # that model, where it isn't
    small: tuple[Case, ...] = ()

    @cached_property
    def recipes(self) -> tuple[Recipe, ...]:
        """Return the models that can test it; those of one recipe together."""
        found: dict[str, list[Case]] = {}
        for case in self.cases:
            found.setdefault(case.page.counted_as, []).append(case)
        return tuple(Recipe(tuple(cases)) for cases in found.values())

    @property
    def tested(self) -> int:
        """Return how many models can test it; those of one recipe count once, here and below."""
        return len(self.recipes)

    @property
    def holding(self) -> int:
        """Return in how many models it holds; of one recipe it must hold in all."""
        return self._count("holds")

    @property
    def partly(self) -> int:
        """Return in how many models it partly holds; a recipe whose models differ is one of them."""
        return self._count("partly")

    @property
    def differing(self) -> int:
        return sum(len({case.claim.verdict for case in recipe.cases}) > 1 for recipe in self.recipes)

    def _count(self, verdict: str) -> int:
        return sum(recipe.verdict == verdict for recipe in self.recipes)

    @property
    def enough(self) -> bool:
        """Return whether enough models can test it to speak of all of them, or of only one."""
        return self.tested >= FEWEST

    @property
    def in_all(self) -> bool:
        """Return whether it holds in all models that can test it, of which there must be one."""
        return bool(self.cases) and self.holding == self.tested

    @property
    def alone(self) -> bool:
        """Return whether it holds in one recipe and no other model, with values beyond the ranges of all others.

        A small model in which it holds is another model, too.
        """
        holders = [case for case in self.cases if case.claim.verdict == "holds"]
        if self.small_holding or self.holding != 1 or len({case.page.counted_as for case in holders}) > 1:
            return False
        if any(case.claim.close for case in holders):
            return False
        others = [case for case in self.cases if case not in holders]
        return all(self._apart(one, other) for one in holders for other in others)

    def _apart(self, one: Case, other: Case) -> bool:
        """Return whether the ranges of two values don't overlap, the first on the side of evidence."""
        if one.claim.value is None or other.claim.value is None:
            return one.claim.value is not None
        low, high = one.claim.interval or (one.claim.value, one.claim.value)
        least, most = other.claim.interval or (other.claim.value, other.claim.value)
        return low > most if self.rule.sense == "at least" else high < least

    @property
    def close_calls(self) -> int:
        return sum(case.claim.close for case in self.cases)

    @property
    def small_holding(self) -> int:
        return sum(case.claim.verdict == "holds" for case in self.small)

    @property
    def otherwise(self) -> tuple[str, int] | None:
        """Return what speaks against its holding in all models tested, in one alone, or in none.

        It is a verdict and in how many small models it is that; None where nothing does.
        """
        if not self.cases or 1 < self.holding < self.tested:
            return None
        verdict = "fails" if self.in_all else "holds"
        count = sum(case.claim.verdict == verdict for case in self.small)
        return (verdict, count) if count else None

    @property
    def mostly_otherwise(self) -> bool:
        """Return whether it holds in all models tested, and fails in most small ones that can test it."""
        failing = sum(case.claim.verdict == "fails" for case in self.small)
        return self.in_all and 2 * failing > len(self.small)

    @property
    def share(self) -> float:
        return self.holding / self.tested if self.cases else 0.0

    @property
    def generality(self) -> tuple[float, float, int]:
        """Return what claims are ordered by: the shares that hold and partly hold, and how many can test it."""
        return self.share, self.partly / self.tested if self.cases else 0.0, self.tested

    @property
    def numbers(self) -> list[float]:
        """Return the values, ends of intervals, thresholds and limits of chance of all models, and what is quoted."""
        found: list[float | None] = [each.value for each in self.rule.quoted]
        for claim in (case.claim for case in self.cases):
            chance = () if claim.chance is None else (claim.chance.median, claim.chance.limit)
            found += [claim.value, claim.threshold, *(claim.interval or ()), *chance]
        return [number for number in found if number is not None]


def lessons(
    rules: Sequence[Rule[Any]], pages: Sequence[ModelPage], in_series: Sequence[ModelPage] = ()
) -> Iterator[Lesson]:
    """Yield the lesson of every claim; `in_series` are members of series, which count nowhere."""
    those = counted(pages)
    names = {page.name for page in those}
    small = [*(page for page in pages if page.name not in names), *in_series]
    for rule in rules:
        known = _cases(rule, those)
        tested = tuple(case for case in known if case.claim.verdict != "untested")
        of_first = next((case for case in known if case.page.name == FIRST), None)
        untested = of_first is not None and of_first.claim.verdict == "untested"
        first, lacking = (None, of_first.page) if of_first and untested else (of_first, None)
        of_small = tuple(case for case in _cases(rule, small) if case.claim.verdict != "untested")
        without = {case.page.counted_as for case in known} - {case.page.counted_as for case in tested}
        yield Lesson(rule, tested, len(without), first, lacking, of_small)


def _cases(rule: Rule[Any], pages: Sequence[ModelPage]) -> list[Case]:
    return [Case(page, page.claims[rule.id]) for page in pages if rule.id in page.claims]


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
