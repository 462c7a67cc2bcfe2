from functools import partial
from typing import Any

from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.head_grid import ByOffset, Grid, HeadGrid
from generators.findings.contract import Figure
from generators.findings.distance.measure import DistanceMetrics, DistanceRow
from generators.findings.measured import Measurements, numbers

MOST_DRAWN = 8
LABEL = "variance of scores explained by distance"


def figures(measured: Measurements[DistanceMetrics]) -> list[Figure]:
    rows, arrays = measured.metrics["heads"], measured.arrays
    return [
        Figure(
            "distance-heads",
            "Share of each head's attention decided by distance",
            partial(draw_map, rows),
            partial(choose_head, rows, arrays),
        ),
        Figure("distance-profiles", "Attention by distance alone", partial(draw_profiles, rows, arrays)),
    ]


def _shares(rows: list[DistanceRow]) -> Float[Array, "layers heads"]:
    return numbers(rows, "share").reshape(rows[-1]["layer"] + 1, rows[-1]["head"] + 1)


def draw_map(rows: list[DistanceRow]) -> Any:
    return style.head_maps([("", _shares(rows))], 4.6, 2.4, "share of variance\nexplained by distance")


def choose_head(rows: list[DistanceRow], arrays: dict[str, Array]) -> HeadGrid:
    lines = (ByOffset("by distance alone", arrays["offsets"], arrays["by_distance"]),)
    return HeadGrid(LABEL, (Grid(LABEL, _shares(rows)),), lines)


def draw_profiles(rows: list[DistanceRow], arrays: dict[str, Array]) -> Any:
    chosen = sorted(range(len(rows)), key=lambda i: -rows[i]["share"])[:MOST_DRAWN]
    figure, axes = style.panels(len(chosen), 4, (2.0, 1.4), (0.6, 0.6), sharex=True)
    for ax, index in zip(axes, chosen, strict=True):
        ax.plot(arrays["offsets"], arrays["by_distance"][index], lw=1.2, color=style.COLOURS[0])
        ax.set_ylim(bottom=0)
        ax.set_title(f"L{rows[index]['layer']}H{rows[index]['head']}: {rows[index]['share']:.0%}")
    figure.supxlabel("offset: tokens back from the query")
    figure.supylabel("attention")
    return figure
