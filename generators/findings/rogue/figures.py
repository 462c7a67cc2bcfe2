from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.rogue.measure import SHOWN, RogueMetrics


def figures(measured: Measurements[RogueMetrics]) -> list[Figure]:
    draw = partial(draw_shares, measured.arrays["shares"])
    return [Figure("rogue-shares", "Channels that make hidden states similar", draw)]


def draw_shares(shares: Float[Array, "layers d"]) -> Any:
    channels = sorted(np.argsort(-shares.max(axis=0), kind="stable")[:SHOWN].tolist())
    others = shares.sum(axis=1) - shares[:, channels].sum(axis=1)
    drawn = np.vstack([shares[:, channels].T, others])
    figure, ax = style.plot()
    image = ax.imshow(np.clip(drawn, 0, 1), cmap=style.SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
    ax.set_yticks(range(len(drawn)), [*map(str, channels), "others"])
    ax.set(xlabel="input of layer (last: output of the model)", ylabel="channel")
    style.whole_numbers(ax.xaxis)
    ax.grid(False)
    figure.colorbar(image, ax=ax, label="share of the mean cosine")
    return figure
