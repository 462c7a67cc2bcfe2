"""What can be asked of a reader's model, by how it knows positions: from what findings declare that they read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.site.view import ModelPage

TABLE = "position_embedding"
SCHEMES = (  # as findings name them, and whether they are a table
    (("rotary",), "It rotates queries and keys (RoPE, as Llama does)", False),
    (("alibi",), "It takes from attention, the more the farther a token is (ALiBi)", False),
    (("learned", "formula"), "It has a table of positions, as GPT-2 does", True),
)


@dataclass(frozen=True)
class Askable:
    """What can be asked of models of one kind: `whole` findings, and those that lack what they'd `read` of a table.

    `example` is the model of that kind of which most claims are tested.
    """

    name: str
    title: str
    whole: list[Finding[Any]]
    partly: list[Finding[Any]]
    without: list[Finding[Any]]
    example: ModelPage | None

    @property
    def findings(self) -> list[Finding[Any]]:
        """Return the findings that can be made, in the order of the site."""
        return sorted([*self.whole, *self.partly], key=lambda one: one.order)

    @property
    def claims(self) -> int:
        """Return how many claims can be tested at most: those of findings that can be made."""
        return claims_of(self.findings)


def claims_of(findings: Iterable[Finding[Any]]) -> int:
    """Return how many claims these findings make."""
    return sum(len(finding.rules) for finding in findings)


def askable(pages: Sequence[ModelPage], findings: Sequence[Finding[Any]] = FINDINGS) -> list[Askable]:
    """Return what can be asked of each kind of model; `pages` are those among which examples are looked for."""
    return [_askable(schemes, title, has_table, pages, findings) for schemes, title, has_table in SCHEMES]


def _askable(
    schemes: tuple[str, ...],
    title: str,
    has_table: bool,
    pages: Sequence[ModelPage],
    findings: Sequence[Finding[Any]],
) -> Askable:
    without = [] if has_table else [one for one in findings if TABLE in one.needs]
    partly = [one for one in findings if one.rules and TABLE in one.uses and not has_table and one not in without]
    whole = [one for one in findings if one not in without and one not in partly]
    return Askable(schemes[0], title, whole, partly, without, _example(schemes, pages))


def scheme_finding(findings: Sequence[Finding[Any]] = FINDINGS) -> Finding[Any]:
    """Return the finding that says how models know positions."""
    return next(finding for finding in findings if finding.facts.schemes is not None)


def _example(schemes: tuple[str, ...], pages: Sequence[ModelPage]) -> ModelPage | None:
    those = [page for page in pages if {*schemes} & {*_schemes_of(page)}]
    return max(those, key=lambda page: sum(c.verdict != "untested" for c in page.findings.claims), default=None)


def _schemes_of(page: ModelPage) -> Sequence[str]:
    finding = scheme_finding()
    metrics = page.measured.get(finding.name)
    return () if metrics is None or finding.facts.schemes is None else finding.facts.schemes(metrics)
