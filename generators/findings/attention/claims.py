from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from generators.base.sentences import listed
from generators.base.text import share, two
from generators.findings.attention.heads import SMALLEST_WEIGHT, Head, best_of
from generators.findings.attention.measure import (
    CORNER,
    AttentionMetrics,
    LayerShare,
    Matrix,
    RawAndFolded,
    Source,
)
from generators.findings.attention.with_tokens import TokenHead
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Chance, Measurements, StoredChance
from generators.findings.nulls import chance, pair

ReadNull = Literal["reads_tokens", "writes_positions", "mlp_reads_tokens"]
# Of the energy or overlap that chance leaves to be had: (share - chance) / (1 - chance). One scale for all widths, on
# which chance is 0 and a matrix that lies in the directions as a whole is 1.
BEYOND_CHANCE = 0.05
IGNORES_AT_MOST, IGNORES_IN_WORDS = 0.5, "half"  # share of chance; below it that scale depends on the width
NO_TOKENS = "The token embedding isn't in this checkpoint."
Share = RawAndFolded | LayerShare


def _beyond(share: float, by_chance: float) -> float:
    """Return how much of what chance leaves a share takes: 0 by chance, 1 where it is all."""
    return (share - by_chance) / (1 - by_chance)


def _null_beyond(stored: StoredChance | None, by_chance: float, of: float = 1.0) -> Chance | None:
    found = chance(stored)
    if found is None:
        return None
    median, limit = (_beyond(value / of, by_chance) for value in (found.median, found.limit))
    return replace(found, median=median, limit=limit)


def _judged(found: Share) -> float | None:
    """Return a number with the gain folded in, which is what the model computes with; raw where no norm is before."""
    return found["raw"] if found["folded"] is None else found["folded"]


def _raw_beside(*found: Share | None) -> str:
    raw = [share(one["raw"]) for one in found if one and one["raw"] is not None and one["folded"] is not None]
    return f" ({listed(raw)} in the raw weights)" if raw else ""


def _reads_positions(measured: Measurements[AttentionMetrics]) -> Tested:
    metrics = measured.metrics
    sides: list[RawAndFolded] = [
        {"raw": one["raw"] / CORNER, "folded": None if one["folded"] is None else one["folded"] / CORNER}
        for one in (metrics["top5"]["P"]["Q"], metrics["top5"]["P"]["K"])
    ]
    q, k = (_judged(side) or 0.0 for side in sides)
    by_chance = metrics["chance_top5"] / CORNER
    value, null = _beyond(min(q, k), by_chance), _null_beyond(metrics["chance"]["top5"], by_chance, CORNER)
    return Tested(
        value,
        f"P's top five directions capture {share(q)} and {share(k)} of the five leading directions of layer-0 Q and K"
        f"{_raw_beside(*sides)}; chance is {share(by_chance)}. {_scaled('the smaller share', value, null)}",
        form=two,
        chance=null,
    )


def _scaled(what: str, value: float, null: Chance | None) -> str:
    limit = "" if null is None else f"; the 99th percentile of chance is {two(null.limit)}"
    return f"On a scale from chance (0) to 1, {what} is {two(value)}{limit}."


def _share(measured: Measurements[AttentionMetrics], source: Source, matrix: Matrix) -> LayerShare | None:
    shares = (measured.metrics["shares"][source] or {}).get(matrix, [])
    return next((one for one in shares if one["layer"] == 0 and _judged(one) is not None), None)


