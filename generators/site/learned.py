"""What we learned: for every claim one sentence over all models, made from their verdicts and effects.

True for three models as for fifty: names are given to the extremes only, everything else is counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from generators.base.text import number
from generators.compute.records import ClaimRecord
from generators.findings.judging import Rule
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
    """One claim over all models: how often it holds, by family; where most; and what runs against the first model."""

    rule: Rule[Any]
    cases: tuple[Case, ...]  # tested
    untested: int
    first: Case | None  # the model that the observation was made on, where it is tested

    @property
    def holding(self) -> int:
        """Return in how many models it holds."""
        return sum(case.claim.verdict == "holds" for case in self.cases)

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
    def strongest(self) -> Case | None:
        """Return the case furthest on the side of `holds`; None where no effect was measured."""
        measured = [case for case in self.cases if case.claim.value is not None]
        return max(measured, key=self._margin, default=None)

    @property
    def weakest(self) -> Case | None:
        """Return the case least on the side of `holds`; None where no effect was measured."""
        measured = [case for case in self.cases if case.claim.value is not None]
        return min(measured, key=self._margin, default=None)

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

    def _margin(self, case: Case) -> float:
        """Return how far an effect lies beyond its threshold, relative to it."""
        value, threshold = case.claim.value or 0.0, case.claim.threshold or 0.0
        margin = value - threshold if self.rule.sense == "at least" else threshold - value
        return margin / abs(threshold) if threshold else margin

    @property
    def sentence(self) -> str:
        """Return how often it holds, in words."""
        if not self.cases:
            return "No model here can test it"
        count = len(self.cases)
        if self.holding == count:
            said = "Holds in the one model tested" if count == 1 else f"Holds in all {count} models tested"
        elif not self.holding:
            said = "Holds in none of the models tested" if count > 1 else "Does not hold in the one model tested"
        else:
            said = f"Holds in {self.holding} of {count} models tested"
        return said + (f", partly in {self.partly}" if self.partly else "")


def lessons(rules: Sequence[Rule[Any]], pages: Sequence[ModelPage]) -> Iterator[Lesson]:
    """Yield the lesson of every claim."""
    for rule in rules:
        known = [Case(page, page.claims[rule.id]) for page in pages if rule.id in page.claims]
        tested = tuple(case for case in known if case.claim.verdict != "untested")
        first = next((case for case in tested if case.page.name == FIRST), None)
        yield Lesson(rule, tested, len(known) - len(tested), first)
