"""Which models are alike in their verdicts: of each the one it agrees with most, and the one it does least."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from generators.findings import FINDINGS
from generators.maths.agreement import Agreement, agreement
from generators.site.view import ModelPage

FEWEST = 8  # claims that two models must both have a verdict on before they are compared
MODELS = 3  # from which on chance can be told from agreement
CODES = {"fails": 0.0, "partly": 1.0, "holds": 2.0}  # others are no verdicts


@dataclass(frozen=True)
class ComparedModel:
    """Two models' verdicts: on how many claims they are the same, and how many that is by chance."""

    other: ModelPage
    same: int
    shared: int
    expected: float
    beyond_chance: bool

    @property
    def share(self) -> float:
        """Return the share of claims with the same verdict."""
        return self.same / self.shared


@dataclass(frozen=True)
class Neighbours:
    """The model that agrees most with one, and the model that agrees least; None where no other agrees less."""

    page: ModelPage
    most: ComparedModel
    least: ComparedModel | None


def neighbours(pages: Sequence[ModelPage]) -> list[Neighbours]:
    """Return of each model the most and the least alike; empty where there are too few to tell.

    Alike is the share of claims with the same verdict, of those that both have one on.
    """
    if len(pages) < MODELS:
        return []
    claims = [rule.id for finding in FINDINGS for rule in finding.rules]
    verdicts = [[page.claims[claim].verdict if claim in page.claims else "" for claim in claims] for page in pages]
    answers = np.array([[CODES.get(verdict, np.nan) for verdict in row] for row in verdicts])
    found = agreement(answers, FEWEST)
    return [of for i in range(len(pages)) if (of := _of(pages, found, i)) is not None]


def _of(pages: Sequence[ModelPage], found: Agreement, i: int) -> Neighbours | None:
    others = [j for j in range(len(pages)) if j != i and found.shared[i, j] >= FEWEST]
    if len(others) < MODELS - 1:
        return None
    others.sort(key=lambda j: -found.same[i, j] / found.shared[i, j])

    def compared(j: int) -> ComparedModel:
        return ComparedModel(
            other=pages[j],
            same=int(found.same[i, j]),
            shared=int(found.shared[i, j]),
            expected=float(found.expected[i, j]),
            beyond_chance=bool(found.excess[i, j] > found.limit),
        )

    most, least = compared(others[0]), compared(others[-1])
    return Neighbours(pages[i], most, least if least.share < most.share else None)
