from functools import partial
from typing import Any

import numpy as np

from generators.drawing import style
from generators.findings.anchor.claims import FLOAT16
from generators.findings.anchor.first_token import FirstToken, Tokens
from generators.findings.anchor.measure import AnchorHeadRow, AnchorMetrics, RowCosts
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, numbers

COSTS = (
    ("first_by_mean", "row 0 by the mean row"),
    ("first_by_second", "row 0 by row 1"),
    ("all_but_first", "all but row 0 by the mean row"),
    ("all_rows", "all rows by the mean row"),
)
KINDS: tuple[tuple[Tokens, str], ...] = (
    ("text", "text"),
    ("random", "random tokens"),
    ("repeated", "one token repeated"),
)
QUOTED = {  # Gu et al. (2024): % of heads for text, random tokens, one token repeated
    "Mistral-7B": (97, 75, 0),
    "Llama-3-8B": (99, 91, 0),
    "GPT-2 XL": (77, 70, 62),
}


def figures(measured: Measurements[AnchorMetrics]) -> list[Figure]:
    metrics = measured.metrics
    shown = [
        Figure("anchor-heads", "Attention to the first token", partial(draw_heads, metrics["heads"])),
        Figure("anchor-largest", "The largest activations", partial(draw_largest, metrics)),
    ]
    if metrics["first_token"] is not None:
        title = "Sinks on text, random tokens and one token"
        shown.append(Figure("anchor-tokens", title, partial(draw_tokens, metrics["first_token"])))
    if metrics["rows"] is not None:
        shown.append(Figure("anchor-rows", "Cost of replacing rows of P", partial(draw_costs, metrics["rows"])))
    return shown


def draw_heads(rows: list[AnchorHeadRow]) -> Any:
    values = numbers(rows, "on_first").reshape(rows[-1]["layer"] + 1, rows[-1]["head"] + 1)
    return style.head_maps([("", values)], 4.6, 2.4, "attention to\nthe first token")


def draw_largest(metrics: AnchorMetrics) -> Any:
    figure, ax = style.plot(width=6.6, height=3.4)
    rows = metrics["largest"]
    layers, sizes = [row["layer"] for row in rows], numbers(rows, "size")
    medians = sizes / np.maximum(numbers(rows, "over_median"), 1e-12)
    ax.axhline(FLOAT16, color=style.COLOURS[1], ls="--", label="largest float16")
    ax.plot(layers, sizes, "o-", ms=4, color=style.COLOURS[0], label="largest")
    others = numbers(metrics["stages"], "others_median") * medians
    ax.plot(layers, others, "s-", ms=4, color=style.TOKEN_GREY, label="largest at a typical\nlater position, mean")
    ax.plot(layers, medians, ":", color=style.INK, label="median")
    before = None
    for row in rows:
        if row["channel"] != before:
            place = (row["layer"], row["size"])
            ax.annotate(
                str(row["channel"]), place, xytext=(0, 5), textcoords="offset points", ha="center", fontsize=7
            )
        before = row["channel"]
    ax.set_yscale("log")
    style.whole_numbers(ax.xaxis)
    ax.set(xlabel="layer that is given the stream; the last is what comes out", ylabel="|activation|")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_tokens(found: FirstToken) -> Any:
    figure, ax = style.plot(width=6.6, height=3.0)
    bars = 2 + len(QUOTED)
    width = 0.85 / bars

    def places(bar: int) -> Any:
        return np.arange(len(KINDS)) + (bar - (bars - 1) / 2) * width

    for with_bos, label in ((False, "this model"), (True, "this model, with BOS")):
        own = {row["tokens"]: row for row in found["rows"] if row["with_bos"] == with_bos}
        for place, (kind, _) in zip(places(int(with_bos)), KINDS, strict=True):
            if kind in own:
                row = own[kind]
                spread = [[row["share"] - row["share_low"]], [row["share_high"] - row["share"]]]
                colour = style.COLOURS[int(with_bos)]
                ax.bar(place, row["share"], width, yerr=np.maximum(spread, 0), color=colour, capsize=2, label=label)
                label = ""
    for bar, (model, quoted) in enumerate(QUOTED.items(), start=2):
        shades = {"color": "none", "edgecolor": style.TOKEN_GREY, "hatch": ("///", "...", "xxx")[bar - 2]}
        ax.bar(places(bar), np.array(quoted) / 100, width, **shades, label=f"{model} (quoted)")
    ax.set_xticks(range(len(KINDS)), [label for _, label in KINDS])
    ax.set(ylim=(0, 1), ylabel="heads that rest on\nthe first token")
    ax.grid(visible=False, axis="x")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_costs(rows: RowCosts) -> Any:
    figure, ax = style.plot(width=6.2, height=2.4)
    for place, (key, label) in enumerate(COSTS):
        found = rows[key]  # type: ignore[literal-required]
        spread = [[found["mean"] - found["low"]], [found["high"] - found["mean"]]]
        ax.barh(place, found["mean"], xerr=spread, height=0.6, color=style.COLOURS[place], capsize=2, label=label)
    ax.set_yticks(range(len(COSTS)), [label for _, label in COSTS])
    ax.invert_yaxis()
    ax.set_xlabel(f"cost ({rows['unit']})")
    return figure
