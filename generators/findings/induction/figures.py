from functools import partial
from typing import Any

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.induction.measure import InductionHeadRow, InductionMetrics
from generators.findings.measured import Measurements, numbers


def figures(measured: Measurements[InductionMetrics]) -> list[Figure]:
    return [Figure("induction-heads", "Heads that copy", partial(draw_heads, measured.metrics["heads"]))]


def draw_heads(rows: list[InductionHeadRow]) -> Any:
    shape = rows[-1]["layer"] + 1, rows[-1]["head"] + 1
    columns = (("what followed", "copying"), ("the same token", "duplicate"))
    maps = [(title, numbers(rows, key).reshape(shape)) for title, key in columns]
    return style.head_maps(maps, 6.4, 2.2, "attention, second half")
