from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.text import share_within, two
from generators.drawing import style
from generators.drawing.interactive import Colouring, Curve, Rows
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.stream.measure import StageRow, StreamMetrics

MOST_PANELS = 4


def figures(measured: Measurements[StreamMetrics]) -> list[Figure]:
    curves, first = same_signs(measured.arrays["curves"]), int(measured.arrays.get("positions", [1])[0])
    draw, turn = partial(draw_curves, curves, first), partial(turn_curves, curves, first, measured.metrics)
    return [Figure("stream-curves", "The curve of positions, layer by layer", draw, turn)]


def draw_curves(curves: Float[Array, "layers m 3"], first: int) -> Any:
    shown = sorted({round(i) for i in np.linspace(0, len(curves) - 1, min(len(curves), MOST_PANELS))})
    figure, axes = style.panels(len(shown), MOST_PANELS, (2.4, 2.6), (0.9, 0.0), subplot_kw={"projection": "3d"})
    for ax, layer in zip(axes, shown, strict=True):
        dots = style.curve_3d(ax, curves[layer], first + np.arange(curves.shape[1]), with_bar=False)
        ax.set_title(_name(layer, len(curves)))
    style.position_bar(dots, axes, shrink=0.7, aspect=30)
    return figure


def same_signs(curves: Float[Array, "layers m 3"]) -> Float[Array, "layers m 3"]:
    """Return the curves with every component's sign chosen so that it goes with that of the layer before.

    The sign of a principal component means nothing; from layer to layer it would turn the curve over.
    """
    turned = [curves[0]]
    for curve in curves[1:]:
        together = np.sum(curve * turned[-1], axis=0)
        turned.append(np.where(together < 0, -curve, curve))
    return np.stack(turned)


def turn_curves(curves: Float[Array, "layers m 3"], first: int, metrics: StreamMetrics) -> Curve:
    stages = tuple(
        Rows(_name(layer, len(curves)), first, curve, numbers=_numbers(row))
        for layer, (curve, row) in enumerate(zip(curves, metrics["layers"], strict=True))
    )
    by_position = Colouring("position", np.arange(float(first + curves.shape[1])))
    return Curve(stages, (by_position,), slider="Layer", start=metrics["middle"])


def _numbers(row: StageRow) -> tuple[tuple[str, str], ...]:
    shown = [
        ("variance between positions", share_within(row["share"], row["share_low"], row["share_high"])),
        ("EV3 of the curve", share_within(row["ev3"], row["ev3_low"], row["ev3_high"])),
        ("position decoded (R²)", two(row["decoded"])),
    ]
    if row["in_P"] is not None:
        shown.append(("curve's energy in P's directions", two(row["in_P"])))
    if row["reliability"] is not None:
        shown.append(("correlation of both halves", two(row["reliability"])))
    return tuple(shown)


def _name(layer: int, count: int) -> str:
    return "what comes out" if layer == count - 1 else f"into layer {layer}"
