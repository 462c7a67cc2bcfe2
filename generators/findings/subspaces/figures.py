from functools import partial
from typing import Any

import numpy as np

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.subspaces.measure import SubspacesMetrics


def figures(measured: Measurements[SubspacesMetrics]) -> list[Figure]:
    m = measured.metrics
    draw = partial(draw_capture, m["capture"], m["chance_share"], m["k"])
    return [Figure("capture", "Token directions captured by positions", draw)]


def draw_capture(capture: list[float], chance: float, k: int) -> Any:
    figure, ax = style.plot()
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
