from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.subspaces.measure import SubspacesMetrics

LARGEST_LOG_RATIO = 1.0  # log ratio of squared overlap to chance at which the heatmap's colors saturate
FAINTEST = 1e-7  # relative to the largest singular value; smaller ones are rounding and not drawn


def figures(measured: Measurements[SubspacesMetrics]) -> list[Figure]:
    metrics = measured.metrics
    return [
        Figure(
            "capture",
            "Token directions captured by positions",
            partial(draw_capture, metrics["capture"], metrics["chance_share"], metrics["k"]),
        ),
        Figure(
            "spectra",
            "Singular values of positions and tokens",
            partial(draw_spectra, metrics["singular_values_P"], metrics["singular_values_E"]),
        ),
        Figure(
            "direction-overlap",
            "Directions of positions against directions of tokens",
            partial(draw_overlap, measured.arrays["overlaps"]),
        ),
    ]


def draw_capture(capture: list[float], chance: float, k: int) -> Any:
    figure, ax = style.plot(width=7.6, height=3.4)
    index = np.arange(1, len(capture) + 1)
    ax.plot(index, capture, ".", ms=3.5, color=style.COLOURS[0], rasterized=True)
    ax.axhline(chance, ls="--", lw=1, color=style.INK, label=f"chance, {chance:.3f}")
    ax.set(
        xlabel="right singular vector of E (1 is the strongest)",
        ylabel=f"share in P's top {k} directions",
        ylim=(0, None),
    )
    ax.legend()
    return figure


def draw_spectra(of_P: list[float], of_E: list[float]) -> Any:
    figure, ax = style.plot(width=7.6, height=3.4)
    for colour, label, spectrum in zip(style.COLOURS, ("P, positions", "E, tokens"), (of_P, of_E), strict=False):
        values = np.array(spectrum)
        shown = values[values > FAINTEST * values[0]]
        ax.plot(np.arange(1, len(shown) + 1), shown / shown[0], color=colour, label=label)
    ax.set(yscale="log", xlabel="index of the singular value", ylabel="singular value / largest")
    ax.legend()
    return figure


def draw_overlap(ratio: Float[Array, "a b"]) -> Any:
    figure, ax = style.plot(width=5.6, height=4.4)
    image = style.against_chance(ax, ratio, LARGEST_LOG_RATIO, ("strongest", "weakest"))
    ax.set(xlabel="directions of tokens (E)", ylabel="directions of positions (P)")
    bar = figure.colorbar(image, ax=ax, label="squared overlap / chance")
    bar.set_ticks(np.log10([0.1, 0.3, 1, 3, 10]), labels=["1/10", "1/3", "1", "3", "10"])
    return figure
