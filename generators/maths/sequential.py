"""Monte-Carlo tests whose draws end once the answer is known (Besag and Clifford 1991).

After ten draws that reach the observed value it is no rare one, and more draws would not make it one: p is 10 over
the number of draws. A value that fewer reach gets all draws.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.maths.resampling import NullSummary, Sense, chance

ENOUGH = 10  # draws that reach the value
MOST = 199  # draws
FEWEST_FOR_PERCENTILE = 99


def draws_until_known(draws: Iterable[float], value: float, sense: Sense = "at least") -> Float[Array, " draws"]:
    """Return draws up to the tenth that reaches `value`, or all of them; none is made that isn't returned."""
    found: list[float] = []
    reached = 0
    for draw in draws:
        found.append(draw)
        reached += draw >= value if sense == "at least" else draw <= value
        if reached == ENOUGH:
            break
    return np.array(found)


def chance_until_known(draws: Float[Array, " draws"], sense: Sense = "at least") -> NullSummary:
    """Return the median and the limit of draws that may have ended early.

    Where they are too few for a percentile, the limit is the most extreme draw. Ten draws reach the value then, so it
    doesn't pass.
    """
    if len(draws) >= FEWEST_FOR_PERCENTILE:
        return chance(draws, sense)
    extreme = draws.max() if sense == "at least" else draws.min()
    return NullSummary(float(np.median(draws)), float(extreme), len(draws), sense)
