from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, numbers
from generators.findings.rogue.measure import SHOWN, RogueMetrics, RogueRow

LINES = (
    ("mean_cosine", "all channels"),
    ("without_1", "without 1"),
    ("without_3", "without 3"),
    ("without_5", "without 5"),
)


def figures(measured: Measurements[RogueMetrics]) -> list[Figure]:
    rows = measured.metrics["layers"]
    return [
        Figure(
            "rogue-shares",
            "Channels that make hidden states similar",
            partial(draw_shares, measured.arrays["shares"]),
        ),
        Figure("rogue-cosine", "Similarity of hidden states by layer", partial(draw_cosines, rows)),
    ]


def top_channels(shares: Float[Array, "layers d"]) -> list[int]:
    return sorted(np.argsort(-shares.max(axis=0), kind="stable")[:SHOWN].tolist())


def draw_shares(shares: Float[Array, "layers d"]) -> Any:
    channels = top_channels(shares)
    others = shares.sum(axis=1) - shares[:, channels].sum(axis=1)
    drawn = np.vstack([shares[:, channels].T, others])
    figure, ax = style.plot(width=6.0, height=3.4)
    image = ax.imshow(np.clip(drawn, 0, 1), cmap=style.SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
    ax.set_yticks(range(len(drawn)), [*map(str, channels), "others"])
    ax.set(xlabel="layer that is given the stream; the last is what comes out", ylabel="channel")
    style.whole_numbers(ax.xaxis)
    ax.grid(False)
    figure.colorbar(image, ax=ax, label="share of the mean cosine")
    return figure


def draw_cosines(rows: list[RogueRow]) -> Any:
    figure, ax = style.plot(width=6.4, height=3.2)
    layers = [row["layer"] for row in rows]
    for index, (key, label) in enumerate(LINES):
        ax.plot(
            layers, numbers(rows, key), "os^D"[index] + "-", ms=4, lw=1.2, color=style.COLOURS[index], label=label
        )
    ax.plot(layers, [row["isoscore"] for row in rows], ":", lw=1.2, color=style.INK, label="IsoScore")
    ax.set_xticks(layers)
    ax.set(xlabel="layer that is given the stream; the last is what comes out", ylabel="mean cosine")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
