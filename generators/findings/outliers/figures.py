from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import labels, style
from generators.drawing.interactive import Group, Scatter
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, Table
from generators.findings.outliers.clump import CLOSE, spread
from generators.findings.outliers.measure import BINS, OutliersMetrics
from generators.findings.outliers.members import LABELLED
from generators.findings.outliers.untrained import Candidates
from generators.findings.token_cells import name


def figures(measured: Measurements[OutliersMetrics]) -> list[Figure]:
    metrics, tables, arrays = measured.metrics, measured.tables, measured.arrays
    n_tokens, channel, candidates = metrics["n_tokens"], metrics["frequency_channel"], metrics["candidates"]
    shown = [
        Figure(
            "outlier-norms",
            "Norms of the token embeddings",
            partial(draw_norms, arrays, tables["norms"]),
            partial(search_norms, arrays, tables["norms"], n_tokens),
        )
    ]
    if "channel" in arrays and channel is not None:
        draw = partial(draw_channel, arrays, channel)
        shown.append(Figure("outlier-channel", "Norm against the frequency channel", draw))
    if metrics["clump"]:
        shown.append(
            Figure(
                "clump",
                "The cluster and its surroundings",
                partial(draw_clump, arrays, tables["members"], tables["surroundings"]),
                partial(search_clump, arrays, tables["members"], tables["surroundings"], n_tokens),
            )
        )
    draw = partial(draw_nearest, arrays, metrics["typical_distance"])
    shown.append(Figure("nearest-neighbours", "Distance to the nearest neighbor", draw))
    if candidates:
        draw = partial(draw_indicator, arrays, candidates)
        shown.append(Figure("under-trained", "Which tokens look under-trained", draw))
    return shown


def draw_norms(arrays: dict[str, Array], extremes: Table) -> Any:
    figure, ax = style.plot(width=8.6, height=3.8)
    _dots(ax, arrays["ids"], arrays["norm"], style.COLOURS[0], "tokens", 2)
    if "member_ids" in arrays:
        _dots(ax, arrays["member_ids"], arrays["member_norm"], style.COLOURS[1], "the cluster", 3)
        ax.legend(markerscale=3)
    points = np.column_stack([extremes.column("id"), extremes.column("norm")]).astype(float)
    ax.plot(*points.T, "o", ms=4, mfc="none", mec=style.INK, mew=0.6)
    _name_points(ax, points, extremes.named())
    ax.set(xlabel="token index", ylabel="norm of the token embedding")
    return figure


def search_norms(arrays: dict[str, Array], extremes: Table, n_tokens: int) -> Scatter:
    groups = [Group("tokens", 0, arrays["ids"], arrays["ids"], arrays["norm"], arrays.get("token_name"))]
    if "member_ids" in arrays:
        ids = arrays["member_ids"]
        groups.append(Group("the cluster", 1, ids, ids, arrays["member_norm"], arrays.get("member_name")))
    named = tuple((row["id"], row["norm"], name(row["id"], row["readable"])) for row in extremes.named())
    return Scatter("token index", "norm of the token embedding", tuple(groups), n_tokens, named=named)


def draw_channel(arrays: dict[str, Array], channel: int) -> Any:
    figure, ax = style.plot(width=6.4, height=4.2)
    _dots(ax, arrays["channel"], arrays["norm"], style.COLOURS[0], "tokens", 3)
    if "member_channel" in arrays:
        _dots(ax, arrays["member_channel"], arrays["member_norm"], style.COLOURS[1], "the cluster", 4)
        ax.legend(markerscale=3)
    ax.set(xlabel=f"channel {channel}", ylabel="norm of the token embedding")
    return figure


def draw_clump(arrays: dict[str, Array], members: Table, surroundings: Table) -> Any:
    figure, ax = style.plot(width=8.6, height=5.6)
    plane = arrays["around_plane"]
    for colour, (part, label) in enumerate(_parts(arrays)):
        _dots(ax, plane[part, 0], plane[part, 1], style.COLOURS[colour], label, 7)
    rows, points = _named_around(arrays, members, surroundings)
    _name_points(ax, points, rows)
    ax.set(xlabel="component 1 of what is shown", ylabel="component 2")
    ax.legend(markerscale=2)
    return figure


def _named_around(
    arrays: dict[str, Array], members: Table, surroundings: Table
) -> tuple[list[dict[str, Any]], Float[Array, "named 2"]]:
    at = dict(zip(arrays["around_ids"].tolist(), arrays["around_plane"], strict=True))
    drawn = [row for row in members.named() if row["id"] in at]
    chosen = [drawn[i] for i in spread(len(drawn), LABELLED)]
    pairs = zip_longest(chosen, surroundings.named())
    rows = [row for pair in pairs for row in pair if row is not None]
    return rows, np.array([at[row["id"]] for row in rows])


def search_clump(arrays: dict[str, Array], members: Table, surroundings: Table, n_tokens: int) -> Scatter:
    names, groups = arrays.get("around_name"), []
    for colour, (part, label) in enumerate(_parts(arrays)):
        x, y = arrays["around_plane"][part].T
        groups.append(Group(label, colour, arrays["around_ids"][part], x, y, None if names is None else names[part]))
    rows, points = _named_around(arrays, members, surroundings)
    named = tuple(
        (float(x), float(y), name(row["id"], row["readable"])) for row, (x, y) in zip(rows, points, strict=True)
    )
    return Scatter("component 1 of what is shown", "component 2", tuple(groups), n_tokens, named=named)


def draw_nearest(arrays: dict[str, Array], typical: float) -> Any:
    figure, ax = style.plot(width=6.4, height=3.4)
    groups = [("nearest", "tokens spread over the vocabulary"), ("member_nearest", "the cluster")]
    edges = np.linspace(0, max(1e-9, *(float(arrays[key].max()) for key, _ in groups if key in arrays)), BINS)
    for index, (key, label) in enumerate(groups):
        if key in arrays:
            weights = np.full(len(arrays[key]), 1 / len(arrays[key]))
            ax.hist(arrays[key], edges, weights=weights, alpha=0.6, color=style.COLOURS[index], label=label)
    ax.axvline(CLOSE * typical, ls="--", lw=1, color=style.INK, alpha=0.7)
    ax.set(xlabel="distance to the nearest other token", ylabel="share of tokens")
    ax.legend()
    return figure


def draw_indicator(arrays: dict[str, Array], candidates: Candidates) -> Any:
    figure, ax = style.plot(width=6.4, height=3.4)
    ax.stairs(arrays["indicator_counts"], arrays["indicator_edges"], fill=True, color=style.COLOURS[0], alpha=0.8)
    ax.axvline(candidates["at_most"], ls="--", lw=1, color=style.INK, alpha=0.7)
    ax.set(yscale="log", xlabel=candidates["indicator"], ylabel="tokens")
    return figure


def _parts(arrays: dict[str, Array]) -> tuple[tuple[Array, str], tuple[Array, str]]:
    member = arrays["around_is_member"]
    return (~member, "nearest other tokens"), (member, "the cluster")


def _dots(ax: Any, x: Array, y: Array, colour: str, label: str, size: float) -> None:
    ax.plot(x, y, ".", ms=size, alpha=0.5, mec="none", color=colour, label=label, rasterized=True)


def _name_points(ax: Any, points: Float[Array, "n 2"], rows: list[dict[str, Any]]) -> None:
    ax.set_xlim(ax.get_xlim())
    ax.set_ylim(ax.get_ylim())
    shown = [labels.label(name(row["id"], row["readable"])) for row in rows]
    labels.annotate(ax, points, shown, np.concatenate([line.get_xydata() for line in ax.lines]))
