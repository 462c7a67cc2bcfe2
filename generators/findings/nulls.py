from jaxtyping import Float, Real
from numpy import ndarray as Array

from generators.findings.measured import Interval, StoredChance
from generators.maths import resampling
from generators.maths.resampling import Sense

DRAWS = 200  # draws of a null
RESAMPLES = 400  # resamples for an interval


def drawn(null: str, values: Real[Array, " draws"], sense: Sense = "at least") -> StoredChance:
    """Return draws under a null as they are stored among metrics; `null` says what was drawn, in the plural."""
    found = resampling.chance(values, sense)
    return {"null": null, "median": found.median, "limit": found.limit, "draws": found.draws}


def interval(values: Float[Array, " draws"]) -> Interval:
    return list(resampling.interval(values))
