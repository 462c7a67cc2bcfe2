from functools import partial
from typing import Any

from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.head_grid import ByOffset, Grid, HeadGrid
from generators.findings.contract import Figure
from generators.findings.distance.measure import DistanceMetrics, DistanceRow
from generators.findings.measured import Measurements, numbers

LABEL = "variance of scores explained by distance"


def figures(measured: Measurements[DistanceMetrics]) -> list[Figure]:
    rows = measured.metrics["heads"]
    title, choose = "Share of each head's attention decided by distance", partial(choose_head, rows, measured.arrays)
    return [Figure("distance-heads", title, partial(draw_map, rows), choose)]


def _shares(rows: list[DistanceRow]) -> Float[Array, "layers heads"]:
    return numbers(rows, "share").reshape(rows[-1]["layer"] + 1, rows[-1]["head"] + 1)


def draw_map(rows: list[DistanceRow]) -> Any:
    return style.head_maps([("", _shares(rows))], 4.6, 2.4, "share of variance\nexplained by distance")


def choose_head(rows: list[DistanceRow], arrays: dict[str, Array]) -> HeadGrid:
    lines = (ByOffset("by distance alone", arrays["offsets"], arrays["by_distance"]),)
    return HeadGrid(LABEL, (Grid(LABEL, _shares(rows)),), lines)
