"""Tokens that were hardly trained: those that the training text never has, and those that look it.

Candidates follow Land and Bartolo, "Fishing for Magikarp" (2024).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.measured import Table, table_of
from generators.findings.outliers.clump import Clump
from generators.findings.outliers.tokens import OutlierTokens
from generators.findings.token_cells import COLUMNS

CANDIDATE_SHARE = 0.02  # share of the vocabulary that counts as candidates for under-trained tokens
MOST_CANDIDATES = 200  # candidates in the table
CONTAINING = 5  # longer tokens named per candidate
APART = ("byte", "special", "unassigned")  # groups of candidates that are not listed


class KnownUnused(TypedDict):
    """How many tokens the training text never has, and how many of them the clump holds.

    `largest_count_in_clump` is how often its most frequent member occurs, None without a clump.
    """

    count: int
    in_clump: int
    largest_count_in_clump: int | None


@dataclass(frozen=True)
class Indicator:
    """A value of every token that is small for under-trained ones, and what it is."""

    name: str
    values: Float[Array, " V"]

    @property
    def candidates(self) -> Int[Array, " n"]:
        return np.argsort(self.values, kind="stable")[: int(CANDIDATE_SHARE * len(self.values))]


def indicator(tokens: OutlierTokens, clump: Clump | None, tied: bool) -> Indicator | None:
    """Return the cosine distance to the clump, None without one; where outputs are another matrix, the norm."""
    if not tied:
        return Indicator("norm of the input embedding", tokens.norms)
    return None if clump is None else Indicator("cosine distance to the clump", distances(tokens, clump))


def distances(tokens: OutlierTokens, clump: Clump) -> Float[Array, " V"]:
    """Return 1 - cosine of every token with the center of the clump."""
    lengths = tokens.norms * float(np.linalg.norm(clump.centre))
    return 1 - np.divide(tokens.along(clump.centre), lengths, where=lengths > 0, out=np.zeros(len(lengths)))


def candidate_table(found: Indicator, tokens: OutlierTokens, counts: Int[Array, " V"] | None) -> Table:
    vocabulary = tokens.vocabulary
    ids = [i for i in found.candidates.tolist() if vocabulary is None or vocabulary.groups[i] not in APART]
    which = f"the first {MOST_CANDIDATES} of {len(ids)} candidates" if len(ids) > MOST_CANDIDATES else "candidates"
    rows = [
        {
            **tokens.row(i),
            "indicator": float(found.values[i]),
            "contained_in": vocabulary and [vocabulary.readable[j] for j in vocabulary.containing(i, CONTAINING)],
            "count": None if counts is None else int(counts[i]),
        }
        for i in ids[:MOST_CANDIDATES]
    ]
    columns = (*COLUMNS, "group", "indicator", "contained_in", *([] if counts is None else ["count"]))
    return table_of(f"Tokens that look under-trained, {which} by {found.name}", columns, rows)


def known_unused(counts: Int[Array, " V"], clump: Clump | None) -> KnownUnused:
    inside = counts[[] if clump is None else clump.members]
    return {
        "count": int((counts == 0).sum()),
        "in_clump": int((inside == 0).sum()),
        "largest_count_in_clump": int(inside.max()) if len(inside) else None,
    }


def known_unused_table(counts: Int[Array, " V"], members: frozenset[int], tokens: OutlierTokens) -> Table:
    rows = [{**tokens.row(i), "in_clump": i in members} for i in np.flatnonzero(counts == 0).tolist()]
    return table_of("Tokens that the training text never has", (*COLUMNS, "group", "in_clump", "norm"), rows)
