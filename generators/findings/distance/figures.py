from functools import partial

from generators.drawing import style
from generators.drawing.head_grid import ByOffset, Grid, HeadGrid
from generators.findings.contract import Figure
from generators.findings.distance.measure import DistanceMetrics
from generators.findings.measured import Measurements, numbers

LABEL = "variance of scores explained by distance"


def figures(measured: Measurements[DistanceMetrics]) -> list[Figure]:
    rows = measured.metrics["heads"]
    shares = numbers(rows, "share").reshape(rows[-1]["layer"] + 1, rows[-1]["head"] + 1)
    draw = partial(style.head_maps, [("", shares)], 4.6, 2.4, "share of variance\nexplained by distance")

    def choose() -> HeadGrid:
        line = ByOffset("by distance alone", measured.arrays["offsets"], measured.arrays["by_distance"])
        return HeadGrid(LABEL, (Grid(LABEL, shares),), (line,))

    return [Figure("distance-heads", "Share of each head's attention decided by distance", draw, choose)]
