from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.text import share, share_within, two
from generators.drawing import style
from generators.drawing.interactive import Colouring, Curve, Rows
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.position_line.measure import LineRow, PositionLineMetrics

MOST_PANELS = 4
AXES = ("position", "component 1", "component 2")


def figures(measured: Measurements[PositionLineMetrics]) -> list[Figure]:
    rows, scores = measured.metrics["layers"], upright(measured.arrays["scores"])
    first = int(measured.arrays.get("positions", [1])[0])
    draw, turn = partial(draw_line, scores, first, rows), partial(turn_line, scores, first, measured.metrics)
    return [Figure("position-line", "Position means against position, layer by layer", draw, turn)]


def upright(scores: Float[Array, "layers m 3"]) -> Float[Array, "layers m 3"]:
    """Return scores whose first component rises with position, at a standard deviation of 1 in every layer."""
    m = scores.shape[1]
    rising = np.sign(np.einsum("lmc,m->lc", scores, np.arange(m) - (m - 1) / 2))
    spread = scores[:, :, :1].std(axis=1, keepdims=True)
    scaled = np.divide(scores, spread, out=np.zeros_like(scores), where=spread > 0)
    return scaled * np.where(rising == 0, 1, rising)[:, None]


def draw_line(scores: Float[Array, "layers m 3"], first: int, rows: list[LineRow]) -> Any:
    shown = sorted({round(i) for i in np.linspace(0, len(rows) - 1, min(len(rows), MOST_PANELS))})
    figure, axes = style.panels(len(shown), MOST_PANELS, (2.3, 2.1), (0.7, 0.6), sharex=True, sharey=True)
    positions = first + np.arange(scores.shape[1])
    for ax, layer in zip(axes, shown, strict=True):
        leading = scores[layer, :, 0]
        ax.plot(positions, np.polyval(np.polyfit(positions, leading, 1), positions), color=style.INK, lw=0.8, ls=":")
        dots = style.curve_2d(ax, positions, leading, positions)
        ax.set_title(f"{_name(layer, len(rows))}: {share(rows[layer]['line_share'])}")
    style.position_bar(dots, axes)
    figure.supxlabel("position (tokens)")
    figure.supylabel("first component")
    return figure


def turn_line(scores: Float[Array, "layers m 3"], first: int, metrics: PositionLineMetrics) -> Curve:
    rows, m = metrics["layers"], scores.shape[1]
    along = (np.arange(m) - (m - 1) / 2) / (m / 4)
    stages = tuple(
        Rows(_name(layer, len(rows)), first, np.column_stack([along, points[:, :2]]), numbers=_numbers(row))
        for layer, (points, row) in enumerate(zip(scores, rows, strict=True))
    )
    by_position = Colouring("position", np.arange(float(first + m)))
    return Curve(stages, (by_position,), slider="Layer", axes=AXES, start=metrics["middle"])


def _numbers(row: LineRow) -> tuple[tuple[str, str], ...]:
    shown = [
        ("variance in component 1", share_within(row["line_share"], row["line_low"], row["line_high"])),
        ("|r| with position", two(row["r"])),
        ("|r| with log position", two(row["r_log"])),
        ("strongest channel", f"{row['channel']}: {share(row['channel_share'])} of the variance"),
    ]
    norms = (("ln1", row["ln1_gain"]), ("ln2", row["ln2_gain"]))
    gains = [f"{name} {two(gain)}" for name, gain in norms if gain is not None]
    if gains:
        shown.append(("gain there / median", ", ".join(gains)))
    return tuple(shown)


def _name(layer: int, count: int) -> str:
    return "what comes out" if layer == count - 1 else f"into layer {layer}"
