from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.interactive import Group, Scatter
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.zero_layer.measure import GROUPS, ZeroLayerMetrics


def figures(measured: Measurements[ZeroLayerMetrics]) -> list[Figure]:
    metrics, arrays = measured.metrics, measured.arrays
    if not metrics["exceptions"]:
        return []
    title = "Norms of tokens and of the tokens that they return without layers"
    search = partial(search_norms, arrays, metrics["n_tokens"])
    return [Figure("zero-layer-norms", title, partial(draw_norms, arrays), search)]


def search_norms(arrays: dict[str, Array], n_tokens: int) -> Scatter:
    x, y, ids = arrays["norm"], arrays["best_norm"], arrays["ids"]
    if "group" in arrays:
        pairs = zip(arrays["token_name"], arrays["best_name"], strict=True)
        names = np.array([f"{token} yields {best}" for token, best in pairs], np.str_)
        parts = [(name, arrays["group"] == i) for i, name in enumerate(GROUPS)]
        groups = [Group(name, i, ids[p], x[p], y[p], names[p]) for i, (name, p) in enumerate(parts)]
    else:
        groups = [Group("exceptions", 0, ids, x, y)]
    x_label, y_label = "norm of the token's input embedding", "norm of the returned token"
    return Scatter(x_label, y_label, tuple(groups), n_tokens, diagonal=True)


def draw_norms(arrays: dict[str, Array]) -> Any:
    figure, ax = style.plot(width=6.4, height=4.6)
    x, y = arrays["norm"], arrays["best_norm"]
    group = arrays.get("group", np.zeros(len(x)))
    for i, (name, colour, marker) in enumerate(zip(GROUPS, style.COLOURS, "os^Dvp", strict=False)):
        if (chosen := group == i).any():
            look = {"ms": 4, "alpha": 0.7, "mec": "none", "color": colour, "rasterized": True}
            ax.plot(x[chosen], y[chosen], marker, label=f"{name}, {chosen.sum()}", **look)
    ends = min(x.min(), y.min()), max(x.max(), y.max())
    ax.plot(ends, ends, "--", color=style.INK, lw=0.8, alpha=0.6)
    ax.set(xlabel="norm of the token's input embedding", ylabel="norm of the returned token")
    if "group" in arrays:
        ax.legend()
    return figure
