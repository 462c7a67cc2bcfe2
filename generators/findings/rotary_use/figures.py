from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.drawing.panels import Panel, Panels
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, numbers
from generators.findings.rotary_use.lengths import PairLengths
from generators.findings.rotary_use.measure import RotaryHeadRow, RotaryUseMetrics, TurningRow, Which

DAMAGE = "damage (1: no pair turns)"
WHICH: tuple[Which, ...] = ("fastest", "slowest", "random")
LINEAR_UP_TO = 0.01


def figures(measured: Measurements[RotaryUseMetrics]) -> list[Figure]:
    rows, heads = measured.metrics["damages"], measured.metrics["heads"]
    lengths = measured.metrics["lengths"]
    shown = [
        Figure(
            "rotary-damage",
            "Cost of rotating only some pairs",
            partial(draw_damage, rows),
            partial(point_at_damage, rows),
        )
    ]
    if heads is not None:
        shown.append(
            Figure("rotary-pairs", "Which pairs heads use", partial(draw_pairs, heads, measured.arrays["shares"]))
        )
    if lengths is not None:
        shown.append(Figure("rotary-lengths", "Length by pair", partial(draw_lengths, lengths)))
    return shown


def _columns(rows: list[TurningRow], which: Which) -> tuple[Array, Array, Array, Array]:
    chosen = sorted((row for row in rows if row["which"] == which), key=lambda row: row["turning"])
    turning, damage, low, high = np.array(
        [[row["turning"], row["damage"], row["low"], row["high"]] for row in chosen], np.float64
    ).T
    return turning, damage, low, high


def draw_damage(rows: list[TurningRow]) -> Any:
    figure, ax = style.plot(width=6.4, height=3.6)
    for index, which in enumerate(WHICH):
        turning, damage, low, high = _columns(rows, which)
        colour = style.TOKEN_GREY if which == "random" else style.COLOURS[index]
        ax.plot(turning, damage, "os^"[index] + "-", ms=4, lw=1.2, color=colour, label=f"{which} pairs turn")
        ax.fill_between(turning, low, high, color=colour, alpha=0.2, lw=0)
    for mark in (0, 1):
        ax.axhline(mark, color=style.INK, lw=0.8, ls=":", alpha=0.7)
    style.whole_numbers(ax.xaxis)
    ax.set(xlabel="pairs that turn, in every layer", ylabel=DAMAGE)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def point_at_damage(rows: list[TurningRow]) -> Panels:
    panels = []
    for which in WHICH:
        turning, damage, low, high = _columns(rows, which)
        names = tuple(f"{which} {count:.0f} turn" for count in turning)
        panels.append(Panel(f"{which} pairs that turn", names, turning, damage, low, high))
    return Panels("damage", DAMAGE, LINEAR_UP_TO, (0.0, 1.0), tuple(panels))


def draw_pairs(heads: list[RotaryHeadRow], shares: Float[Array, "heads pairs"]) -> Any:
    order = np.argsort([-row["previous"] for row in heads], kind="stable")
    figure, ax = style.plot(width=6.4, height=0.9 + min(6.0, 0.16 * len(heads)))
    limit = max(float(shares.max()), 0.05)
    image = ax.imshow(np.clip(shares[order], 0, limit), cmap=style.SEQUENTIAL, vmin=0, vmax=limit, aspect="auto")
    ax.axvline(shares.shape[1] // 2 - 0.5, color=style.PAGE, lw=1, ls=":")
    if len(heads) <= 40:
        ax.set_yticks(range(len(heads)), [f"L{heads[i]['layer']}H{heads[i]['head']}" for i in order], fontsize=7)
    ax.set(xlabel="pair, fastest first", ylabel="head, most attention to\nthe previous token first")
    style.whole_numbers(ax.xaxis)
    ax.grid(False)
    figure.colorbar(image, ax=ax, label="share of scores")
    return figure


def draw_lengths(found: PairLengths) -> Any:
    rows = found["pairs"]
    figure, ax = style.plot(width=6.4, height=3.2)
    for name, colour in (("query", style.COLOURS[0]), ("key", style.COLOURS[1]), ("value", style.TOKEN_GREY)):
        ax.plot(numbers(rows, name), "o-", ms=3, lw=1.2, color=colour, label=name)
    ax.axvline(len(rows) // 2 - 0.5, color=style.INK, lw=0.8, ls=":")
    ax.set_ylim(bottom=0)
    style.whole_numbers(ax.xaxis)
    ax.set(xlabel="pair, fastest first", ylabel="mean length")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    above, marks = ax.secondary_xaxis("top"), np.linspace(0, len(rows) - 1, min(5, len(rows))).round().astype(int)
    above.set_xticks(marks, [f"{rows[mark]['period']:,.0f}" for mark in marks])
    above.set_xlabel("tokens per turn")
    return figure
