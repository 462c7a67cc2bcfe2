"""Every claim over all models: in how many it holds.

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
FEWEST = 3  # models from which on a sentence says "most" or "none"


@dataclass(frozen=True)
class Case:
    page: ModelPage
    claim: ClaimRecord


@dataclass(frozen=True)
class Lesson:
    """One claim over all models: how often it holds.

    `small` are the small models and members of series that can test it; they are in no count of models.
    """

    rule: Rule[Any]
    cases: tuple[Case, ...]  # tested
    first: Case | None  # the model that the observation was made on, where it is tested
    lacking: ModelPage | None = None  # that model, where it isn't
    small: tuple[Case, ...] = ()

    @cached_property
    def _by_recipe(self) -> list[set[str]]:
        """Return the verdicts of each recipe whose models can test it; those of one recipe count once."""
        found: dict[str, set[str]] = {}
        for case in self.cases:
            found.setdefault(case.page.counted_as, set()).add(case.claim.verdict)
        return list(found.values())

    @property
    def tested(self) -> int:
        return len(self._by_recipe)

    @property
    def holding(self) -> int:
        """Return in how many models it holds; of one recipe it must hold in all."""
        return self._by_recipe.count({"holds"})

    @property
    def partly(self) -> int:
        """Return in how many models it partly holds; a recipe whose models differ is one of them."""
        return self._by_recipe.count({"partly"}) + self.differing

    @property
    def differing(self) -> int:
        return sum(len(verdicts) > 1 for verdicts in self._by_recipe)

    @property
    def close_calls(self) -> int:
        return sum(case.claim.close for case in self.cases)

    @property
    def small_holding(self) -> int:
        return sum(case.claim.verdict == "holds" for case in self.small)

    @property
    def mostly_otherwise(self) -> bool:
        """Return whether it holds in all models tested, and fails in most small ones that can test it."""
        failing = sum(case.claim.verdict == "fails" for case in self.small)
        return 0 < self.holding == self.tested and 2 * failing > len(self.small)

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
        yield Lesson(rule, tested, first, lacking, of_small)


def _cases(rule: Rule[Any], pages: Sequence[ModelPage]) -> list[Case]:
    return [Case(page, page.claims[rule.id]) for page in pages if rule.id in page.claims]


@dataclass(frozen=True)
class Overview:
    """Lessons of all claims, and the model that nearly every observation was made on, None without results of it."""

    lessons: tuple[Lesson, ...]
    first: ModelPage | None

    @cached_property
    def enough(self) -> list[Lesson]:
        """Return the claims that enough models can test to speak of most models, or of none."""
        return [lesson for lesson in self.lessons if lesson.tested >= FEWEST]

    @property
    def in_most(self) -> list[Lesson]:
        return [lesson for lesson in self.enough if 2 * lesson.holding > lesson.tested]

    @property
    def nowhere(self) -> list[Lesson]:
        return [lesson for lesson in self.enough if not lesson.holding]

    @property
    def of_first(self) -> dict[str, ClaimRecord]:
        return {} if self.first is None else self.first.claims

    @property
    def untested(self) -> list[ClaimRecord]:
        return [claim for claim in self.of_first.values() if claim.verdict == "untested"]
