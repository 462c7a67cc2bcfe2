from collections.abc import Iterator
from functools import partial
from typing import Any

from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.panels import Panel, Panels
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, numbers
from generators.findings.rotary_use.measure import RotaryUseMetrics, TurningRow, Which

DAMAGE = "damage (1: no pair turns)"
WHICH: tuple[Which, ...] = ("fastest", "slowest", "random")
LINEAR_UP_TO = 0.01


def figures(measured: Measurements[RotaryUseMetrics]) -> list[Figure]:
    draw, point = (partial(way, measured.metrics["damages"]) for way in (draw_damage, point_at_damage))
    return [Figure("rotary-damage", "Cost of rotating only some pairs", draw, point)]


def _columns(rows: list[TurningRow], which: Which) -> Iterator[Array]:
    chosen = sorted((row for row in rows if row["which"] == which), key=lambda row: row["turning"])
    return (numbers(chosen, column) for column in ("turning", "damage", "low", "high"))


def draw_damage(rows: list[TurningRow]) -> Any:
    figure, ax = style.plot()
    for index, which in enumerate(WHICH):
        turning, damage, low, high = _columns(rows, which)
        colour = style.TOKEN_GREY if which == "random" else style.COLOURS[index]
        ax.plot(turning, damage, "os^"[index] + "-", ms=4, lw=1.2, color=colour, label=f"{which} pairs turn")
        ax.fill_between(turning, low, high, color=colour, alpha=0.2, lw=0)
    for mark in (0, 1):
        ax.axhline(mark, color=style.INK, lw=0.8, ls=":", alpha=0.7)
    style.whole_numbers(ax.xaxis)
    ax.set(xlabel="pairs that turn, in every layer", ylabel=DAMAGE)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def point_at_damage(rows: list[TurningRow]) -> Panels:
    panels = []
    for which in WHICH:
        turning, damage, low, high = _columns(rows, which)
        names = tuple(f"{which} {count:.0f} turn" for count in turning)
        panels.append(Panel(f"{which} pairs that turn", names, turning, damage, low, high))
    return Panels("damage", DAMAGE, LINEAR_UP_TO, (0.0, 1.0), tuple(panels))
