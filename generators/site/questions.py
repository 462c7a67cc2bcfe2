"""The questions by which findings are grouped: on the home page, in the menu and on the page of findings."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.site.locations import packaged

FILE = "questions.yml"


@dataclass(frozen=True)
class Question:
    """A question, in short, and the findings that answer it, in the order of the site."""

    name: str
    title: str
    short: str
    findings: tuple[Finding[Any], ...]


@cache
def questions() -> tuple[Question, ...]:
    content = yaml.safe_load((packaged("templates") / FILE).read_text("utf-8"))
    return tuple(
        Question(**entry, findings=tuple(one for one in FINDINGS if one.question == number))
        for number, entry in enumerate(content, 1)
    )
