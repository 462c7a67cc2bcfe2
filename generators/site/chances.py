"""What chance gives each claim over all models: its null, the draws, what its interval is over, and false alarms."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from generators.compute.records import ClaimRecord
from generators.findings import FINDINGS
from generators.findings.judging import Rule
from generators.site.view import ModelPage

SHARE = 0.01  # of draws of a null that are beyond its limit


@dataclass(frozen=True)
class ClaimChance:
    """One claim: its records in the models that can test it."""

    rule: Rule[Any]
    tested: tuple[ClaimRecord, ...]

    @property
    def nulls(self) -> list[str]:
        return list(dict.fromkeys(claim.chance.null for claim in self.tested if claim.chance))

    @property
    def draws(self) -> list[int]:
        """Return the fewest and the most draws, one number where they are equal; none of a null that is exact."""
        found = sorted({claim.chance.draws for claim in self.tested if claim.chance and claim.chance.draws})
        return [found[0], found[-1]][: len(found)] if found else []

    @property
    def intervals(self) -> list[str]:
        return list(dict.fromkeys(claim.interval_kind for claim in self.tested if claim.interval_kind))

    @property
    def holding(self) -> int:
        return sum(claim.verdict == "holds" for claim in self.tested)


@dataclass(frozen=True)
class Chances:
    """All claims, and how many of the verdicts that a null decides would hold by chance alone."""

    claims: tuple[ClaimChance, ...]

    @cached_property
    def drawn(self) -> list[ClaimRecord]:
        """Return the tested claims of all models that are judged by draws of a null."""
        return [claim for one in self.claims for claim in one.tested if claim.chance]

    @property
    def expected(self) -> float:
        return SHARE * len(self.drawn)

    @property
    def holding(self) -> int:
        return sum(claim.verdict == "holds" for claim in self.drawn)

    @property
    def false_discoveries(self) -> float:
        """Return the largest share of those that hold which is false on average (Benjamini and Hochberg, 1995)."""
        return min(1.0, self.expected / self.holding) if self.holding else 0.0


def chances(pages: Sequence[ModelPage]) -> Chances:
    found = []
    for rule in (rule for finding in FINDINGS for rule in finding.rules):
        claims = [page.claims[rule.id] for page in pages if rule.id in page.claims]
        found.append(ClaimChance(rule, tuple(claim for claim in claims if claim.verdict != "untested")))
    return Chances(tuple(found))
