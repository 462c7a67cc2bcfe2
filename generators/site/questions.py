"""The questions by which findings are grouped: on the home page, in the menu, on models' pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from generators.compute.records import ClaimRecord
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.site.locations import packaged

FILE = "questions.yml"
GROUPS = ("Positions", "Directions and frequency", "Tokens", "Heads and the first token")  # of the matrix
IN_GROUP = 2  # questions, so that every group fits a screen


@dataclass(frozen=True)
class Question:
    """A question, in short, the findings that answer it in the order of the site, and the words of answers.

    `answers` are sentences by claim and verdict, the claims in the order in which they are asked; `all` is the
    sentence over all models.
    """

    name: str
    title: str
    short: str
    all: str
    answers: Mapping[str, Mapping[str, str]]
    findings: tuple[Finding[Any], ...]

    def answering(self, claims: Mapping[str, ClaimRecord]) -> ClaimRecord | None:
        """Return the claim of a model whose sentence answers it, None where none is tested."""
        asked = ((claims.get(name), words) for name, words in self.answers.items())
        return next((claim for claim, words in asked if claim is not None and claim.verdict in words), None)


@cache
def questions() -> tuple[Question, ...]:
    content = yaml.safe_load((packaged("templates") / FILE).read_text("utf-8"))
    return tuple(
        Question(**entry, findings=tuple(one for one in FINDINGS if one.question == number))
        for number, entry in enumerate(content, 1)
    )


def question_of(finding: Finding[Any]) -> Question:
    return questions()[finding.question - 1]


def address_of(finding: Finding[Any], rule: str = "") -> str:
    """Return where a finding is told over all models, or one of its rules, from the site's root."""
    part = f"rule-{rule}" if rule else finding.name if finding.rules else f"computed-{finding.name}"
    return f"questions/{question_of(finding).name}/#{part}"


def address_of_rule(rule: str) -> str:
    return next(address_of(one, rule) for one in FINDINGS for known in one.rules if known.id == rule)


def address_by_name(finding: str) -> str:
    return next(address_of(one) for one in FINDINGS if one.name == finding)


def group_of(finding: Finding[Any]) -> str:
    return GROUPS[(finding.question - 1) // IN_GROUP]


def grouped() -> dict[str, list[Finding[Any]]]:
    """Return the findings that claim something by the group of the matrix in which they are."""
    claiming = [finding for finding in FINDINGS if finding.rules]
    return {title: [one for one in claiming if group_of(one) == title] for title in GROUPS}