def _reads_tokens(measured: Measurements[AttentionMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    if metrics["shares"]["E"] is None:
        return Untested(NO_TOKENS)
    names: tuple[Matrix, ...] = ("Q", "K", "V")
    found = [one for name in names if (one := _share(measured, "E", name)) is not None]
    if len(found) < len(names):
        return Untested("A matrix of layer 0 is all zeros.")
    return _shares(metrics, found, "layer-0 Q, K and V", "E's", "reads_tokens")


def _writes_positions(measured: Measurements[AttentionMetrics]) -> Tested | Untested:
    found = _share(measured, "P", "O")
    if found is None:
        return Untested("The output matrix of layer-0 attention is all zeros.")
    return _shares(measured.metrics, [found], "layer-0 O", "P's", "writes_positions")


def _mlp_reads_tokens(measured: Measurements[AttentionMetrics]) -> Tested | Untested:
    if measured.metrics["shares"]["E"] is None:
        return Untested(NO_TOKENS)
    found = _share(measured, "E", "MLP in")
    if found is None:
        return Untested("The MLP matrix of layer 0 isn't in this checkpoint.")
    return _shares(measured.metrics, [found], "the layer-0 MLP's input", "E's", "mlp_reads_tokens")


def _shares(
    metrics: AttentionMetrics, found: list[LayerShare], of: str, whose: str, null: ReadNull
) -> Tested | Untested:
    if metrics["chance_share"] >= 1:
        return Untested(f"The model has only {metrics['k']} directions in all.")
    by_chance, shares = metrics["chance_share"], [_judged(one) or 0.0 for one in found]
    value, drawn = _beyond(min(shares), by_chance), _null_beyond(metrics["chance"][null], by_chance)
    each = listed([share(one) for one in shares])
    return Tested(
        value,
        f"{whose} top {metrics['k']} directions hold {each} of the energy of {of}{_raw_beside(*found)}; chance "
        f"is {share(by_chance)}. {_scaled('this share' if len(found) == 1 else 'the smallest share', value, drawn)}",
        form=two,
        chance=drawn,
    )


def _mlp_ignores(measured: Measurements[AttentionMetrics]) -> Tested | Untested:
    metrics, found = measured.metrics, _share(measured, "P", "MLP in")
    value = None if found is None else _judged(found)
    if value is None:
        return Untested("The MLP matrix of layer 0 isn't in this checkpoint.")
    by_chance = metrics["chance_share"]
    return Tested(
        value,
        f"P's top {metrics['k']} directions hold {share(value)} of the energy of the layer-0 MLP's input"
        f"{_raw_beside(found)}; chance is {share(by_chance)}.",
        form=share,
        chance=chance(metrics["chance"]["mlp_reads_positions"]),
        holds_at=IGNORES_AT_MOST * by_chance,
    )


def _with_tokens(measured: Measurements[AttentionMetrics]) -> Tested | Untested:
    kernels = measured.metrics["token_kernels"]
    if kernels is None:
        there = measured.metrics["shares"]["E"]
        return Untested("Tokens can't be added to these positions." if there else NO_TOKENS)
    null = chance(measured.metrics["chance"]["previous_token_with_tokens"])
    return _best(kernels["heads"], pair(kernels["interval_of_best"]), null, "with tokens added to positions")


def _by_position_alone(measured: Measurements[AttentionMetrics]) -> Tested:
    kernels = measured.metrics["positional_kernels"]
    null = chance(measured.metrics["chance"]["previous_token"])
    return _best(kernels["heads"], pair(kernels["interval_of_best"]), null, "by position alone")


def _best(
    heads: Sequence[Head] | Sequence[TokenHead], interval: tuple[float, float] | None, null: Chance | None, how: str
) -> Tested:
    found = [head for head in heads if head["previous_token_head"]]
    best = heads[best_of(heads)]
    who = {0: "No head attends", 1: "One head attends"}.get(len(found), f"{len(found)} heads attend")
    limit = ""
    if null is not None:
        limit = f"; random keys would get {share(null.median)} (99th percentile {share(null.limit)})"
    return Tested(
        best["weight_at_1"],
        f"{who} mainly to the previous token {how}. L{best['layer']}H{best['head']} gives it the most, "
        f"{share(best['weight_at_1'])}{limit}.{_beyond_layer_0(found)}{_elsewhere(best)}",
        form=share,
        chance=null,
        interval=interval,
        extra_condition_met=best["peak_offset"] == 1,
    )


def _elsewhere(best: Head | TokenHead) -> str:
    if best["peak_offset"] == 1 or best["weight_at_1"] < SMALLEST_WEIGHT:
        return ""
    return f" Its attention must peak there, but peaks at offset {best['peak_offset']}."


def _beyond_layer_0(heads: Sequence[Head | TokenHead]) -> str:
    deeper = sum(head["layer"] > 0 for head in heads)
    if not deeper:
        return ""
    some = f"{deeper} of these {len(heads)} heads {'is' if deeper == 1 else 'are'}"
    are = "It is" if len(heads) == 1 else f"All {deeper} heads are" if deeper == len(heads) else some
    return f" {are} beyond layer 0, where the input is no longer P."


RULES = (
    Rule(
        id="qk-read-positions",
        short="Q, K read P",
        statement="Layer-0 queries and keys read P's top directions more than expected by chance.",
        value="smaller share of Q's and K's five leading directions in P's, gain folded in, beyond chance 5/d",
        holds=BEYOND_CHANCE,
        unit="excess over chance",
        test=_reads_positions,
    ),
    Rule(
        id="qkv-read-tokens",
        short="Q, K, V read E",
        statement="Layer-0 queries, keys and values read the tokens' top directions more than expected by chance.",
        value="smallest share of Q, K and V in the top k directions of E, gain folded in, beyond chance k/d",
        holds=BEYOND_CHANCE,
        unit="excess over chance",
        test=_reads_tokens,
    ),
    Rule(
        id="writes-positions",
        short="O writes P",
        statement="Layer-0 attention writes into the positions' directions more than expected by chance.",
        value="layer-0 O share in the top k directions of P, beyond chance k/d",
        holds=BEYOND_CHANCE,
        unit="excess over chance",
        test=_writes_positions,
    ),
    Rule(
        id="mlp-reads-tokens",
        short="MLP reads E",
        statement="The layer-0 MLP reads the tokens' top directions more than expected by chance.",
        value="layer-0 MLP-in share in the top k directions of E, gain folded in, beyond chance k/d",
        holds=BEYOND_CHANCE,
        unit="excess over chance",
        test=_mlp_reads_tokens,
    ),
    Rule(
        id="mlp-ignores-positions",
        short="MLP ignores P",
        statement="The layer-0 MLP reads P's top directions less than half as much as expected by chance.",
        value="layer-0 MLP-in share in the top k directions of P, gain folded in",
        sense="at most",
        unit="share of energy",
        holds_as=f"{IGNORES_IN_WORDS} its chance value k/d",
        test=_mlp_ignores,
    ),
    Rule(
        id="previous-token-head",
        short="previous-token head",
        statement="Some head attends mainly to the previous token by position alone.",
        value="best mean weight at offset 1 of any head, positions alone",
        holds=SMALLEST_WEIGHT,
        unit="attention weight",
        also="and its kernel peaks there",
        test=_by_position_alone,
    ),
    Rule(
        id="previous-token-with-tokens",
        short="previous token, with E",
        statement="With tokens added to positions, some head attends mainly to the previous token.",
        value="best mean weight at offset 1 of any head, with random tokens added to positions",
        holds=SMALLEST_WEIGHT,
        unit="attention weight",
        also="and its kernel peaks there",
        test=_with_tokens,
    ),
)
