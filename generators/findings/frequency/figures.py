from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.interactive import Group, Scatter
from generators.findings.contract import Figure
from generators.findings.frequency.chances import FREQUENCY, Correlation, Probe
from generators.findings.frequency.measure import FrequencyMetrics
from generators.findings.measured import Measurements, StoredChance

QUANTITIES = {
    "log_frequency": "log-frequency",
    "frequency_channel": "frequency channel",
    "norm": "norm",
    "svd_0": "first singular direction",
}


def figures(measured: Measurements[FrequencyMetrics]) -> list[Figure]:
    m, arrays = measured.metrics, measured.arrays
    channel, contrast = m["frequency_channel"]["channel"], m["contrast_channel"]["channel"]
    turned = None if m["chance"] is None else m["chance"]["frequency_channel"]
    shown = [
        Figure(
            "frequency-channel",
            f"Channel {channel} beside an ordinary one",
            partial(draw_channels, arrays, channel, contrast),
        ),
        Figure(
            "norm-frequency",
            "Norm and frequency",
            partial(draw_norms, arrays),
            partial(search_norms, arrays, m["n_tokens"]),
        ),
        Figure(
            "frequency-by-channel",
            "Every channel's correlation with frequency",
            partial(draw_all_channels, arrays["rho_frequency"], m["chance_rho"], turned, m["ln2_channel"]),
        ),
    ]
    if m["correlations"]:
        draw = partial(draw_candidates, m["correlations"], m["probe"])
        shown.insert(2, Figure("frequency-candidates", "Three candidates for a frequency feature", draw))
    return shown


def draw_channels(arrays: dict[str, Array], channel: int, contrast: int) -> Any:
    figure = style.canvas(width=8.6, height=4.8)
    axes = figure.subplots(2, 3, sharex="col", sharey="row")
    across = (("token_log_frequency", "log-frequency"), ("token_norm", "norm"), ("token_id", "token index"))
    for row, (name, number) in enumerate((("token_channel", channel), ("token_contrast", contrast))):
        for column, (key, label) in enumerate(across):
            ax = axes[row, column]
            ax.plot(arrays[key], arrays[name], ".", ms=2, alpha=0.35, color=style.COLOURS[row], rasterized=True)
            if row == 1:
                ax.set_xlabel(label)
            if column == 0:
                ax.set_ylabel(f"channel {number}")
    return figure


def draw_norms(arrays: dict[str, Array]) -> Any:
    figure, ax = style.plot(width=6.4, height=3.6)
    x, y = arrays["token_log_frequency"], arrays["token_norm"]
    ax.plot(x, y, ".", ms=2.5, alpha=0.35, color=style.COLOURS[0], rasterized=True)
    ax.set(xlabel="log-frequency", ylabel="norm of the token embedding")
    return figure


def search_norms(arrays: dict[str, Array], n_tokens: int) -> Scatter:
    x, y = arrays["token_log_frequency"], arrays["token_norm"]
    tokens = Group("tokens of known frequency", 0, arrays["token_id"], x, y, arrays.get("token_name"))
    return Scatter("log-frequency", "norm of the token embedding", (tokens,), n_tokens)


def draw_candidates(rows: list[Correlation], probe: Probe | None) -> Any:
    labels = [f"{QUANTITIES[row['with']]} with {QUANTITIES[row['of']]}" for row in rows]
    colours = [style.COLOURS[1 if row["of"] == FREQUENCY else 0] for row in rows]
    points = [(row["rho"], row["low"], row["high"]) for row in rows]
    if probe is not None:
        labels.append("a probe on all channels with log-frequency")
        colours.append(style.COLOURS[2])
        points.append((probe["rho"], probe["interval"][0], probe["interval"][1]))
    figure, ax = style.plot(width=7.2, height=0.42 * len(points) + 0.9)
    at = np.arange(len(points))[::-1]
    for y, (rho, low, high), colour in zip(at, points, colours, strict=True):
        ax.plot((low, high), (y, y), color=colour, lw=1.5, marker="|", ms=7)
        ax.plot(rho, y, "o", ms=5, color=colour)
    ax.set_yticks(at, labels)
    ax.axvline(0, color=style.INK, lw=0.8, alpha=0.6)
    ax.set(xlim=(-1, 1), xlabel="rank correlation")
    return figure


def draw_all_channels(rho: Float[Array, " d"], chance: float, turned: StoredChance | None, marked: int | None) -> Any:
    figure, ax = style.plot(width=6.4, height=3.2)
    order = np.argsort(np.abs(rho))[::-1]
    ax.plot(np.arange(1, len(rho) + 1), np.abs(rho)[order], ".", ms=3.5, color=style.COLOURS[0], rasterized=True)
    if marked is not None:
        place = int(np.flatnonzero(order == marked)[0])
        ring = {"ms": 9, "mfc": "none", "color": style.COLOURS[1], "label": f"channel {marked}"}
        ax.plot(place + 1, abs(rho[marked]), "o", **ring)
    if turned is not None:
        band = {"color": style.COLOURS[1], "alpha": 0.2, "lw": 0, "label": "best of turned axes, median to 99 %"}
        ax.axhspan(turned["median"], turned["limit"], **band)
    ax.axhline(chance, ls="--", lw=1, color=style.INK, label="shuffled frequencies")
    ax.set(xlabel="channels, strongest first", ylabel="|rank correlation with log-frequency|")
    ax.legend()
    return figure
