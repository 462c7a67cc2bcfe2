from functools import partial

import numpy as np
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.head_grid import ByOffset, Grid, HeadGrid
from generators.findings.contract import Figure
from generators.findings.heads.measure import HeadRow, HeadsMetrics
from generators.findings.measured import Measurements, numbers

COLUMNS = (("by positions alone", "by_position_alone"), ("on text", "on_text"), ("in groups of ten", "in_groups"))


def figures(measured: Measurements[HeadsMetrics]) -> list[Figure]:
    grids = _grids(measured.metrics["heads"])
    maps = [(grid.name, grid.values) for grid in grids]
    draw = partial(style.head_maps, maps, 2.5 * len(maps) + 1.0, 2.1, "weight on the\nprevious token")
    choose = partial(choose_head, grids, measured.arrays)
    return [Figure("heads-on-text", "Every head's weight on the previous token", draw, choose)]


def _grids(rows: list[HeadRow]) -> list[Grid]:
    shape = rows[-1]["layer"] + 1, rows[-1]["head"] + 1
    columns = [(title, numbers(rows, key)) for title, key in COLUMNS]
    return [Grid(title, values.reshape(shape)) for title, values in columns if np.isfinite(values).all()]


def choose_head(grids: list[Grid], arrays: dict[str, Array]) -> HeadGrid:
    on_text_first = sorted(grids, key=lambda grid: grid.name != "on text")
    lines = (ByOffset("on text", arrays["offsets"], arrays["attention"][0]),)
    return HeadGrid("weight on the previous token", tuple(on_text_first), lines)
