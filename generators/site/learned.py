"""What we learned: every claim over all models, from verdicts and effects. Words: `templates/lessons.j2`.

True for three models as for fifty: of few, names are given; of many, to the extremes only, and the rest is counted.
Models of one recipe count as one; small models and members of a series as none.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from generators.base.text import with_unit
from generators.compute.records import ClaimRecord
from generators.findings.judging import VERDICTS, Rule
from generators.site.view import ModelPage, counted

FIRST = "gpt2"  # the model that nearly every observation was made on
FEWEST = 3  # models from which on a sentence says "all", "most" or "only"


@dataclass(frozen=True)
class Case:
    """One model's claim."""

    page: ModelPage
    claim: ClaimRecord

    @property
    def effect(self) -> str:
        return "–" if self.claim.value is None else with_unit(self.claim.value, self.claim.unit)


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
    """One claim over all models: how often it holds, by family; where most; and what runs against the first model.

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
        """Return in how many models its verdict is a close call."""
        return sum(case.claim.close for case in self.cases)

    @property
    def small_holding(self) -> int:
        """Return in how many small models it holds."""
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
    def by_family(self) -> list[tuple[str, int, int]]:
        """Return (family, models in which it holds, models tested), most tested first."""
        tested = Counter(_family(recipe) for recipe in self.recipes)
        holding = Counter(_family(recipe) for recipe in self.recipes if recipe.verdict == "holds")
        return [(family, holding[family], count) for family, count in tested.most_common()]

    @property
    def share(self) -> float:
        """Return in which share of the models that can test it, 0 where none can."""
        return self.holding / self.tested if self.cases else 0.0

    @property
    def generality(self) -> tuple[float, float, int]:
        """Return what claims are ordered by: the shares that hold and partly hold, and how many can test it."""
        return self.share, self.partly / self.tested if self.cases else 0.0, self.tested

    @property
    def numbers(self) -> list[float]:
        """Return the values, ends of intervals, thresholds and limits of chance of all models."""
        found: list[float | None] = []
        for claim in (case.claim for case in self.cases):
            chance = () if claim.chance is None else (claim.chance.median, claim.chance.limit)
            found += [claim.value, claim.threshold, *(claim.interval or ()), *chance]
        return [number for number in found if number is not None]

    @property
    def titles(self) -> dict[str, list[str]]:
        """Return the models that can test it, by verdict."""
        return {kind: [one.title for one in self.recipes if one.verdict == kind] for kind in VERDICTS}

    @property
    def extreme(self) -> tuple[str, Case] | None:
        """Return the case on which most speaks for the claim, and its kind; None with fewer than three models.

        It is the largest effect (the lowest value, where low ones are evidence) unless thresholds differ by model.
        """
        case = self.strongest
        if case is None or self._measured < FEWEST:
            return None
        if not self._one_threshold:
            return ("beyond" if self._margin(case) >= 0 else "nearest"), case
        return ("largest" if self.rule.sense == "at least" else "lowest"), case

    @property
    def against(self) -> float | None:
        """Return the threshold of that case, where that doesn't hold or thresholds differ by model."""
        if self.extreme is None:
            return None
        claim = self.extreme[1].claim
        return None if claim.verdict == "holds" and self._one_threshold else claim.threshold

    @property
    def _one_threshold(self) -> bool:
        return len({case.claim.threshold for case in self.cases}) == 1

    @property
    def _measured(self) -> int:
        return sum(any(case.claim.value is not None for case in recipe.cases) for recipe in self.recipes)

    @property
    def ends(self) -> tuple[Case, Case] | None:
        """Return the cases least and most on the side of `holds`; None with effects of fewer than three models."""
        weakest, strongest = self.weakest, self.strongest
        return None if weakest is None or strongest is None or self._measured < FEWEST else (weakest, strongest)

    @property
    def strongest(self) -> Case | None:
        """Return the case furthest on the side of `holds`; None where no effect was measured."""
        measured = [case for case in self.cases if case.claim.value is not None]
        return max(measured, key=self._strength, default=None)

    @property
    def weakest(self) -> Case | None:
        """Return the case least on the side of `holds`; None where no effect was measured."""
        measured = [case for case in self.cases if case.claim.value is not None]
        return min(measured, key=self._strength, default=None)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Return in how many models it holds, partly holds, fails, and stays untested."""
        fails = self.tested - self.holding - self.partly
        return self.holding, self.partly, fails, self.untested

    @property
    def others(self) -> list[tuple[str, int]]:
        """Return in how many models it fails or stays untested, without what there is none of."""
        *_, fails, untested = self.counts
        return [(kind, count) for kind, count in (("fails", fails), ("untested", untested)) if count]

    @property
    def surprising(self) -> Case | None:
        """Return the case whose verdict is the opposite of the first model's, by the largest margin."""
        if self.first is None or self.first.claim.verdict not in ("holds", "fails"):
            return None
        opposite = "fails" if self.first.claim.verdict == "holds" else "holds"
        others = [c for c in self.cases if c.claim.verdict == opposite and c.claim.value is not None]
        return max(others, key=lambda case: abs(self._margin(case)), default=None)

    def _strength(self, case: Case) -> tuple[int, float]:
        """Return what orders cases: the verdict, which may ask for more than the threshold, then the margin."""
        return -VERDICTS.index(case.claim.verdict), self._margin(case)

    def _margin(self, case: Case) -> float:
        """Return how far an effect lies beyond its threshold, relative to it."""
        value, threshold = case.claim.value or 0.0, case.claim.threshold or 0.0
        margin = value - threshold if self.rule.sense == "at least" else threshold - value
        return margin / abs(threshold) if threshold else margin


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


def _family(recipe: Recipe) -> str:
    return recipe.cases[0].page.findings.model.family


def _cases(rule: Rule[Any], pages: Sequence[ModelPage]) -> list[Case]:
    return [Case(page, page.claims[rule.id]) for page in pages if rule.id in page.claims]
