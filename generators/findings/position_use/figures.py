from functools import partial
from typing import Any

import numpy as np

from generators.drawing import style
from generators.drawing.panels import Panel, Panels
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, numbers
from generators.findings.position_use.measure import Damage, PositionUseMetrics
from generators.findings.position_use.variants import Kind

# Kinds of change: what their axis is called, and one of them in words.
PANELS: tuple[tuple[Kind, str, str], ...] = (
    ("groups", "averaged in groups of", "averaged in groups of {:g}"),
    ("smoothed", "smoothed by a Gaussian of", "smoothed by a Gaussian of {:g}"),
    ("components", "principal components kept", "principal components kept: {:g}"),
    ("strongest", "strongest channels kept (%)", "strongest {:g} % of the channels kept"),
)
DAMAGE = "share of the cost of removing all"
LINEAR_UP_TO = 0.01  # the damage axis is linear below this, so it can show 0 and negative values


def figures(measured: Measurements[PositionUseMetrics]) -> list[Figure]:
    draw, point = (partial(way, measured.metrics["damages"]) for way in (draw_damage, point_at_damage))
    of_table = measured.metrics["positions"] == "table"
    changes = "averaging, smoothing or reducing" if of_table else "averaging"
    return [Figure("position-damage", f"Cost of {changes} positions", draw, point)]


def draw_damage(damages: list[Damage]) -> Any:
    panels = _panels(damages)
    figure, axes = style.panels(len(panels), len(panels), (2.3, 3.0), (0.9, 0.0), sharey=True)
    for ax, panel in zip(axes, panels, strict=True):
        amounts = panel.amounts
        spread = np.abs(np.stack([panel.low, panel.high]) - panel.values)
        ax.errorbar(amounts, panel.values, yerr=spread, fmt="o-", ms=4, lw=1.2, capsize=2, color=style.COLOURS[0])
        ax.axhline(1, color=style.INK, lw=1, ls=":")
        ax.axhline(0, color=style.INK, lw=0.8, alpha=0.6)
        ax.set_xscale("log")
        ax.set_xticks(amounts, [f"{amount:g}" for amount in amounts])
        ax.minorticks_off()
        ax.set_yscale("symlog", linthresh=LINEAR_UP_TO)
        ax.set_xlabel(panel.label)
    axes[0].set_ylabel(DAMAGE)
    return figure


def point_at_damage(damages: list[Damage]) -> Panels:
    return Panels("damage", DAMAGE, LINEAR_UP_TO, (0.0, 1.0), tuple(_panels(damages)))


def _panels(damages: list[Damage]) -> list[Panel]:
    found = []
    for kind, label, words in PANELS:
        rows = [row for row in damages if row["kind"] == kind and row["amount"] is not None]
        if not rows:
            continue
        amounts, values, low, high = (numbers(rows, key) for key in ("amount", "share", "share_low", "share_high"))
        names = tuple(words.format(amount) for amount in amounts)
        found.append(Panel(label, names, amounts, values, low, high))
    return found
