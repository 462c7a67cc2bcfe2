from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.channels.excerpts import span
from generators.findings.channels.measure import ChannelsMetrics
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


def token_figures(measured: Measurements[ChannelsMetrics]) -> list[Figure]:
    metrics, arrays = measured.metrics, measured.arrays
    if "chunk" not in arrays or metrics["token_mean"] is None or metrics["token_std"] is None:
        return []
    mean, std, chosen = np.array(metrics["token_mean"]), np.array(metrics["token_std"]), metrics["position_channels"]
    shown = [
        Figure(
            "embedding-chunk",
            "A piece of the token embedding",
            partial(draw_chunk, arrays, float(np.median(std)), chosen),
        ),
        Figure(
            "value-histograms",
            "Token embeddings, a token at a time and a channel at a time",
            partial(draw_value_histograms, arrays, chosen),
        ),
        Figure(
            "token-moments",
            "Mean and std of each channel over tokens",
            partial(draw_moments, mean, std, chosen),
        ),
        Figure(
            "channel-rivalry",
            "Tokens and positions, channel by channel",
            partial(
                draw_rivalry, (mean, std), (arrays["position_mean"], np.array(metrics["position_std"])), len(chosen)
            ),
        ),
    ]
    if "pair_channels" in arrays:
        title = "Tokens and positions in pairs of channels"
        shown.append(Figure("channel-pairs", title, partial(draw_pairs, arrays, bool(chosen))))
    return shown


def draw_chunk(arrays: dict[str, Array], median_std: float, position_channels: list[int]) -> Any:
    tokens, channels = arrays["chunk_tokens"], arrays["chunk_channels"]
    limit = 3 * median_std or 1.0
    figure, ax = style.plot(width=8.6, height=4.2)
    image = ax.imshow(
        arrays["chunk"].astype(np.float32),
        cmap=style.diverging_colours(),
        vmin=-limit,
        vmax=limit,
        extent=(tokens[0] - 0.5, tokens[-1] + 0.5, channels[-1] + 0.5, channels[0] - 0.5),
        aspect="auto",
        interpolation="none",
    )
    marked = np.intersect1d(channels, position_channels)
    if len(marked):
        outside = np.full(len(marked), 1.012)
        side = {"transform": ax.get_yaxis_transform(), "clip_on": False}
        ax.plot(outside, marked, "<", ms=4, color=style.COLOURS[1], label="position channel", **side)
        figure.legend(loc="outside upper right")
    ax.set(xlabel="token (id)", ylabel="channel")
    ax.grid(False)
    figure.colorbar(image, ax=ax, label="value of the embedding", extend="both", shrink=0.9, pad=0.03)
    return figure


def draw_value_histograms(arrays: dict[str, Array], position_channels: list[int]) -> Any:
    figure = style.canvas(width=8.6, height=3.6)
    left, right = figure.subplots(1, 2)
    _overlay(left, arrays["token_histograms"], arrays["token_histogram_edges"], set())
    shown = arrays["chunk_channels"][: len(arrays["channel_histograms"])].tolist()
    marked = {row for row, channel in enumerate(shown) if channel in position_channels}
    _overlay(right, arrays["channel_histograms"], arrays["channel_histogram_edges"], marked)
    left.set_title(f"{len(arrays['token_histograms'])} tokens")
    right.set_title(f"{len(shown)} channels")
    left.set_ylabel("share of channels in a bin")
    right.set_ylabel("share of tokens in a bin")
    for ax in (left, right):
        ax.set_xlabel("value of the embedding")
        ax.locator_params(axis="x", nbins=6)
    return figure


def _overlay(ax: Any, counts: Int[Array, "rows bins"], edges: Float[Array, " edges"], marked: set[int]) -> None:
    centres = (edges[1:] + edges[:-1]) / 2
    for row in sorted(range(len(counts)), key=lambda row: row in marked):
        colour = style.COLOURS[int(row in marked) if marked else row % len(style.COLOURS)]
        shares = counts[row] / max(1, counts[row].sum())
        ax.plot(centres, shares, color=colour, lw=0.9, alpha=0.7)
    ax.set_ylim(bottom=0)
    if marked:
        for colour, label in zip(style.COLOURS, ("other", "position channel"), strict=False):
            ax.plot([], [], color=colour, label=label)
        ax.legend()


