from functools import partial
from typing import Any

import numpy as np

from generators.drawing import style
from generators.findings.anchor.claims import FLOAT16
from generators.findings.anchor.measure import AnchorMetrics
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, numbers

STEEP = 1.5  # times the size one layer before, or after: a number goes beside such a line, not above it


def figures(measured: Measurements[AnchorMetrics]) -> list[Figure]:
    rows = measured.metrics["heads"]
    values = numbers(rows, "on_first").reshape(rows[-1]["layer"] + 1, rows[-1]["head"] + 1)
    heads = partial(style.head_maps, [("", values)], 4.6, 2.4, "attention to\nthe first token")
    return [
        Figure("anchor-heads", "Attention to the first token", heads),
        Figure("anchor-largest", "The largest activations", partial(draw_largest, measured.metrics)),
    ]


def draw_largest(metrics: AnchorMetrics) -> Any:
    figure, ax = style.plot()
    rows = metrics["largest"]
    layers, sizes = [row["layer"] for row in rows], numbers(rows, "size")
    medians = sizes / np.maximum(numbers(rows, "over_median"), 1e-12)
    ax.axhline(FLOAT16, color=style.COLOURS[1], ls="--", label="largest float16")
    ax.plot(layers, sizes, "o-", ms=4, color=style.COLOURS[0], label="largest (the number\nis its channel)")
    others = numbers(metrics["stages"], "others_median") * medians
    ax.plot(layers, others, "s-", ms=4, color=style.TOKEN_GREY, label="largest at a typical\nlater position, mean")
    ax.plot(layers, medians, ":", color=style.INK, label="median")
    for i, row in enumerate(rows):
        if i and row["channel"] == rows[i - 1]["channel"]:
            continue
        rising, falling = any(sizes[i + 1 : i + 2] > STEEP * sizes[i]), i and sizes[i - 1] > STEEP * sizes[i]
        x, side = (-5, "right") if rising else (5, "left") if falling else (0, "center")
        place = (row["layer"], row["size"])
        ax.annotate(str(row["channel"]), place, xytext=(x, 4), textcoords="offset points", ha=side, fontsize=8.5)
    ax.margins(x=0.11)
    ax.set_yscale("log")
    style.whole_numbers(ax.xaxis)
    ax.set(xlabel="input of layer (last: output of the model)", ylabel="|activation|")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
