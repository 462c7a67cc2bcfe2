"""What is known of each head: where it looks by position alone, with tokens on the positions, and on text."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.base.text import number
from generators.drawing.interactive import rounded
from generators.site.things.known import (
    LINE_DIGITS,
    Found,
    Line,
    Things,
    array,
    measured,
    metric,
    points,
    unknown,
)
from generators.site.view import ModelPage

DRAWING = "Mean attention by offset"
ACROSS = "offset: tokens back from the query"
ON_TEXT = ("on text", "on text, positions in groups of ten", "on text, positions removed")
TOLD_BY = ("attention", "heads")
NAMED = 3  # heads that look at the previous token most on text


def heads(page: ModelPage) -> Things:
    """Return what is known of a model's heads; a head's index counts layer by layer."""
    model, found = page.findings.model, measured(page)
    things = Things(model.n_layer * model.n_head)
    things.names = {i: called(i, model.n_head) for i in range(things.count or 0)}
    _by_position(things, found.get("attention"))
    _with_tokens(things, found.get("attention"))
    _on_text(things, found.get("heads"))
    things.unknown = unknown(page, TOLD_BY, "this model's heads")
    return things


def called(index: int, n_head: int) -> str:
    """Return what a head is called: L0H7."""
    return f"L{index // n_head}H{index % n_head}"


def _by_position(things: Things, found: Found) -> None:
    each = _in_order(things, metric(found, "positional_kernels", "heads"))
    if not each:
        return
    uniform = array(found, "uniform_kernel")
    _lines(things, found, ("kernel_offsets", "kernels"), "by position alone", "positional-kernels", uniform)
    things.add("strongest offset by position alone", _of(each, "peak_offset"), "attention", "kernel-map")
    _previous(things, each, "by position alone")


def _with_tokens(things: Things, found: Found) -> None:
    each = _in_order(things, metric(found, "token_kernels", "heads"))
    if not each:
        return
    _lines(things, found, ("token_kernel_offsets", "token_kernels"), "with tokens on the positions", None)
    _previous(things, each, "with tokens on the positions")


def _previous(things: Things, each: Sequence[dict[str, Any]], how: str) -> None:
    says = f"weight on the previous token, {how}"
    things.add(says, _of(each, "weight_at_1"), "attention", "kernel-map", order="largest")
    for index, row in enumerate(each):
        if row["previous_token_head"]:
            things.note(index, f"A previous-token head {how}: {number(row['weight_at_1'])} there.", "attention")


def _lines(
    things: Things,
    found: Found,
    arrays: tuple[str, str],
    says: str,
    figure: str | None,
    usual: Float[Array, " offsets"] | None = None,
) -> None:
    offsets: Int[Array, " offsets"] | None = array(found, arrays[0])
    weights: Float[Array, "heads offsets"] | None = array(found, arrays[1])
    if offsets is None or weights is None or len(weights) != things.count:
        return
    beside = None if usual is None else rounded(usual, LINE_DIGITS)
    at, values = offsets.tolist(), points(weights)
    things.lines.append(
        Line(DRAWING, ACROSS, says, at, values, "attention", figure, beside, "a head that looks everywhere alike")
    )


def _on_text(things: Things, found: Found) -> None:
    each = _in_order(things, metric(found, "heads"))
    if not each:
        return
    offsets, attention = array(found, "offsets"), array(found, "attention")
    if offsets is not None and attention is not None and attention.shape[1] == things.count:
        for says, weights in zip(ON_TEXT, attention, strict=False):
            line = Line(DRAWING, ACROSS, says, offsets.tolist(), points(weights), "heads", "heads-by-offset")
            things.lines.append(line)
    for name, says in zip(("on_text", "in_groups", "removed"), ON_TEXT, strict=True):
        values = _of(each, name)
        things.add(f"weight on the previous token, {says}", values, "heads", "heads-on-text", order="largest")
    things.add("weight on the first token, on text", _of(each, "on_first_token"), "heads", order="largest")
    things.add("strongest offset on text", _of(each, "strongest_offset"), "heads")
    most = sorted(range(len(each)), key=lambda i: -each[i]["on_text"])[:NAMED]
    for place, index in enumerate(most, 1):
        rank = "most" if place == 1 else f"most but {('one', 'two')[place - 2]}"
        says = f"On text it gives the previous token the {rank} of all heads: {number(each[index]['on_text'])}."
        things.note(index, says, "heads")


def _in_order(things: Things, found: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Return the rows of heads layer by layer; none unless there is one for every head."""
    each = sorted(found or [], key=lambda row: (row["layer"], row["head"]))
    return each if len(each) == things.count else []


def _of(each: Sequence[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in each]
