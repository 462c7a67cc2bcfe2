from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.drawing import labels, style
from generators.drawing.interactive import Group, Scatter
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, Table
from generators.findings.outliers.measure import OutliersMetrics
from generators.findings.token_cells import name

FEW = 100  # tokens of a cluster whose dots are drawn larger, so that they can be found


def figures(measured: Measurements[OutliersMetrics]) -> list[Figure]:
    arrays, extremes = measured.arrays, measured.tables["norms"]
    search = partial(search_norms, arrays, extremes, measured.metrics["n_tokens"])
    return [Figure("outlier-norms", "Norms of the token embeddings", partial(draw_norms, arrays, extremes), search)]


def draw_norms(arrays: dict[str, Array], extremes: Table) -> Any:
    figure, ax = style.plot()
    _dots(ax, arrays["ids"], arrays["norm"], style.COLOURS[0], "tokens", 2)
    if "member_ids" in arrays:
        size = 6 if len(arrays["member_ids"]) <= FEW else 3
        _dots(ax, arrays["member_ids"], arrays["member_norm"], style.COLOURS[1], "the cluster", size)
    points = np.column_stack([extremes.column("id"), extremes.column("norm")]).astype(float)
    ax.plot(*points.T, "o", ms=4, mfc="none", mec=style.INK, mew=0.6, label="largest and smallest")
    for mark in figure.legend(loc="outside upper right", ncols=3).legend_handles:
        mark.set_markersize(7)
    ax.set_xlim(ax.get_xlim())
    ax.set_ylim(ax.get_ylim())
    shown = [labels.label(name(row["id"], row["readable"])) for row in extremes.named()]
    labels.annotate(ax, points, shown, np.concatenate([line.get_xydata() for line in ax.lines]))
    ax.set(xlabel="token index", ylabel="norm of the token embedding")
    return figure


def search_norms(arrays: dict[str, Array], extremes: Table, n_tokens: int) -> Scatter:
    groups = [Group("tokens", 0, arrays["ids"], arrays["ids"], arrays["norm"], arrays.get("token_name"))]
    if "member_ids" in arrays:
        ids = arrays["member_ids"]
        groups.append(Group("the cluster", 1, ids, ids, arrays["member_norm"], arrays.get("member_name")))
    named = tuple((row["id"], row["norm"], name(row["id"], row["readable"])) for row in extremes.named())
    return Scatter("token index", "norm of the token embedding", tuple(groups), n_tokens, named=named)


def _dots(ax: Any, x: Array, y: Array, colour: str, label: str, size: float) -> None:
    ax.plot(x, y, ".", ms=size, alpha=0.7, mec="none", color=colour, label=label, rasterized=True)
