from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.undertrained.measure import SPEAKABLE, UndertrainedMetrics


def figures(measured: Measurements[UndertrainedMetrics]) -> list[Figure]:
    draw = partial(draw_largest, measured.arrays)
    return [Figure("largest-probabilities", "Largest probability of each token", draw)]


def draw_largest(arrays: dict[str, Array]) -> Any:
    values = {name: arrays[name] / np.log(10) for name in ("all", "controls", "candidates")}
    edges = np.linspace(min(array.min() for array in values.values()), 0, 41)
    figure = style.canvas(width=6.4, height=4.2)
    axes = figure.subplots(len(values), 1, sharex=True)
    for index, (ax, (name, array)) in enumerate(zip(axes, values.items(), strict=True)):
        ax.hist(array, edges, color=style.COLOURS[index])
        ax.axvline(np.log10(SPEAKABLE), color=style.INK, lw=1, ls=":")
        ax.set_ylabel("all tokens" if name == "all" else name)
    axes[-1].set_xlabel("largest probability, in the texts or asked for (log10)")
    return figure
