"""What the helix says of positions, and what other pages take from it."""

from collections.abc import Iterator

from generators.findings.facts import EntityCount, EntityNote, EntityNumbers, Fact, Facts, FollowedCurve
from generators.findings.helix.measure import HelixMetrics
from generators.findings.measured import Measurements


def positions(found: Measurements[HelixMetrics], count: int | None) -> Iterator[Fact]:
    """Yield how long each position's embedding is, and how far it lies from the next."""
    yield EntityCount(found.metrics["n_positions"])
    yield EntityNumbers("norm of its embedding", found.arrays.get("norms"), "norms", "largest")
    if (steps := found.arrays.get("steps")) is not None:
        yield EntityNumbers("distance to the next position", dict(enumerate(steps.tolist())), "steps", "largest")
    for position in found.metrics["outlier_positions"]:
        yield EntityNote(position, "It lies apart from the curve of the others.")


FACTS = Facts(
    entities={"position": positions},
    columns={
        "explained_variance_3d": "share of variance in three components",
        "explained_variance_ratio": "share of variance",
        "gain": "gain over standing still",
        "k": "tokens back",
        "period_tokens": "tokens a cycle",
        "r2_affine": "R², affine map",
        "r2_identity": "R², standing still",
        "r2_rotation": "R², rotation",
        "r2_translation": "R², translation",
        "tokens_per_turn": "tokens per turn, mean over the run",
        "radius_cv": "std of the radius over its mean",
        "translation_gain": "gain of a translation",
    },
    teaser="winding",
    curve=FollowedCurve("curve", "helix", "The curve of P", "The position embeddings in their own three components"),
)
