from functools import partial
from typing import Any

from generators.drawing import style
from generators.findings.blurred.measure import BlurredHeadRow, BlurredMetrics
from generators.findings.contract import Figure
from generators.findings.measured import Measurements


def figures(measured: Measurements[BlurredMetrics]) -> list[Figure]:
    metrics = measured.metrics
    draw = partial(draw_heads, metrics["heads"], metrics["uniform"], metrics["group"])
    return [Figure("blurred-heads", "Attention to the previous token by positions alone, exact and blurred", draw)]


def draw_heads(rows: list[BlurredHeadRow], uniform: float, group: int) -> Any:
    figure, ax = style.plot()
    ax.axline((0, 0), slope=1, linestyle="--", linewidth=1, alpha=0.6)
    for value in (ax.axvline, ax.axhline):
        value(uniform, linewidth=0.8, linestyle=":", alpha=0.6)
    ax.scatter([row["as_they_are"] for row in rows], [row["in_groups"] for row in rows], s=18)
    ax.set(xlabel="weight on the previous token, positions as they are", ylabel=f"averaged in groups of {group}")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    return figure
