"""How often items give the same answers to many questions, and how often chance has them do so.

Answers are codes from 0 on; `UNKNOWN` where an item has no answer to a question. Two items are compared over the
questions that both answer.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

UNKNOWN = -1
DRAWS = 200  # of shuffled answers
PERCENTILE = 99  # of the draws, above which two items agree more than chance has any two


@dataclass(frozen=True)
class Agreement:
    """Of each two items: the questions that both answer, those answered alike, and how many of these chance gives.

    `limit` is what the largest excess of two items over chance, as a share of their questions, has to pass.
    """

    shared: Int[Array, "n n"]
    same: Int[Array, "n n"]
    expected: Float[Array, "n n"]
    limit: float

    @property
    def excess(self) -> Float[Array, "n n"]:
        """Return the share of questions answered alike beyond what chance gives; NaN where none are shared."""
        return _excess(self.same, self.expected, self.shared)


def agreement(answers: Int[Array, "n q"], fewest: int, seed: int = 0) -> Agreement:
    """Return how often each two items agree, and what chance has them agree.

    Chance: the answers to every question are shuffled over the items that answer it, each question by itself.
    The expected agreement is exact; `limit` is the percentile, over draws, of the largest excess among the pairs that
    share at least `fewest` questions (infinite where none do).
    """
    shared, same = _counted(answers)
    expected = _expected(answers)
    apart = np.triu(shared >= fewest, 1)
    if not apart.any():
        return Agreement(shared, same, expected, float("inf"))
    rng = np.random.default_rng(seed)
    largest = []
    for _ in range(DRAWS):
        _shared, drawn = _counted(_shuffled(answers, rng))
        largest.append(float(_excess(drawn, expected, shared)[apart].max()))
    return Agreement(shared, same, expected, float(np.percentile(largest, PERCENTILE)))


def _counted(answers: Int[Array, "n q"]) -> tuple[Int[Array, "n n"], Int[Array, "n n"]]:
    known = (answers != UNKNOWN).astype(int)
    same = np.zeros((len(answers), len(answers)), dtype=int)
    for code in np.unique(answers[answers != UNKNOWN]):
        given = (answers == code).astype(int)
        same += given @ given.T
    return known @ known.T, same


def _expected(answers: Int[Array, "n q"]) -> Float[Array, "n n"]:
    """Return how many questions each two items answer alike in the mean over all shuffles."""
    known = (answers != UNKNOWN).astype(float)
    n = known.sum(axis=0)
    pairs = np.zeros_like(n)
    for code in np.unique(answers[answers != UNKNOWN]):
        given = (answers == code).sum(axis=0)
        pairs += given * (given - 1)
    chance = np.divide(pairs, n * (n - 1), out=np.zeros_like(n), where=n > 1)
    return (known * chance) @ known.T


def _excess(same: Int[Array, "n n"], expected: Float[Array, "n n"], shared: Int[Array, "n n"]) -> Float[Array, "n n"]:
    return np.divide(same - expected, shared, out=np.full(shared.shape, np.nan), where=shared > 0)


def _shuffled(answers: Int[Array, "n q"], rng: np.random.Generator) -> Int[Array, "n q"]:
    shuffled = answers.copy()
    for question in range(answers.shape[1]):
        known = answers[:, question] != UNKNOWN
        shuffled[known, question] = rng.permutation(answers[known, question])
    return shuffled
