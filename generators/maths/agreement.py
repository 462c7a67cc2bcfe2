"""How often items give the same answers to many questions, and how often they would by chance.

Answers are codes, NaN where an item has no answer. Two items are compared on the questions that both answer.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.maths.rank_pairs import DRAWS, PERCENTILE, shuffled


@dataclass(frozen=True)
class Agreement:
    """For each pair of items: the questions both answer, those they agree on, and the agreement expected by chance.

    `limit` is what the largest excess of two items over chance, as a share of their questions, has to pass.
    """

    shared: Int[Array, "n n"]
    same: Int[Array, "n n"]
    expected: Float[Array, "n n"]
    limit: float

    @property
    def excess(self) -> Float[Array, "n n"]:
        """Return the share of questions agreed on beyond chance; NaN where no question is shared."""
        beyond = self.same - self.expected
        return np.divide(beyond, self.shared, out=np.full(beyond.shape, np.nan), where=self.shared > 0)


def agreement(answers: Float[Array, "n q"], fewest: int, seed: int = 0) -> Agreement:
    """Return how often each two items agree, and what chance has them agree.

    Chance: the answers to every question are shuffled over the items that answer it, each question by itself.
    The expected agreement is exact; `limit` is the percentile, over draws, of the largest excess among the pairs that
    share at least `fewest` questions (infinite where none do).
    """
    known = np.isfinite(answers)
    shared = known.astype(int) @ known.astype(int).T
    codes = np.unique(answers[known])
    expected = _expected(answers, codes)
    apart = np.triu(shared >= max(fewest, 1), 1)
    limit = float("inf")
    if apart.any():
        rng = np.random.default_rng(seed)
        draws = (_same(shuffled(answers.T, rng).T, codes) for _ in range(DRAWS))
        limit = float(np.percentile([np.max((same - expected)[apart] / shared[apart]) for same in draws], PERCENTILE))
    return Agreement(shared, _same(answers, codes), expected, limit)


def _same(answers: Float[Array, "n q"], codes: Float[Array, " codes"]) -> Int[Array, "n n"]:
    same = np.zeros((len(answers), len(answers)), dtype=int)
    for code in codes:
        given = (answers == code).astype(int)
        same += given @ given.T
    return same


def _expected(answers: Float[Array, "n q"], codes: Float[Array, " codes"]) -> Float[Array, "n n"]:
    """Return how many questions each two items agree on, on average over all shuffles."""
    known = np.isfinite(answers).astype(float)
    n = known.sum(axis=0)
    pairs = np.zeros_like(n)
    for code in codes:
        given = (answers == code).sum(axis=0)
        pairs += given * (given - 1)
    chance = np.divide(pairs, n * (n - 1), out=np.zeros_like(n), where=n > 1)
    return (known * chance) @ known.T