def draw_moments(mean: Float[Array, " d"], std: Float[Array, " d"], position_channels: list[int]) -> Any:
    figure = style.canvas(width=8.6, height=3.4)
    chosen = np.isin(np.arange(len(mean)), position_channels)
    for ax, values, name in zip(figure.subplots(1, 2), (mean, std), ("mean", "standard deviation"), strict=True):
        bins = {"bins": 50, "range": span(values, tail=0)}
        if chosen.any():
            parts, labels = [values[~chosen], values[chosen]], ["other channels", "position channels"]
            ax.hist(parts, **bins, stacked=True, color=style.COLOURS[:2], label=labels)
            ax.legend()
        else:
            ax.hist(values, **bins, color=style.COLOURS[0])
        ax.locator_params(axis="x", nbins=6)
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel=f"{name} of the channel over tokens", ylabel="channels")
    return figure


def draw_rivalry(
    tokens: tuple[Float[Array, " d"], Float[Array, " d"]],
    positions: tuple[Float[Array, " d"], Float[Array, " d"]],
    k: int,
) -> Any:
    x = positions[1]
    series = (
        ("|mean| over tokens", np.abs(tokens[0]), style.COLOURS[0], "o"),
        ("std over tokens", tokens[1], style.COLOURS[2], "^"),
        ("|mean| over positions", np.abs(positions[0]), style.COLOURS[1], "s"),
        ("std over positions", x, style.COLOURS[4], "D"),
    )
    figure, ax = style.plot(width=8.0, height=5.4)
    for label, values, colour, marker in series:
        there = (x > 0) & (values > 0)
        look = {"s": 9, "color": colour, "marker": marker, "lw": 0, "alpha": 0.8, "rasterized": True}
        ax.scatter(x[there], values[there], label=label, **look)
    _divide(ax, x, k)
    drawn = np.concatenate([values[(x > 0) & (values > 0)] for _, values, _, _ in series])
    ax.set(xscale="log", yscale="log", ylim=(0.7 * np.quantile(drawn, 0.005), 1.5 * drawn.max()))
    ax.set(
        xlabel="standard deviation of the channel over positions", ylabel="mean or standard deviation of the channel"
    )
    figure.legend(loc="outside upper center", ncols=len(series), markerscale=1.8, handletextpad=0.3)
    return figure


def _divide(ax: Any, std: Float[Array, " d"], k: int) -> None:
    if k:
        ordered = np.sort(std)[::-1]
        edge = np.sqrt(ordered[k - 1] * ordered[k]) if ordered[k] else ordered[k - 1]
        ax.axvline(edge, color=style.INK, ls="--", lw=1)
        place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        ax.annotate(f"{k} position channels →", (edge, 0.96), (-5, 0), ha="right", fontsize=9, **place)


def draw_pairs(arrays: dict[str, Array], has_position_channels: bool) -> Any:
    tokens, positions = (arrays[name].astype(np.float32) for name in ("pair_tokens", "pair_positions"))
    kinds = ("position channels", "one of each", "ordinary channels")
    if not has_position_channels:
        kinds = ("vary most with position", "one of each", "vary least with position")
    figure = style.canvas(width=9.6, height=3.6)
    figure.get_layout_engine().set(wspace=0.06)
    axes = figure.subplots(1, 3)
    for ax, pair, kind in zip(axes, ((0, 1), (0, 2), (2, 3)), kinds, strict=True):
        ax.scatter(*tokens[:, pair].T, s=4, color=style.TOKEN_GREY, lw=0, alpha=0.4, rasterized=True, label="tokens")
        x, y = positions[:, pair].T
        points = style.curve_2d(ax, x, y, np.arange(1, len(positions) + 1))
        ax.set(
            title=kind,
            xlabel=f"channel {arrays['pair_channels'][pair[0]]}",
            ylabel=f"channel {arrays['pair_channels'][pair[1]]}",
        )
        ax.set_aspect("equal", "datalim")
    axes[0].legend(markerscale=2.5).legend_handles[0].set_alpha(1)
    figure.colorbar(points, ax=axes, label="position (tokens)", shrink=0.8)
    return figure
