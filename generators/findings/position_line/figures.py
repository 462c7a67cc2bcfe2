from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.interactive import Colouring, Curve, Rows
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, numbers
from generators.findings.position_line.measure import ChannelCost, LineRow, PositionLineMetrics

MOST_PANELS = 8
AXES = ("position", "component 1", "component 2")
LINES = (
    ("line_share", "variance in the first component"),
    ("r", "|r| of that component with position"),
    ("channel_share", "variance in the strongest channel"),
)


def figures(measured: Measurements[PositionLineMetrics]) -> list[Figure]:
    rows, scores = measured.metrics["layers"], upright(measured.arrays["scores"])
    return [
        Figure(
            "position-line",
            "The curve of positions, layer by layer",
            partial(draw_line, scores, rows),
            partial(turn_line, scores, rows),
        ),
        Figure("position-line-by-layer", "Straightness of the curve by layer", partial(draw_depth, rows)),
        Figure(
            "position-channel-cost", "Cost of fixing single channels", partial(draw_costs, measured.metrics["cost"])
        ),
    ]


def upright(scores: Float[Array, "layers m 3"]) -> Float[Array, "layers m 3"]:
    """Return scores whose first component rises with position, at a standard deviation of 1 in every layer."""
    m = scores.shape[1]
    rising = np.sign(np.einsum("lmc,m->lc", scores, np.arange(m) - (m - 1) / 2))
    spread = scores[:, :, :1].std(axis=1, keepdims=True)
    scaled = np.divide(scores, spread, out=np.zeros_like(scores), where=spread > 0)
    return scaled * np.where(rising == 0, 1, rising)[:, None]


def draw_line(scores: Float[Array, "layers m 3"], rows: list[LineRow]) -> Any:
    shown = sorted({round(i) for i in np.linspace(0, len(rows) - 1, min(len(rows), MOST_PANELS))})
    figure, axes = style.panels(len(shown), 4, (2.2, 1.9), (0.7, 0.6), sharex=True, sharey=True)
    positions = np.arange(1, scores.shape[1] + 1)
    for ax, layer in zip(axes, shown, strict=True):
        first = scores[layer, :, 0]
        ax.plot(positions, np.polyval(np.polyfit(positions, first, 1), positions), color=style.INK, lw=0.8, ls=":")
        dots = style.curve_2d(ax, positions, first, positions)
        ax.set_title(f"{_name(layer, len(rows))}: {rows[layer]['line_share']:.0%}")
    style.position_bar(dots, axes)
    figure.supxlabel("position (tokens)")
    figure.supylabel("first component")
    return figure


def turn_line(scores: Float[Array, "layers m 3"], rows: list[LineRow]) -> Curve:
    m = scores.shape[1]
    along = (np.arange(m) - (m - 1) / 2) / (m / 4)
    stages = tuple(
        Rows(
            _name(layer, len(rows)),
            1,
            np.column_stack([along, points[:, :2]]),
            numbers=_numbers(row),
        )
        for layer, (points, row) in enumerate(zip(scores, rows, strict=True))
    )
    return Curve(stages, (Colouring("position", np.arange(m + 1.0)),), slider="Layer", axes=AXES)


def _numbers(row: LineRow) -> tuple[tuple[str, str], ...]:
    shown = [
        ("variance in component 1", f"{row['line_share']:.1%} ({row['line_low']:.1%} to {row['line_high']:.1%})"),
        ("|r| with position", f"{row['r']:.3f}"),
        ("|r| with log position", f"{row['r_log']:.3f}"),
        ("strongest channel", f"{row['channel']}: {row['channel_share']:.1%} of the variance"),
    ]
    norms = (("ln1", row["ln1_gain"]), ("ln2", row["ln2_gain"]))
    gains = [f"{name} {gain:.2f}" for name, gain in norms if gain is not None]
    if gains:
        shown.append(("gain there / median", ", ".join(gains)))
    return tuple(shown)


def _name(layer: int, count: int) -> str:
    return "what comes out" if layer == count - 1 else f"into layer {layer}"


def draw_depth(rows: list[LineRow]) -> Any:
    figure, ax = style.plot(width=6.8, height=3.2)
    layers = [row["layer"] for row in rows]
    for index, (key, label) in enumerate(LINES):
        ax.plot(layers, numbers(rows, key), "os^"[index] + "-", ms=4, lw=1.2, color=style.COLOURS[index], label=label)
    ax.set_ylim(0, 1.02)
    ax.set_xticks(layers)
    ax.set_xlabel("layer that is given the stream; the last is what comes out")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_costs(cost: ChannelCost) -> Any:
    figure, ax = style.plot(width=6.2, height=3.0)
    others = np.sort(cost["others"])
    ax.plot(np.linspace(0, 100, len(others)), others, ".", ms=4, color=style.TOKEN_GREY, label="other channels")
    for index, (key, label) in enumerate(
        (("at_its_mean", "at its mean"), ("per_position", "at its mean per position"))
    ):
        found = cost[key]  # type: ignore[literal-required]
        ax.axhline(found["mean"], lw=1.4, color=style.COLOURS[index], label=f"channel {cost['channel']}, {label}")
        ax.axhspan(found["low"], found["high"], color=style.COLOURS[index], alpha=0.2, lw=0)
    ax.set(xlabel="other channels, cheapest first (%)", ylabel=f"cost ({cost['unit']})")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
