from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.interactive import Group, Scatter
from generators.drawing.labels import label
from generators.findings import token_cells
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.zero_layer.measure import GROUPS, ZeroLayerMetrics
from generators.findings.zero_layer.variants import YieldVariant

MOST_PAIRS = 32  # pairs drawn
PLAIN_GROUPS = ("leading space", "byte or unprintable")  # too many and too uniform to draw pair by pair


def figures(measured: Measurements[ZeroLayerMetrics]) -> list[Figure]:
    return [*_exceptions(measured), *_variants(measured.metrics["variants"])]


def _variants(found: list[YieldVariant]) -> list[Figure]:
    ways = ["With the final norm"] if any(one["final_norm"] for one in found) else []
    ways += ["at positions"] if any(one["position"] is not None for one in found) else []
    title = ", and ".join(ways).capitalize()
    return [Figure("zero-layer-variants", title, partial(draw_variants, found))] if len(found) > 1 else []


def _exceptions(measured: Measurements[ZeroLayerMetrics]) -> list[Figure]:
    metrics, arrays = measured.metrics, measured.arrays
    if not metrics["exceptions"]:
        return []
    shown = [
        Figure(
            "zero-layer-norms",
            "Norms of exceptions and of the tokens they return",
            partial(draw_norms, arrays),
            partial(search_norms, arrays, metrics["n_tokens"]),
        )
    ]
    if pairs := pairs_to_draw(arrays):
        shown.append(Figure("zero-layer-pairs", "What some tokens return", partial(draw_pairs, pairs)))
    if groups := metrics["exceptions_by_group"]:
        draw_groups = partial(draw_bars, list(groups.items()), "exceptions")
        shown.append(Figure("zero-layer-groups", "How the two tokens differ", draw_groups))
    if metrics["hubs"]:
        rows = measured.tables["hubs"].named()
        hubs = [(label(token_cells.name(row["id"], row["readable"])), row["absorbs"]) for row in rows]
        draw_hubs = partial(draw_bars, hubs, "other tokens that yield it")
        shown.append(Figure("zero-layer-hubs", "Tokens that absorb others", draw_hubs))
    return shown


def pairs_to_draw(arrays: dict[str, Array]) -> list[tuple[str, str]]:
    ids, best = arrays["ids"].tolist(), arrays["best"].tolist()
    telling = _telling(arrays)[:MOST_PAIRS]
    absorbed = Counter(best[i] for i in telling)
    telling.sort(key=lambda i: (-absorbed[best[i]], best[i], ids[i]))
    return [
        (_label(ids[i], arrays.get("token_name"), i), _label(best[i], arrays.get("best_name"), i)) for i in telling
    ]


def _telling(arrays: dict[str, Array]) -> list[int]:
    if "group" not in arrays:
        return list(range(len(arrays["ids"])))
    return [i for i, group in enumerate(arrays["group"]) if GROUPS[group] not in PLAIN_GROUPS]


def _label(token_id: int, names: Array | None, i: int) -> str:
    return label(token_cells.name(token_id, None if names is None else str(names[i])))


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
    if "group" in arrays:
        parts = [(arrays["group"] == i, f"{group}, ") for i, group in enumerate(GROUPS)]
    else:
        parts = [(np.ones(len(x), bool), "")]
    for index, ((chosen, name), marker) in enumerate(zip(parts, "os^Dvp", strict=False)):
        if chosen.any():
            ax.plot(
                x[chosen],
                y[chosen],
                marker,
                ms=4,
                alpha=0.7,
                mec="none",
                color=style.COLOURS[index],
                label=f"{name}{chosen.sum()}",
                rasterized=True,
            )
    ends = min(x.min(), y.min()), max(x.max(), y.max())
    ax.plot(ends, ends, "--", color=style.INK, lw=0.8, alpha=0.6)
    ax.set(xlabel="norm of the token's input embedding", ylabel="norm of the returned token")
    if "group" in arrays:
        ax.legend()
    return figure


def draw_variants(found: Sequence[YieldVariant]) -> Any:
    figure, ax = style.plot(width=6.8, height=0.3 * len(found) + 1.0)
    at = np.arange(len(found))[::-1]
    series = (
        ("tokens among all", [variant["self_share"] for variant in found], "o"),
        ("as many as the Gaussian ones", [variant["same_number"] for variant in found], "D"),
        ("Gaussian tokens", [variant["gaussian"] for variant in found], "x"),
    )
    for colour, (name, values, marker) in zip(style.COLOURS, series, strict=False):
        ax.plot(values, at, marker, ms=5, color=colour, label=name)
    ax.set_yticks(at, [treatment(variant) for variant in found])
    ax.set(xlim=(-0.02, 1.02), xlabel="share of tokens that yield themselves")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure


def treatment(variant: YieldVariant) -> str:
    place = "no position" if variant["position"] is None else f"position {variant['position']}"
    return f"{place}, final norm" if variant["final_norm"] else place


def draw_pairs(pairs: Sequence[tuple[str, str]]) -> Any:
    figure, ax = style.plot(width=6.4, height=0.21 * len(pairs) + 0.5)
    ax.set_axis_off()
    ax.set(xlim=(0, 1), ylim=(len(pairs), -1))
    rows: dict[str, list[int]] = {}
    for row, (_, right) in enumerate(pairs):
        rows.setdefault(right, []).append(row)
    write = partial(ax.text, va="center", fontsize=8.5, parse_math=False)
    for row, (left, right) in enumerate(pairs):
        middle = float(np.mean(rows[right]))
        ax.plot((0.4, 0.6), (row, middle), color=style.COLOURS[0], lw=0.9, alpha=0.7)
        write(0.39, row, left, ha="right")
    for right, at in rows.items():
        write(0.61, float(np.mean(at)), right, ha="left")
    return figure


def draw_bars(bars: Sequence[tuple[str, int]], counted: str) -> Any:
    figure, ax = style.plot(width=6.4, height=0.26 * len(bars) + 0.8)
    at = np.arange(len(bars))[::-1]
    drawn = ax.barh(at, [count for _, count in bars], height=0.7, color=style.COLOURS[0])
    ax.bar_label(drawn, padding=3, fontsize=8)
    ax.set_yticks(at, [name for name, _ in bars], parse_math=False)
    ax.margins(x=0.1)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(counted)
    return figure
