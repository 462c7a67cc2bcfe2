"""The groups of findings in the matrix: what weights show by themselves, and what a model does when it runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from generators.findings.contract import Finding
from generators.findings.inputs import RUN

IN_WEIGHTS, IN_USE = "In the weights", "In use"
GROUPS = (IN_WEIGHTS, IN_USE)


@dataclass(frozen=True)
class FindingGroup:
    """Findings whose columns stand together, of those that claim something."""

    title: str
    findings: tuple[Finding[Any], ...]

    @property
    def columns(self) -> int:
        """Return how many claims there are."""
        return sum(len(finding.rules) for finding in self.findings)


def group_of(finding: Finding[Any]) -> str:
    """Return in which group a finding stands: it follows from whether it needs the model to be run."""
    return IN_USE if RUN in finding.needs else IN_WEIGHTS


def grouped(findings: Sequence[Finding[Any]]) -> list[FindingGroup]:
    """Return the groups that claim something, each with its findings in the order of the site."""
    claiming = [finding for finding in findings if finding.rules]
    groups = [FindingGroup(title, tuple(f for f in claiming if group_of(f) == title)) for title in GROUPS]
    return [group for group in groups if group.findings]
