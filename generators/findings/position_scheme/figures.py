from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.position_scheme.measure import Biases, PositionSchemeMetrics, Rotation, Slopes

MOST_NAMED_HEADS = 32  # numbered rows
NAMED_OFFSETS = (0, 1, 2, 4, 8, 16, 32)


def figures(measured: Measurements[PositionSchemeMetrics]) -> list[Figure]:
    metrics, arrays = measured.metrics, measured.arrays
    if metrics["biases"] is not None:
        title, draw = "What each head's bias adds, by offset", partial(draw_biases, metrics["biases"], arrays)
    elif metrics["slopes"] is not None:
        title, draw = "How each head's kernel falls with distance", partial(draw_slopes, metrics["slopes"])
    elif metrics["rotations"]:
        title, draw = "How fast each pair of channels turns", partial(draw_rotations, metrics, arrays)
    else:
        return []
    return [Figure("position-scheme", title, draw)]


def draw_rotations(metrics: PositionSchemeMetrics, arrays: dict[str, Array]) -> Any:
    figure, ax = style.plot()
    for index, rotation in enumerate(metrics["rotations"]):
        periods = arrays[f"periods_{index}"]
        limit = rotation["window"] or metrics["n_ctx"] or np.inf
        colour = style.COLOURS[index % len(style.COLOURS)]
        ax.plot(periods, lw=1.2, color=colour, alpha=0.9)
        for turns, face in ((periods <= limit, colour), (periods > limit, "none")):
            ax.plot(np.flatnonzero(turns), periods[turns], "os^v"[index % 4], ms=4, mfc=face, mec=colour)
        ax.plot([], [], "os^v"[index % 4], ms=4, color=colour, label=_named(rotation, metrics["n_layers"]))
    limits = {width["width"]: ("window", ":", 0.98, "right") for width in metrics["windows"]}
    if metrics["n_ctx"] is not None:
        limits[metrics["n_ctx"]] = ("context", "--", 0.02, "left")  # the side with fewer marks
    place = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points", "fontsize": 9}
    for tokens, (what, line, end, side) in limits.items():
        ax.axhline(tokens, ls=line, lw=1, color=style.INK)
        ax.annotate(f"{what}: {tokens:,} tokens", (end, tokens), (0, 3), ha=side, **place)
    ax.set_yscale("log")
    style.whole_numbers(ax.xaxis)
    ax.set(xlabel="pair of channels", ylabel="tokens per turn")
    if len(metrics["rotations"]) > 1:
        ax.legend(loc="lower right")
    return figure


def _named(rotation: Rotation, n_layers: int) -> str:
    layers = f"{len(rotation['layers'])} of {n_layers} layers"
    return layers if rotation["window"] is None else f"{layers}, with a window"


def draw_slopes(slopes: Slopes) -> Any:
    figure, ax = style.plot()
    heads = sorted(slopes["heads"], key=lambda head: head["half_distance"])
    distances = np.geomspace(1, max(6 * slopes["longest_half"], 2), 200)
    colours = style.position_colours()(np.linspace(0, 1, len(heads)))
    for head, colour in zip(heads, colours, strict=True):
        ax.plot(distances, np.exp(-head["slope"] * distances), lw=1.2, color=colour)
    ax.axhline(0.5, ls="--", lw=1, color=style.INK)
    ends = {heads[-1]["head"]: (heads[-1]["half_distance"], 0.5), heads[0]["head"]: (1, 0)}  # one head has one
    for name, place in ends.items():
        ax.annotate(f"head {name}", place, (4, 4), textcoords="offset points", fontsize=9)
    ax.set(
        xscale="log", ylim=(0, 1.05), xlabel="distance to the key (tokens)", ylabel="weight, of that at distance 0"
    )
    return figure


def draw_biases(summary: Biases, arrays: dict[str, Array]) -> Any:
    order = [head["head"] for head in sorted(summary["heads"], key=lambda head: head["rho"])]
    offsets, biases = arrays["bias_offsets"], arrays["biases"][order]
    shown = biases - biases.mean(axis=1, keepdims=True)
    limit = max(float(np.quantile(np.abs(shown), 0.99)), 1e-6)  # a few biases saturate their colors
    figure, ax = style.plot(width=7.0, height=max(3.0, 0.19 * min(len(order), MOST_NAMED_HEADS) + 1.2))
    image = ax.imshow(
        shown, cmap=style.diverging_colours(), vmin=-limit, vmax=limit, aspect="auto", interpolation="none"
    )
    ends = {0, len(offsets) - 1}
    ticks = [column for column, offset in enumerate(offsets) if abs(offset) in NAMED_OFFSETS or column in ends]
    ax.set_xticks(ticks, [f"{offsets[column]}".replace("-", "−") for column in ticks])
    rows = range(0, len(order), -(-len(order) // MOST_NAMED_HEADS))
    ax.set_yticks(list(rows), [str(order[row]) for row in rows])
    ax.grid(False)
    ax.set(
        xlabel="offset: tokens back from the query" + (", negative ahead of it" if offsets.min() < 0 else ""),
        ylabel="head",
    )
    figure.colorbar(image, ax=ax, label="nats above the head's mean")
    return figure
