from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.head_grid import ByOffset, Grid, HeadGrid
from generators.findings.attention.heads import Head
from generators.findings.attention.measure import ROLES, AttentionMetrics, ByMatrix, Source
from generators.findings.attention.with_tokens import TokenHead
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, numbers

LARGEST_LOG_RATIO = 0.8  # log ratio of squared overlap to chance at which the panels' colors saturate
NEARBY = 16  # offsets shown on each side of a chosen head's kernel


def figures(measured: Measurements[AttentionMetrics]) -> list[Figure]:
    metrics, arrays = measured.metrics, measured.arrays
    shares, kernels = _shares_of(metrics), metrics["positional_kernels"]
    shown = [
        Figure(
            "overlap-panels",
            "Layer-0 weights against the directions of the embeddings",
            partial(draw_panels, arrays, list(shares)),
        ),
        Figure(
            "shares-by-layer",
            f"How much of each matrix lies in the top {metrics['k']} directions",
            partial(draw_shares, shares, metrics["chance_share"], metrics["k"]),
        ),
    ]
    if kernels is not None:
        shown += [
            Figure(
                "positional-kernels",
                "What layer-0 heads attend to by position alone",
                partial(draw_kernels, arrays, metrics["n_heads"]),
            ),
            Figure(
                "kernel-map",
                "Every head's weight on the previous token, by position alone",
                partial(draw_kernel_map, kernels["heads"], metrics["n_layers"], metrics["n_heads"]),
                partial(choose_kernel, measured, kernels["heads"]),
            ),
        ]
    if "bias_channels" in arrays:
        title = "The channels that the bias of queries favors"
        shown.append(Figure("query-bias", title, partial(draw_query_bias, metrics, arrays)))
    return shown


def _shares_of(metrics: AttentionMetrics) -> dict[Source, ByMatrix]:
    sources: tuple[Source, ...] = ("P", "E")
    return {source: found for source in sources if (found := metrics["shares"][source])}


def draw_panels(arrays: dict[str, Array], sources: list[Source]) -> Any:
    names = [name for name in ROLES if f"panel_{sources[0]}_{name}" in arrays]
    figure = style.canvas(width=1.9 * len(names) + 0.9, height=2.2 * len(sources) + 0.5)
    axes = figure.subplots(len(sources), len(names), squeeze=False)
    for row, source in enumerate(sources):
        for column, name in enumerate(names):
            ax = axes[row, column]
            image = style.against_chance(ax, arrays[f"panel_{source}_{name}"], LARGEST_LOG_RATIO, ("first", "last"))
            ax.set_xlabel(f"vectors of {name}")
            if column == 0:
                ax.set_ylabel(f"vectors of {source}")
    bar = figure.colorbar(image, ax=axes, shrink=0.8, label="squared overlap / chance")
    bar.set_ticks(np.log10([0.2, 0.5, 1, 2, 5]), labels=["1/5", "1/2", "1", "2", "5"])
    return figure


def draw_query_bias(metrics: AttentionMetrics, arrays: dict[str, Array]) -> Any:
    forms = {"raw weights": "raw", "gain of ln1 folded in": "folded"}
    there = {title: form for title, form in forms.items() if f"bias_{form}" in arrays}
    figure = style.canvas(width=0.8 + 3.9 * len(there), height=3.2)
    axes = figure.subplots(1, len(there), sharey=True, squeeze=False)[0]
    for ax, (title, form) in zip(axes, there.items(), strict=True):
        for index, (channel, sizes) in enumerate(zip(arrays["bias_channels"], arrays[f"bias_{form}"], strict=True)):
            ax.plot(sizes, "o-", ms=3, lw=1.2, color=style.COLOURS[index], label=str(channel))
        limit = metrics["query_bias"][form]["chance"]["limit"]  # type: ignore[index, literal-required]
        ax.axhline(limit, color=style.TOKEN_GREY, ls="--", lw=1, label="random axes")
        ax.set(title=title, xlabel="layer", yscale="log")
        style.whole_numbers(ax.xaxis)
    axes[0].set_ylabel("|W_K b_Q|, times the mean channel")
    axes[-1].legend(title="channel", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_shares(shares: dict[Source, ByMatrix], chance: float, k: int) -> Any:
    figure = style.canvas(width=3.9 * len(shares) + 1.4, height=3.4)
    for index, (source, matrices) in enumerate(shares.items()):
        ax = figure.add_subplot(1, len(shares), index + 1)
        for colour, (name, rows) in zip(style.COLOURS, matrices.items(), strict=False):
            layers = [row["layer"] for row in rows]
            ax.plot(layers, numbers(rows, "raw"), "o-", ms=4, lw=1.2, color=colour, label=name)
            ax.plot(layers, numbers(rows, "folded"), ":", lw=1.2, color=colour)
        ax.axhline(chance, ls="--", lw=1, color=style.INK, label="chance")
        ax.set(yscale="log", xlabel="layer", ylabel=f"share in {source}'s top {k}\n(dotted: gain folded in)")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_kernels(arrays: dict[str, Array], n_heads: int) -> Any:
    offsets, kernels, uniform = arrays["kernel_offsets"], arrays["kernels"], arrays["uniform_kernel"]
    figure, axes = style.panels(n_heads, 4, (2.0, 1.4), (0.6, 0.5), sharex=True, sharey=True)
    for head, ax in enumerate(axes):
        ax.plot(offsets, uniform, lw=1.2, color=style.INK, alpha=0.4)
        ax.plot(offsets, kernels[head], lw=1.2, color=style.COLOURS[0])
        ax.axvline(1, color=style.COLOURS[1], lw=0.8, ls=":")
        ax.set_title(f"head {head}")
    figure.supxlabel("offset: tokens back from the query (dotted line: the previous token)")
    figure.supylabel("mean attention")
    return figure


def draw_kernel_map(heads: list[Head], n_layers: int, n_heads: int) -> Any:
    weight = _at_1(heads, n_layers, n_heads)
    figure, ax = style.plot(width=max(4.2, 0.34 * n_heads + 2.2), height=max(2.4, 0.3 * n_layers + 1.2))
    image = ax.imshow(weight, cmap=style.SEQUENTIAL, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    ax.set(xlabel="head", ylabel="layer")
    style.whole_numbers(ax.xaxis, ax.yaxis)
    ax.grid(False)
    figure.colorbar(image, ax=ax, label="attention at offset 1")
    return figure


def choose_kernel(measured: Measurements[AttentionMetrics], heads: list[Head]) -> HeadGrid:
    metrics, arrays = measured.metrics, measured.arrays
    shape = metrics["n_layers"], metrics["n_heads"]
    grids = [Grid("by positions alone", _at_1(heads, *shape))]
    lines = [ByOffset("by positions alone", arrays["kernel_offsets"], arrays["kernels"])]
    if metrics["token_kernels"] is not None:
        grids.append(Grid("with tokens on them", _at_1(metrics["token_kernels"]["heads"], *shape)))
        lines.append(ByOffset("with tokens on them", arrays["token_kernel_offsets"], arrays["token_kernels"]))
    nearby = tuple(line.within(-NEARBY, NEARBY) for line in lines)
    return HeadGrid("attention at offset 1", tuple(grids), nearby)


def _at_1(heads: Sequence[Head | TokenHead], n_layers: int, n_heads: int) -> Float[Array, "layers heads"]:
    return np.array([head["weight_at_1"] for head in heads]).reshape(n_layers, n_heads)
