from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.attention.measure import ROLES, AttentionMetrics, Source
from generators.findings.contract import Figure
from generators.findings.measured import Measurements

LARGEST_LOG_RATIO = 0.8  # log ratio of squared overlap to chance at which the panels' colors saturate


def figures(measured: Measurements[AttentionMetrics]) -> list[Figure]:
    both: tuple[Source, ...] = ("P", "E")
    sources = [source for source in both if measured.metrics["shares"][source]]
    title = "Layer-0 weights against the directions of the embeddings"
    return [Figure("overlap-panels", title, partial(draw_panels, measured.arrays, sources))]


def draw_panels(arrays: dict[str, Array], sources: list[Source]) -> Any:
    names = [name for name in ROLES if f"panel_{sources[0]}_{name}" in arrays]
    figure = style.canvas(width=2.2 * len(names) + 0.9, height=2.2 * len(sources) + 0.5)
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
