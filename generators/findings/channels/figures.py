from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.channels.measure import ChannelsMetrics
from generators.findings.channels.token_figures import token_figures
from generators.findings.contract import Figure
from generators.findings.measured import Measurements

PAIRS = 6  # pairs of channels drawn against each other


def figures(measured: Measurements[ChannelsMetrics]) -> list[Figure]:
    metrics, arrays = measured.metrics, measured.arrays
    k = len(metrics["position_channels"])
    shown = [
        Figure(
            "channel-histogram",
            "How much each channel varies with position",
            partial(draw_histogram, np.array(metrics["position_std"]), k),
        ),
        Figure("channel-traces", "Single channels against position", partial(draw_traces, arrays)),
        Figure(
            "singular-vectors",
            "The top directions of P, channel by channel",
            partial(draw_singular_vectors, arrays["right_singular_vectors"], metrics["participation_ratio"]),
        ),
    ]
    if arrays["strong_traces"].shape[1] > 1:
        draw = partial(draw_lissajous, arrays["strong_traces"], arrays["strong_channels"])
        shown.append(Figure("lissajous", "Pairs of strong channels against each other", draw))
    return [*shown, *token_figures(measured)]


def draw_histogram(std: Float[Array, " d"], k: int) -> Any:
    figure, ax = style.plot(width=6.4, height=3.4)
    log_std = np.log10(std[std > 0])
    ax.hist(log_std, bins=60, color=style.COLOURS[0])
    if k:
        edge = np.sort(log_std)[::-1][k - 1 : k + 1].mean()
        ax.axvline(edge, color=style.COLOURS[1], ls="--", label=f"{k} position channels to the right")
        ax.legend()
    ax.set(xlabel="log10 of the channel's standard deviation over positions", ylabel="channels")
    return figure


def draw_traces(arrays: dict[str, Array]) -> Any:
    figure = style.canvas(width=8.6, height=3.6)
    titles = {"strong": "the strongest channels", "weak": "weak channels, finer scale"}
    for ax, (kind, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        for index, trace in enumerate(arrays[f"{kind}_traces"].T):
            ax.plot(trace, lw=0.8, color=style.COLOURS[index % len(style.COLOURS)], rasterized=True)
        ax.set(title=title, xlabel="position (tokens)", ylabel="value of the channel")
    return figure


def draw_lissajous(traces: Float[Array, "n channels"], channels: Int[Array, " channels"]) -> Any:
    pairs = min(PAIRS, traces.shape[1] // 2)
    figure, axes = style.panels(pairs, 3, (2.9, 2.7), (0, 0.3))
    positions = np.arange(1, len(traces))
    for pair, ax in enumerate(axes):
        x, y = traces[1:, 2 * pair], traces[1:, 2 * pair + 1]
        points = style.curve_2d(ax, x, y, positions)
        ax.set(xlabel=f"channel {channels[2 * pair]}", ylabel=f"channel {channels[2 * pair + 1]}")
    figure.colorbar(points, ax=axes, label="position (tokens)", shrink=0.7)
    return figure


def draw_singular_vectors(vectors: Float[Array, "vectors d"], ratios: list[float]) -> Any:
    figure = style.canvas(width=8.5, height=5.2)
    axes = np.atleast_1d(figure.subplots(len(vectors), 1, sharex=True, sharey=True))
    channels = np.arange(vectors.shape[1])
    for index, (ax, ratio) in enumerate(zip(axes, ratios, strict=True)):
        ax.vlines(channels, 0, vectors[index], lw=0.8, color=style.COLOURS[index], rasterized=True)
        ax.set_ylabel(f"vector {index + 1}")
        ax.annotate(
            f"participation ratio {ratio:.1f}", (0.99, 0.86), xycoords="axes fraction", ha="right", fontsize=8
        )
    axes[-1].set_xlabel("channel")
    return figure
