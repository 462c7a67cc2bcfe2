from generators.base.text import share
from generators.findings.distance.measure import DistanceMetrics, DistanceRow
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements
from generators.findings.nulls import chance

ALONE = {"holds": 0.9, "partly": 0.7}  # share of the variance of scores
BLIND = 0.05


def largest(rows: list[DistanceRow]) -> DistanceRow:
    return max(rows, key=lambda row: row["share"])


def _alone(measured: Measurements[DistanceMetrics]) -> Tested:
    row = largest(measured.metrics["heads"])
    return Tested(
        row["share"],
        f"Distance explains {share(row['share'])} of the variance of the scores of L{row['layer']}H{row['head']}, "
        f"the most of all heads; with offsets shuffled, {share(measured.metrics['largest_by_chance']['median'])}.",
        form=share,
        chance=chance(measured.metrics["largest_by_chance"]),
        interval=(row["low"], row["high"]),
    )


def _blind(measured: Measurements[DistanceMetrics]) -> Tested | Untested:
    if measured.metrics["knows_positions"] is not False:
        return Untested("This model receives positions.")
    row = largest([row for row in measured.metrics["heads"] if row["layer"] == 0])
    return Tested(
        row["share"],
        f"Without positions, distance explains at most {share(row['share'])} of the variance of scores in layer 0 "
        f"(head {row['head']}); with offsets shuffled, "
        f"{share(measured.metrics['largest_first_by_chance']['median'])}.",
        form=share,
        baseline=measured.metrics["largest_first_by_chance"]["median"],
        interval=(row["low"], row["high"]),
    )


RULES = (
    Rule(
        id="head-by-distance-alone",
        short="by distance alone",
        statement="Some head attends by distance alone.",
        value="largest share of the variance of a head's scores that one profile over distances explains",
        holds=ALONE["holds"],
        partly=ALONE["partly"],
        unit="of variance",
        test=_alone,
    ),
    Rule(
        id="first-layer-blind",
        short="layer 0 blind",
        statement="Without positions, the first layer hardly distinguishes distances.",
        value="the same, largest of layer 0",
        sense="at most",
        holds=BLIND,
        unit="of variance",
        test=_blind,
    ),
)
