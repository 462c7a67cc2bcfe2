from collections.abc import Iterator

from generators.base.text import share
from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts
from generators.findings.measured import Measurements
from generators.findings.rogue.claims import rogue_of
from generators.findings.rogue.measure import RogueMetrics


def channels(found: Measurements[RogueMetrics], count: int | None) -> Iterator[Fact]:
    shares, row = found.arrays.get("shares"), rogue_of(found.metrics)
    if shares is not None and shares.shape[1] == count:
        largest = [float(share) for share in shares.max(axis=0)]
        yield EntityNumbers("largest share of the mean cosine", largest, "rogue-shares", "largest")
    if row is not None:
        yield EntityNote(
            row["channel"],
            f"It accounts for {share(row['share'])} of the mean cosine of states at layer {row['layer']}, more than "
            "any other channel at any layer.",
            role="rogue",
            claim="rogue-channel",
        )


FACTS: Facts[RogueMetrics] = Facts(entities={"channel": channels})
