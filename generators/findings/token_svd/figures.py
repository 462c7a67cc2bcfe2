from functools import partial
from typing import Any

from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.interactive import Group, Scatter
from generators.findings.contract import Figure
from generators.findings.measured import Measurements
from generators.findings.token_svd.measure import TokenSvdMetrics
from generators.findings.token_svd.separation import LEFT_OUT, MARKED, UNMARKED

# Kinds of tokens: their label and their colour's place in the palette.
KINDS = ((MARKED, "begins a word", 0), (UNMARKED, "without", 1), (LEFT_OUT, "special or not known", 5))
SECOND, THIRD = "projection on the second direction", "projection on the third direction"


def figures(measured: Measurements[TokenSvdMetrics]) -> list[Figure]:
    draw = partial(draw_plane, measured.arrays)
    turn = partial(turn_plane, measured.arrays, measured.metrics["n_tokens"])
    return [Figure("svd-plane", "The second and third directions", draw, turn)]


def turn_plane(arrays: dict[str, Array], n_tokens: int) -> Scatter:
    names = arrays.get("token_name")
    groups = []
    for kind, label, colour in KINDS:
        chosen = arrays["token_kind"] == kind
        _, x, y = arrays["token_scores"][chosen].T
        groups.append(
            Group(label, colour, arrays["token_id"][chosen], x, y, None if names is None else names[chosen])
        )
    return Scatter(SECOND, THIRD, tuple(groups), n_tokens, origin=True)


def draw_plane(arrays: dict[str, Array]) -> Any:
    figure, ax = style.plot()
    for kind, label, colour in KINDS:
        chosen = arrays["token_kind"] == kind
        if chosen.any():
            _, x, y = arrays["token_scores"][chosen].T
            ax.plot(x, y, ".", ms=2.5, alpha=0.4, color=style.COLOURS[colour], label=label, rasterized=True)
    ax.plot(0, 0, "+", ms=14, mew=1.5, color=style.INK)
    ax.set(xlabel=SECOND, ylabel=THIRD)
    figure.legend(loc="outside upper right", ncols=len(KINDS), markerscale=4)
    return figure
