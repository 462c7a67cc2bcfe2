from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.findings.facts import EntityCount, EntityNote, EntityNumbers, Fact, Facts, FollowedCurve
from generators.findings.helix.measure import HelixMetrics
from generators.findings.measured import Measurements
from generators.maths.curve import principal_scores
from generators.maths.surrogates import smooth_curve

SEED = 0  # seed of the random curve shown for comparison


def positions(found: Measurements[HelixMetrics], count: int | None) -> Iterator[Fact]:
    yield EntityCount(found.metrics["n_positions"])
    yield EntityNumbers("norm of its embedding", found.arrays.get("norms"), "norms", "largest")
    if (steps := found.arrays.get("steps")) is not None:
        yield EntityNumbers("distance to the next position", dict(enumerate(steps.tolist())), "steps", "largest")
    for position in found.metrics["outlier_positions"]:
        yield EntityNote(position, "It is far from the curve of the other positions.")


def by_chance(metrics: HelixMetrics) -> Float[Array, "n 3"]:
    """Return the leading components of smoothed noise whose neighbors correlate as those of P do."""
    noise = smooth_curve(metrics["n_positions"], metrics["smoothness"]["width"], np.random.default_rng(SEED))
    return principal_scores(noise, 3).values


FACTS = Facts(
    entities={"position": positions},
    teaser="winding",
    by_chance=by_chance,
    curve=FollowedCurve("curve", "helix", "The curve of P", "The position embeddings in their own three components"),
)
