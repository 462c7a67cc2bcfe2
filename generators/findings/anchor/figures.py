from functools import partial
from typing import Any

from generators.drawing import style
from generators.findings.anchor.measure import AnchorHeadRow, AnchorMetrics, AnchorStageRow, RowCosts
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, numbers

COSTS = (
    ("first_by_mean", "row 0 by the mean row"),
    ("first_by_second", "row 0 by row 1"),
    ("all_but_first", "all but row 0 by the mean row"),
    ("all_rows", "all rows by the mean row"),
)


def figures(measured: Measurements[AnchorMetrics]) -> list[Figure]:
    metrics = measured.metrics
    shown = [
        Figure("anchor-heads", "Attention to the first token", partial(draw_heads, metrics["heads"])),
        Figure("anchor-stream", "The first token in the stream", partial(draw_stages, metrics["stages"])),
    ]
    if metrics["rows"] is not None:
        shown.append(Figure("anchor-rows", "Cost of replacing rows of P", partial(draw_costs, metrics["rows"])))
    return shown


def draw_heads(rows: list[AnchorHeadRow]) -> Any:
    values = numbers(rows, "on_first").reshape(rows[-1]["layer"] + 1, rows[-1]["head"] + 1)
    return style.head_maps([("", values)], 4.6, 2.4, "attention to\nthe first token")


def draw_stages(rows: list[AnchorStageRow]) -> Any:
    figure, ax = style.plot(width=6.6, height=3.4)
    layers = [row["layer"] for row in rows]
    ax.plot(layers, [row["over_median"] for row in rows], "o-", ms=4, color=style.COLOURS[0], label="first token")
    ax.plot(
        layers, [row["others_median"] for row in rows], "s-", ms=4, color=style.TOKEN_GREY, label="other positions"
    )
    ax.plot(layers, [row["norm_ratio"] for row in rows], "^:", ms=4, color=style.COLOURS[1], label="ratio of norms")
    for row in rows:
        place = (row["layer"], row["over_median"])
        ax.annotate(str(row["channel"]), place, xytext=(0, 5), textcoords="offset points", ha="center", fontsize=7)
    ax.set_yscale("symlog", linthresh=1)
    ax.set_xticks(layers)
    ax.set(xlabel="layer that is given the stream; the last is what comes out", ylabel="times the median activation")
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
