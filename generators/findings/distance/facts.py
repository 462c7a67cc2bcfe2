from collections.abc import Iterator

from generators.findings.distance.measure import DistanceMetrics
from generators.findings.facts import EntityLines, EntityNumbers, Fact, Facts
from generators.findings.measured import Measurements


def heads(found: Measurements[DistanceMetrics], count: int | None) -> Iterator[Fact]:
    rows = found.metrics["heads"]
    if len(rows) != count:
        return
    shares = [row["share"] for row in rows]
    yield EntityNumbers("variance of scores explained by distance", shares, "distance-heads", "largest")
    offsets, profiles = found.arrays.get("offsets"), found.arrays.get("by_distance")
    if offsets is not None and profiles is not None:
        yield EntityLines(
            drawing="Mean attention by offset",
            across="offset: tokens back from the query",
            says="by distance alone",
            at=offsets,
            values=profiles,
            figure="distance-heads",
        )


FACTS: Facts[DistanceMetrics] = Facts(entities={"head": heads})
