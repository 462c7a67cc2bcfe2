from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.base.text import share
from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts, attention_by_offset
from generators.findings.heads.measure import POSITIONS, HeadsMetrics
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements
from generators.findings.running import mean_over_windows, ratio_over_windows

ATTENDS = 0.1  # largest weight on the previous token below which there is nothing to predict
PREVIOUS = 0.3  # weight on the previous token from which a head may be a previous-token head


def _by_window(measured: Measurements[HeadsMetrics], positions: int, heads: list[int]) -> Float[Array, " windows"]:
    return measured.arrays["previous"][positions][:, heads].astype(np.float64).mean(axis=1)


def _files(measured: Measurements[HeadsMetrics]) -> Int[Array, " windows"]:
    """Return the file of every window; of results that lack it, each window is its own."""
    previous = measured.arrays["previous"]
    return measured.arrays.get("files", np.arange(previous.shape[1]))


@claim("previous-token-on-text", holds=0.5, partly=PREVIOUS, form=share, with_arrays=True)
def previous_token(measured: Measurements[HeadsMetrics]) -> Evidence:
    rows = measured.metrics["heads"]
    index = max(range(len(rows)), key=lambda i: rows[i]["on_text"])
    mean = mean_over_windows(_by_window(measured, 0, [index]), _files(measured))
    return Evidence(
        rows[index]["on_text"],
        {"head": rows[index]},
        baseline=measured.metrics["uniform"],
        interval=(mean["low"], mean["high"]),
    )


@claim("previous-token-inexact", holds=0.8, partly=0.5, form=share, with_arrays=True, attends=PREVIOUS)
def inexact(measured: Measurements[HeadsMetrics]) -> Evidence | Untested:
    if measured.model.causal is False:
        return Untested("both-sides")
    rows = measured.metrics["heads"]
    heads = [i for i, row in enumerate(rows) if row["on_text"] >= PREVIOUS]
    if not heads:
        return Untested("no-head")
    if len(measured.arrays["previous"]) < len(POSITIONS):
        return Untested("not-replaced")
    as_is, in_groups, removed = (_by_window(measured, i, heads) for i in range(len(POSITIONS)))
    retained, low, high = ratio_over_windows(in_groups, as_is, _files(measured))
    without = float(removed.mean() / as_is.mean())
    said = {"heads": [rows[i] for i in heads], "without": without}
    return Evidence(retained, said, baseline=without, interval=(low, high))


@claim("positions-foretell-heads", holds=0.5, form="{:+.2f}", attends=ATTENDS, with_arrays=True)
def foretold(measured: Measurements[HeadsMetrics]) -> Evidence | Untested:
    m = measured.metrics
    if measured.model.shares_block:
        return Untested("one-block")
    found = m["forecast"]
    if found is None:
        return Untested("no-table")
    if max(row["on_text"] for row in m["heads"]) < ATTENDS:
        return Untested("nothing")
    return Evidence(
        found["rho"],
        chance={
            "null": "shufflings of heads within layers",
            "median": found["chance_median"],
            "limit": found["chance_limit"],
            "draws": found["draws"],
        },
        interval=(found["low"], found["high"]),
    )


ON_TEXT = ("on text", "on text, positions in groups of ten", "on text, positions removed")
RANKS = ("the most", "the second most", "the third most")  # for heads listed by name


def heads(found: Measurements[HeadsMetrics], count: int | None) -> Iterator[Fact]:
    each = sorted(found.metrics["heads"], key=lambda row: (row["layer"], row["head"]))
    if len(each) != count:
        return
    for says, of_heads in zip(ON_TEXT, found.arrays["attention"], strict=False):
        yield attention_by_offset(says, found.arrays["offsets"], of_heads, None)
    on_text = [row["on_text"] for row in each]
    weights: list[list[Any]] = [on_text, [row["in_groups"] for row in each], [row["removed"] for row in each]]
    for says, values in zip(ON_TEXT, weights, strict=True):
        yield EntityNumbers(f"weight on the previous token, {says}", values, "heads-on-text", "largest")
    first = [row["on_first_token"] for row in each]
    yield EntityNumbers("weight on the first token, on text", first, order="largest")
    yield EntityNumbers("strongest offset on text", [row["strongest_offset"] for row in each])
    for rank, index in zip(RANKS, sorted(range(count), key=lambda i: -on_text[i]), strict=False):
        says = f"On text, it gives the previous token {share(on_text[index])} of its attention, {rank} of all heads."
        yield EntityNote(index, says)


FACTS = Facts(entities={"head": heads})
