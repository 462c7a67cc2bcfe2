"""Effect sizes along a series of models: a panel for each claim, with intervals, threshold and chance.

And the verdicts along a training, all in one picture, below its loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from generators.drawing import style

COLUMNS = 2
WIDTH, HEIGHT = 4.0, 2.1  # inches, of a panel
VERDICT_COLOURS = {"holds": style.COLOURS[2], "partly": style.COLOURS[4], "fails": style.COLOURS[1]}
MARKERS = {"holds": "o", "partly": "D", "fails": "x"}
LOSS_HEIGHT, LINE_HEIGHT = 1.8, 0.19  # inches, of the loss and of a claim below it


@dataclass(frozen=True)
class Point:
    """One model's effect size with its interval, its verdict, and the limit that chance sets, where there is one."""

    place: int | str
    value: float
    interval: tuple[float, float] | None
    verdict: str
    limit: float | None


@dataclass(frozen=True)
class Panel:
    """One claim along the series; `threshold` is where it holds, None where that differs between models."""

    title: str
    unit: str
    points: tuple[Point, ...]
    threshold: float | None


def draw_along(panels: Sequence[Panel], places: Sequence[int | str], axis: str) -> Any:
    """Return a figure with a panel for each claim.

    Args:
        panels: what is drawn; models in which a claim is untested have no point.
        places: of all models of the series, in order. Numbers are steps of a training, on a logarithmic axis that
            begins at 0.
        axis: what the places are.
    """
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = style.canvas(WIDTH * COLUMNS, HEIGHT * rows + 0.4)
    drawn = figure.subplots(rows, columns, squeeze=False)
    for panel, ax in zip(panels, drawn.flat, strict=False):
        _draw(panel, places, ax)
    for ax in drawn.flat[len(panels) :]:
        ax.set_axis_off()
    for ax in drawn[-1]:
        ax.set_xlabel(axis)
    return figure


def _draw(panel: Panel, places: Sequence[int | str], ax: Any) -> None:
    steps = all(isinstance(place, int) for place in places)
    at = {place: float(place) if steps else float(index) for index, place in enumerate(places)}
    if steps:
        _along_steps(ax, max(at.values()))
        ax.plot(
            [at[p.place] for p in panel.points], [p.value for p in panel.points], color=style.INK, lw=0.7, alpha=0.5
        )
    else:
        ax.set_xticks(list(at.values()), [str(place) for place in places], rotation=35, ha="right", fontsize=8)
        ax.set_xlim(-0.5, len(places) - 0.5)
    limits = [(at[p.place], p.limit) for p in panel.points if p.limit is not None]
    if limits:
        ax.plot(*np.array(limits).T, "_" if not steps else "-", color=style.INK, alpha=0.35, ms=12, lw=4)
    if panel.threshold is not None:
        ax.axhline(panel.threshold, color=style.INK, lw=0.9, ls=(0, (4, 3)))
    for point in panel.points:
        colour = VERDICT_COLOURS.get(point.verdict, style.INK)
        if point.interval is not None:
            ax.plot([at[point.place]] * 2, point.interval, color=colour, lw=1.6, alpha=0.7)
        ax.plot(at[point.place], point.value, MARKERS.get(point.verdict, "o"), color=colour, ms=5)
    ax.set_title(panel.title, loc="left", fontsize=9)
    ax.set_ylabel(panel.unit, fontsize=8)


@dataclass(frozen=True)
class Line:
    """One claim along a training: its name, the step from which its last verdict stays, and verdicts by step."""

    name: str
    settled: int
    verdicts: tuple[tuple[int, str], ...]


def draw_emergence(lines: Sequence[Line], losses: Sequence[tuple[int, float]], unit: str) -> Any:
    """Return a figure of all verdicts along a training, those that settle first on top, below the loss if known.

    Args:
        lines: what is drawn of each claim; at least one.
        losses: the loss in `unit` at steps, which may be none.
        unit: of the loss.
    """
    tall = LINE_HEIGHT * len(lines) + 0.6
    figure = style.canvas(WIDTH * COLUMNS, tall + (LOSS_HEIGHT if losses else 0))
    if losses:
        above, ax = figure.subplots(2, 1, sharex=True, height_ratios=(LOSS_HEIGHT, tall))
        above.plot(*np.array(losses).T, "o-", color=style.INK, ms=3, lw=1)
        above.set_ylabel(f"loss\n({unit})", fontsize=8)
    else:
        ax = figure.add_subplot()
    ordered = sorted(lines, key=lambda line: line.settled)
    for y, line in enumerate(ordered):
        for kind, marker in MARKERS.items():
            steps = [step for step, verdict in line.verdicts if verdict == kind]
            ax.plot(steps, [y] * len(steps), marker, color=VERDICT_COLOURS[kind], ms=4)
        ax.plot(line.settled, y, "|", color=style.INK, ms=11, mew=1.2)
    ax.set_yticks(range(len(ordered)), [line.name for line in ordered], fontsize=8)
    ax.set_ylim(len(ordered) - 0.4, -0.6)  # from above
    ax.set_xlabel("training step")
    _along_steps(ax, max([step for line in lines for step, _ in line.verdicts]))
    return figure


def _along_steps(ax: Any, last: float) -> None:
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xlim(-0.3, 1.6 * max(last, 1))
