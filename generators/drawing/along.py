"""Effect sizes along a series of models: a panel for each claim, with intervals, threshold and chance.

And the verdicts along a training, all in one picture, below its loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from generators.base.verdicts import LOOKS
from generators.drawing import style

COLUMNS = 2
WIDTH = 4.0  # inches of a panel
LOSS_HEIGHT, LINE_HEIGHT = 1.8, 0.19  # inches: the loss panel; a line for one claim or model


@dataclass(frozen=True)
class EffectPoint:
    """One model's effect size with its interval, its verdict, and the limit that chance sets, where there is one."""

    place: int | str
    value: float
    interval: tuple[float, float] | None
    verdict: str
    limit: float | None


@dataclass(frozen=True)
class EffectPanel:
    """One claim along the series; `threshold` is where it holds, None where that differs between models."""

    title: str
    unit: str
    points: tuple[EffectPoint, ...]
    threshold: float | None


def draw_along(panels: Sequence[EffectPanel], places: Sequence[int | str], axis: str) -> Any:
    """Return a figure with a panel for each claim, in which models that can't test it have no point.

    Each model has a line, the first on top, with its place written before it.
    """
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = style.canvas(WIDTH * COLUMNS, (LINE_HEIGHT * len(places) + 0.75) * rows + 0.4)
    drawn = figure.subplots(rows, columns, squeeze=False)
    for index, (panel, ax) in enumerate(zip(panels, drawn.flat, strict=False)):
        _draw_lines(panel, places, ax, named=index % columns == 0)
        ax.set_title(panel.title, loc="left", fontsize=9)
    for ax in drawn.flat[len(panels) :]:
        ax.set_axis_off()
    figure.supylabel(axis, fontsize=9)
    return figure


def _draw_lines(panel: EffectPanel, places: Sequence[int | str], ax: Any, *, named: bool) -> None:
    line = {place: index for index, place in enumerate(places)}
    for point in panel.points:
        look = LOOKS[point.verdict or "untested"]
        y, colour = line[point.place], look.figure or style.INK
        if point.limit is not None:
            ax.plot(point.limit, y, "|", color=style.INK, alpha=0.35, ms=11, mew=4)
        if point.interval is not None:
            ax.plot(point.interval, [y, y], color=colour, lw=1.6, alpha=0.7)
        ax.plot(point.value, y, look.marker, color=colour, ms=5)
    if panel.threshold is not None:
        ax.axvline(panel.threshold, color=style.INK, lw=0.9, ls=(0, (4, 3)))
    ax.set_yticks(range(len(places)), [str(place) for place in places] if named else [], fontsize=8.5)
    ax.set_ylim(len(places) - 0.4, -0.6)  # first on top
    ax.set_xlabel(panel.unit, fontsize=8.5)


@dataclass(frozen=True)
class VerdictLine:
    """One claim along a training: its name, the step from which its last verdict stays, and verdicts by step."""

    name: str
    final_from: int
    verdicts: tuple[tuple[int, str], ...]


def draw_emergence(lines: Sequence[VerdictLine], losses: Sequence[tuple[int, float]], unit: str) -> Any:
    """Return a figure of all verdicts along a training, those that settle first on top, below the loss if known."""
    tall = LINE_HEIGHT * len(lines) + 0.6
    figure = style.canvas(WIDTH * COLUMNS, tall + (LOSS_HEIGHT if losses else 0))
    if losses:
        above, ax = figure.subplots(2, 1, sharex=True, height_ratios=(LOSS_HEIGHT, tall))
        above.plot(*np.array(losses).T, "o-", color=style.INK, ms=3, lw=1)
        above.set_ylabel(f"loss\n({unit})", fontsize=8.5)
    else:
        ax = figure.add_subplot()
    ordered = sorted(lines, key=lambda line: (line.final_from, list(LOOKS).index(line.verdicts[-1][1])))
    for y, line in enumerate(ordered):
        for kind, look in LOOKS.items():
            steps = [step for step, verdict in line.verdicts if verdict == kind and look.figure]
            ax.plot(steps, [y] * len(steps), look.marker, color=look.figure, ms=4)
        ax.plot(line.final_from, y, "|", color=style.INK, ms=11, mew=1.2)
    ax.set_yticks(range(len(ordered)), [line.name for line in ordered], fontsize=8.5)
    ax.set_ylim(len(ordered) - 0.4, -0.6)  # first on top
    ax.set_xlabel("training step")
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xlim(-0.3, 1.6 * max(1, *(step for line in lines for step, _ in line.verdicts)))
    return figure
