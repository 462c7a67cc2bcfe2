from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.undertrained.measure import SPEAKABLE, UndertrainedMetrics

BINS = 40


def figures(measured: Measurements[UndertrainedMetrics]) -> list[Figure]:
    draw = partial(draw_largest, measured.arrays)
    return [Figure("largest-probabilities", "Largest probability of each token", draw)]


def draw_largest(arrays: dict[str, Array]) -> Any:
    groups = {"all tokens": arrays["all"], "controls": arrays["controls"], "candidates": arrays["candidates"]}
    values = {name: array / np.log(10) for name, array in groups.items()}
    low = min(float(array.min()) for array in values.values())
    edges = np.linspace(low, 0, BINS + 1)
    figure = style.canvas(width=6.4, height=4.2)
    axes = figure.subplots(len(values), 1, sharex=True)
    for index, (ax, (name, array)) in enumerate(zip(axes, values.items(), strict=True)):
        ax.hist(array, edges, color=style.COLOURS[index])
        ax.axvline(np.log10(SPEAKABLE), color=style.INK, lw=1, ls=":")
        ax.set_ylabel(name)
    axes[-1].set_xlabel("largest probability, in the texts or asked for (log10)")
    return figure
