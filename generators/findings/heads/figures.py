from functools import partial

import numpy as np

from generators.drawing import style
from generators.drawing.head_grid import ByOffset, Grid, HeadGrid
from generators.findings.contract import Figure
from generators.findings.heads.measure import HeadsMetrics
from generators.findings.measured import Measurements, numbers

COLUMNS = (("by positions alone", "by_position_alone"), ("on text", "on_text"), ("in groups of ten", "in_groups"))


def figures(measured: Measurements[HeadsMetrics]) -> list[Figure]:
    rows, arrays = measured.metrics["heads"], measured.arrays
    shape = rows[-1]["layer"] + 1, rows[-1]["head"] + 1
    columns = [(title, numbers(rows, key).reshape(shape)) for title, key in COLUMNS]
    maps = [(title, values) for title, values in columns if np.isfinite(values).all()]
    draw = partial(style.head_maps, maps, 1.7 * len(maps) + 0.8, 2.1, "weight on the\nprevious token")

    def choose() -> HeadGrid:
        on_text_first = sorted((Grid(*each) for each in maps), key=lambda grid: grid.name != "on text")
        line = ByOffset("on text", arrays["offsets"], arrays["attention"][0])
        return HeadGrid("weight on the previous token", tuple(on_text_first), (line,))

    return [Figure("heads-on-text", "Every head's weight on the previous token", draw, choose)]
