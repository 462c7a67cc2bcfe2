"""What we learned: every claim over all models, from verdicts and effects. Words: `templates/lessons.j2`.

True for three models as for fifty: of few, names are given; of many, to the extremes only, and the rest is counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from generators.base.text import number
from generators.compute.records import ClaimRecord
from generators.findings.judging import VERDICTS, Rule
from generators.site.view import ModelPage

FIRST = "gpt2"  # the model that nearly every observation was made on


@dataclass(frozen=True)
class Case:
    """One model's claim."""

    page: ModelPage
    claim: ClaimRecord

    @property
    def effect(self) -> str:
        """Return the effect with its unit."""
        return f"{number(self.claim.value)} {self.claim.unit}".strip()


@dataclass(frozen=True)
class Lesson:
    """One claim over all models: how often it holds, by family; where most; and what runs against the first model.

    `of_series` are the models that can test it and are in their series alone, so that they count nowhere else.
    """

    rule: Rule[Any]
    cases: tuple[Case, ...]  # tested
    untested: int
    first: Case | None  # the model that the observation was made on, where it is tested
    lacking: ModelPage | None = None  # that model, where it isn't
    of_series: tuple[Case, ...] = ()

    @property
    def holding(self) -> int:
        """Return in how many models it holds."""
        return sum(case.claim.verdict == "holds" for case in self.cases)

    @property
    def series_holding(self) -> int:
        """Return in how many models it holds that are in their series alone."""
        return sum(case.claim.verdict == "holds" for case in self.of_series)

    @property
    def otherwise(self) -> tuple[str, int] | None:
        """Return what speaks against its holding in all models tested, in one alone, or in none.

        It is a verdict and in how many models of series it is that; None where nothing does.
        """
        if not self.cases or 1 < self.holding < len(self.cases):
            return None
        verdict = "fails" if self.holding == len(self.cases) else "holds"
        count = sum(case.claim.verdict == verdict for case in self.of_series)
        return (verdict, count) if count else None

    @property
    def mostly_otherwise(self) -> bool:
        """Return whether it holds in all models tested, and fails in most of those of series that can test it."""
        failing = sum(case.claim.verdict == "fails" for case in self.of_series)
        return self.holding == len(self.cases) and 2 * failing > len(self.of_series)

    @property
    def partly(self) -> int:
        """Return in how many models it partly holds."""
        return sum(case.claim.verdict == "partly" for case in self.cases)

    @property
    def by_family(self) -> list[tuple[str, int, int]]:
        """Return (family, models in which it holds, models tested), most tested first."""
        tested = Counter(case.page.findings.model.family for case in self.cases)
        holding = Counter(case.page.findings.model.family for case in self.cases if case.claim.verdict == "holds")
        return [(family, holding[family], count) for family, count in tested.most_common()]

    @property
    def share(self) -> float:
        """Return in which share of the models that can test it, 0 where none can."""
        return self.holding / len(self.cases) if self.cases else 0.0

    @property
    def generality(self) -> tuple[float, float, int]:
        """Return what claims are ordered by: the shares that hold and partly hold, and how many can test it."""
        return self.share, self.partly / len(self.cases) if self.cases else 0.0, len(self.cases)

    @property
    def titles(self) -> dict[str, list[str]]:
        """Return the models that can test it, by verdict."""
        return {kind: [one.page.title for one in self.cases if one.claim.verdict == kind] for kind in VERDICTS}

    @property
    def extreme(self) -> tuple[str, Case] | None:
        """Return the case on which most speaks for the claim, and its kind; None with fewer than two effects.

        It is the largest effect (the lowest value, where low ones are evidence) unless thresholds differ by model.
        """
        case = self.strongest
        if case is None or sum(one.claim.value is not None for one in self.cases) < 2:
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
        fails = len(self.cases) - self.holding - self.partly
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
    """Yield the lesson of every claim; `in_series` are models that count only where no other can test it."""
    for rule in rules:
        known = _cases(rule, pages)
        tested = tuple(case for case in known if case.claim.verdict != "untested")
        of_first = next((case for case in known if case.page.name == FIRST), None)
        untested = of_first is not None and of_first.claim.verdict == "untested"
        first, lacking = (None, of_first.page) if of_first and untested else (of_first, None)
        of_series = tuple(case for case in _cases(rule, in_series) if case.claim.verdict != "untested")
        yield Lesson(rule, tested, len(known) - len(tested), first, lacking, of_series)


def _cases(rule: Rule[Any], pages: Sequence[ModelPage]) -> list[Case]:
    return [Case(page, page.claims[rule.id]) for page in pages if rule.id in page.claims]
