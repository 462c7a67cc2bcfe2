"""The groups of the matrix: findings on two questions each, so that every group fits a screen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from generators.findings.contract import Finding

GROUPS = ("Positions", "Directions and frequency", "Tokens", "Heads and the first token")
QUESTIONS = 2  # in each group


@dataclass(frozen=True)
class FindingGroup:
    """Findings whose columns stand together, of those that claim something."""

    title: str
    findings: tuple[Finding[Any], ...]

    @property
    def columns(self) -> int:
        return sum(len(finding.rules) for finding in self.findings)


def group_of(finding: Finding[Any]) -> str:
    return GROUPS[(finding.question - 1) // QUESTIONS]


def grouped(findings: Sequence[Finding[Any]]) -> list[FindingGroup]:
    """Return the groups that claim something, each with its findings in the order of the site."""
    claiming = [finding for finding in findings if finding.rules]
    groups = [FindingGroup(title, tuple(f for f in claiming if group_of(f) == title)) for title in GROUPS]
    return [group for group in groups if group.findings]
