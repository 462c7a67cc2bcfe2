"""Damage against how much positions were changed, and the curve as the model then sees it."""

from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.interactive import Colouring, Curve, Rows
from generators.findings.contract import Figure, Measurements
from generators.findings.position_use.measure import Damage, Metrics
from generators.findings.position_use.variants import Kind

PANELS: tuple[tuple[Kind, str], ...] = (
    ("groups", "averaged in groups of"),
    ("smoothed", "smoothed by a Gaussian of"),
    ("components", "principal components kept"),
    ("strongest", "strongest channels kept (%)"),
)
LINEAR_UP_TO = 0.01  # below it the axis of damage is linear, so that 0 and less can stand on it


def figures(measured: Measurements[Metrics]) -> list[Figure]:
    """Return the damage of every change, and for tables the curve that the model sees."""
    shown = [
        Figure(
            "position-damage",
            "What coarser, smoother and fewer positions cost",
            partial(draw_damage, measured.metrics["damages"]),
        )
    ]
    if "curves" in measured.arrays:
        shown.append(
            Figure(
                "position-curves",
                "The curve of positions as the model then sees it",
                partial(draw_curves, measured.arrays),
                partial(turn_curves, measured.arrays),
            )
        )
    return shown


def draw_damage(damages: list[Damage]) -> Any:
    """Draw one panel per kind of change, with 95 % intervals; a dotted line is where positions are removed."""
    panels = [(kind, label, [row for row in damages if row["kind"] == kind]) for kind, label in PANELS]
    panels = [panel for panel in panels if panel[2]]
    figure = style.canvas(width=2.3 * len(panels) + 0.9, height=3.0)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, (_, label, rows) in zip(axes, panels, strict=True):
        amounts = [row["amount"] for row in rows]
        values = np.array([row["damage"] for row in rows])
        spread = np.abs(np.array([[row["low"] for row in rows], [row["high"] for row in rows]]) - values)
        ax.errorbar(amounts, values, yerr=spread, fmt="o-", ms=4, lw=1.2, capsize=2, color=style.COLOURS[0])
        ax.axhline(1, color=style.INK, lw=1, ls=":")
        ax.axhline(0, color=style.INK, lw=0.8, alpha=0.6)
        ax.set_xscale("log")
        ax.set_xticks(amounts, [f"{amount:g}" for amount in amounts])
        ax.minorticks_off()
        ax.set_yscale("symlog", linthresh=LINEAR_UP_TO)
        ax.set_xlabel(label)
    axes[0].set_ylabel("damage (1: no positions at all)")
    return figure


def draw_curves(arrays: dict[str, Array]) -> Any:
    """Draw the curve as it is and as the changed models see it, in the same three components."""
    curves, names = arrays["curves"], arrays["curve_names"]
    figure = style.canvas(width=3.0 * len(curves), height=3.6)
    positions = np.arange(1, curves.shape[1] + 1)
    for index, (curve, name) in enumerate(zip(curves, names, strict=True)):
        ax = figure.add_subplot(1, len(curves), index + 1, projection="3d")
        style.curve_3d(ax, curve, positions)
        ax.set_title(str(name))
    return figure


def turn_curves(arrays: dict[str, Array]) -> Curve:
    """Return the same curves to be turned."""
    rows = tuple(
        Rows(str(name), 1, curve) for curve, name in zip(arrays["curves"], arrays["curve_names"], strict=True)
    )
    return Curve(rows, (Colouring("position", np.arange(arrays["curves"].shape[1] + 1.0)),))
