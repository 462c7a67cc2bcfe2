from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.gains.measure import NORMS, GainsMetrics, Norm
from generators.findings.measured import Measurements
from generators.maths.channels import ConsistentChannel

COLUMNS = 4
MOST_PANELS = 24  # deeper models show evenly spaced layers
BEFORE = {"ln1": "attention", "ln2": "the MLP"}


def figures(measured: Measurements[GainsMetrics]) -> list[Figure]:
    metrics, arrays = measured.metrics, measured.arrays
    shown = [
        Figure(
            f"gains-{norm}",
            f"Gains of {norm}, the norm before {BEFORE[norm]}",
            partial(draw_gains, arrays, norm, metrics["consistent_channel"][norm]),
        )
        for norm in NORMS
        if f"{norm}_gain" in arrays
    ]
    if _position_std(arrays) is not None:
        draw = partial(draw_correlations, metrics["correlation"])
        shown.append(Figure("gain-correlation", "Which norms turn positions down", draw))
    return shown


def _position_std(arrays: dict[str, Array]) -> Array | None:
    std = arrays.get("position_std")
    return None if std is None or not (std > 0).any() else std  # NaN for a single position


def layers_drawn(count: int) -> Int[Array, " drawn"]:
    return np.linspace(0, count - 1, min(count, MOST_PANELS)).round().astype(int)


def draw_gains(arrays: dict[str, Array], norm: Norm, found: ConsistentChannel | None) -> Any:
    from matplotlib.ticker import NullFormatter

    gains, layers = arrays[f"{norm}_gain"], arrays[f"{norm}_layers"]
    drawn = layers_drawn(len(gains))
    gains, layers = gains[drawn], layers[drawn]
    figure, axes = style.panels(len(gains), COLUMNS, (2.05, 1.8), (0.6, 0.5), sharex=True, sharey=True)
    std = _position_std(arrays)
    x = np.arange(gains.shape[1]) if std is None else np.where(std > 0, std, np.nan)
    for panel, ax in enumerate(axes):
        ax.plot(x, gains[panel], ".", ms=2.5, alpha=0.6, color=style.COLOURS[0], rasterized=True)
        if found and len(found["tied"]) == 1:
            channel = found["channel"]
            ax.plot(x[channel], gains[panel][channel], "o", ms=8, mfc="none", color=style.COLOURS[1])
        if std is not None:
            ax.set_xscale("log")
        if norm == "ln1":
            ax.set_yscale("log")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.tick_params(labelbottom=panel + COLUMNS >= len(gains))
        ax.set_title(f"layer {layers[panel]}")
    figure.supxlabel("position std of the channel" if std is not None else "channel")
    figure.supylabel("|gain|")
    return figure


def draw_correlations(correlation: dict[Norm, dict[str, float | None]]) -> Any:
    figure, ax = style.plot(width=6.4, height=3.2)
    for index, norm in enumerate(NORMS):
        layers = [int(layer) for layer, value in correlation[norm].items() if value is not None]
        values = [value for value in correlation[norm].values() if value is not None]
        ax.plot(layers, values, "os"[index] + "-", ms=5, lw=1.2, color=style.COLOURS[index], label=norm)
    ax.axhline(0, color=style.INK, lw=0.8, alpha=0.6)
    ax.set(ylim=(-1, 1), xlabel="layer", ylabel="correlation, log gain with log position std")
    ax.legend()
    return figure
