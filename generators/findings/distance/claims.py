from generators.base.text import share
from generators.findings.distance.measure import DistanceMetrics, DistanceRow
from generators.findings.judging import Evidence, Untested, claim


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


RULES = (by_distance_alone, first_layer_blind)
