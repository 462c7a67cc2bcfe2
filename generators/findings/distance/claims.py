from collections.abc import Iterator

from generators.base.text import share
from generators.findings.distance.measure import DistanceMetrics, DistanceRow
from generators.findings.facts import EntityNumbers, Fact, Facts, attention_by_offset
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements


def largest(rows: list[DistanceRow]) -> DistanceRow:
    return max(rows, key=lambda row: row["share"])


@claim("head-by-distance-alone", holds=0.9, partly=0.7, form=share)
def by_distance_alone(m: DistanceMetrics) -> Evidence:
    row = largest(m["heads"])
    return Evidence(row["share"], {"row": row}, chance=m["largest_by_chance"], interval=(row["low"], row["high"]))


@claim("first-layer-blind", sense="at most", holds=0.05, form=share)
def first_layer_blind(m: DistanceMetrics) -> Evidence | Untested:
    if m["knows_positions"] is not False:
        return Untested("positions")
    row = largest([row for row in m["heads"] if row["layer"] == 0])
    by_chance = m["largest_first_by_chance"]["median"]
    return Evidence(row["share"], {"row": row}, baseline=by_chance, interval=(row["low"], row["high"]))


def heads(found: Measurements[DistanceMetrics], count: int | None) -> Iterator[Fact]:
    rows = found.metrics["heads"]
    if len(rows) != count:
        return
    shares = [row["share"] for row in rows]
    yield EntityNumbers("variance of scores explained by distance", shares, "distance-heads", "largest")
    offsets, profiles = found.arrays["offsets"], found.arrays["by_distance"]
    yield attention_by_offset("by distance alone", offsets, profiles, "distance-heads")


FACTS: Facts[DistanceMetrics] = Facts(entities={"head": heads})
