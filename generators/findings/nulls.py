from collections.abc import Iterable

from jaxtyping import Float, Real
from numpy import ndarray as Array

from generators.findings.measured import Interval, StoredChance, row_of
from generators.maths import resampling, sequential
from generators.maths.resampling import Sense

DRAWS = 200  # draws of a null
RESAMPLES = 400  # resamples for an interval


def drawn(null: str, values: Real[Array, " draws"], sense: Sense = "at least") -> StoredChance:
    """Return draws under a null as they are stored among metrics; `null` says what was drawn, in the plural."""
    return stored(null, resampling.chance(values, sense))


def drawn_until_known(null: str, values: Float[Array, " draws"], sense: Sense = "at least") -> StoredChance:
    """Return draws that ended once the answer was known (`maths/sequential.py`) as they are stored."""
    return stored(null, sequential.chance_until_known(values, sense))


def stored(null: str, found: resampling.NullSummary) -> StoredChance:
    return row_of(StoredChance, found, null=null)


def strictest(nulls: Iterable[StoredChance], sense: Sense = "at least") -> StoredChance | None:
    """Return what the null gives whose limit is hardest to pass (beyond it is beyond each), None without any."""
    sign = 1 if sense == "at least" else -1
    return max(nulls, key=lambda null: sign * null["limit"], default=None)


def interval(values: Float[Array, " draws"]) -> Interval:
    return list(resampling.interval(values))
