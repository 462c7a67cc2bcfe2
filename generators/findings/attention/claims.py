from collections.abc import Iterator, Sequence
from typing import Literal

from generators.base.text import share, two
from generators.findings.attention.heads import SMALLEST_WEIGHT, Head, best_of
from generators.findings.attention.measure import CORNER, AttentionMetrics, LayerShare, Matrix, RawAndFolded, Source
from generators.findings.attention.with_tokens import TokenHead
from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts, attention_by_offset
from generators.findings.judging import Evidence, Untested, claim, strictest
from generators.findings.measured import Interval, Measurements, StoredChance

ReadNull = Literal["reads_tokens", "writes_positions", "mlp_reads_tokens"]
# Of the energy or overlap that chance leaves to be had: (share - chance) / (1 - chance). One scale for all widths, on
# which chance is 0 and a matrix that lies in the directions as a whole is 1.
BEYOND_CHANCE = 0.05
IGNORES_AT_MOST = 0.5  # share of chance, "half" in words; below it that scale depends on the width
Share = RawAndFolded | LayerShare


def _beyond(share: float, by_chance: float) -> float:
    """Return how much of what chance leaves a share takes: 0 by chance, 1 where it is all."""
    return (share - by_chance) / (1 - by_chance)


def _null_beyond(stored: StoredChance | None, by_chance: float, of: float = 1.0) -> StoredChance | None:
    if stored is None:
        return None
    median, limit = (_beyond(value / of, by_chance) for value in (stored["median"], stored["limit"]))
    return {**stored, "median": median, "limit": limit}


def _judged(found: Share) -> float | None:
    """Return a number with the gain folded in, which is what the model computes with; raw where no norm is before."""
    return found["raw"] if found["folded"] is None else found["folded"]


def _raw_beside(*found: Share) -> list[float]:
    return [one["raw"] for one in found if one["raw"] is not None and one["folded"] is not None]


@claim("qk-read-positions", holds=BEYOND_CHANCE, form=two)
def reads_positions(m: AttentionMetrics) -> Evidence:
    sides: list[RawAndFolded] = [
        {"raw": one["raw"] / CORNER, "folded": None if one["folded"] is None else one["folded"] / CORNER}
        for one in (m["top5"]["P"]["Q"], m["top5"]["P"]["K"])
    ]
    q, k = (_judged(side) or 0.0 for side in sides)
    by_chance = m["chance_top5"] / CORNER
    said = {"q": q, "k": k, "by_chance": by_chance, "raw": _raw_beside(*sides)}
    return Evidence(_beyond(min(q, k), by_chance), said, chance=_null_beyond(m["chance"]["top5"], by_chance, CORNER))


def _share(m: AttentionMetrics, source: Source, matrix: Matrix) -> LayerShare | None:
    shares = (m["shares"][source] or {}).get(matrix, [])
    return next((one for one in shares if one["layer"] == 0 and _judged(one) is not None), None)


@claim("qkv-read-tokens", holds=BEYOND_CHANCE, form=two)
def reads_tokens(m: AttentionMetrics) -> Evidence | Untested:
    if m["shares"]["E"] is None:
        return Untested("no-tokens")
    names: tuple[Matrix, ...] = ("Q", "K", "V")
    found = [one for name in names if (one := _share(m, "E", name)) is not None]
    return Untested("zeros") if len(found) < len(names) else _smallest(m, found, "reads_tokens")


@claim("writes-positions", holds=BEYOND_CHANCE, form=two)
def writes_positions(m: AttentionMetrics) -> Evidence | Untested:
    found = _share(m, "P", "O")
    return Untested("zero-output") if found is None else _smallest(m, [found], "writes_positions")


@claim("mlp-reads-tokens", holds=BEYOND_CHANCE, form=two)
def mlp_reads_tokens(m: AttentionMetrics) -> Evidence | Untested:
    if m["shares"]["E"] is None:
        return Untested("no-tokens")
    found = _share(m, "E", "MLP in")
    return Untested("no-mlp") if found is None else _smallest(m, [found], "mlp_reads_tokens")


def _smallest(m: AttentionMetrics, found: list[LayerShare], null: ReadNull) -> Evidence | Untested:
    by_chance = m["chance_share"]
    if by_chance >= 1:
        return Untested("few-directions")
    shares = [_judged(one) or 0.0 for one in found]
    chance = _null_beyond(m["chance"][null], by_chance)
    return Evidence(_beyond(min(shares), by_chance), {"shares": shares, "raw": _raw_beside(*found)}, chance=chance)


@claim("mlp-ignores-positions", sense="at most", form=share)
def mlp_ignores(m: AttentionMetrics) -> Evidence | Untested:
    found = _share(m, "P", "MLP in")
    if found is None:
        return Untested("no-mlp")
    chance, holds_at = m["chance"]["mlp_reads_positions"], IGNORES_AT_MOST * m["chance_share"]
    return Evidence(_judged(found), {"raw": _raw_beside(found)}, chance=chance, holds_at=holds_at)


@claim("previous-token-head", holds=SMALLEST_WEIGHT, form=share)
def by_position_alone(m: AttentionMetrics) -> Evidence:
    kernels = m["positional_kernels"]
    return _best(kernels["heads"], kernels["interval_of_best"], m["chance"]["previous_token"])


@claim("previous-token-with-tokens", holds=SMALLEST_WEIGHT, form=share)
def with_tokens(m: AttentionMetrics) -> Evidence | Untested:
    kernels = m["token_kernels"]
    if kernels is None:
        return Untested("not-added" if m["shares"]["E"] else "no-tokens")
    return _best(kernels["heads"], kernels["interval_of_best"], m["chance"]["previous_token_with_tokens"])


def _best(
    heads: Sequence[Head] | Sequence[TokenHead], interval: Interval | None, chance: StoredChance | None
) -> Evidence:
    best = heads[best_of(heads)]
    return Evidence(
        best["weight_at_1"],
        {"best": best, "layers": [head["layer"] for head in heads if head["previous_token_head"]]},
        chance=chance,
        interval=interval,
        extra_condition_met=best["peak_offset"] == 1,
    )


ALONE, WITH_TOKENS = "by position alone", "with tokens added to positions"


def heads(found: Measurements[AttentionMetrics], count: int | None) -> Iterator[Fact]:
    alone, with_tokens = found.metrics["positional_kernels"], found.metrics["token_kernels"]
    each = sorted(alone["heads"], key=lambda row: (row["layer"], row["head"]))
    if len(each) == count:
        yield from _lines(found, ALONE, count)
        yield EntityNumbers(f"strongest offset {ALONE}", [row["peak_offset"] for row in each], "kernel-map")
        yield from _previous(each, ALONE)
    both = [] if with_tokens is None else sorted(with_tokens["heads"], key=lambda row: (row["layer"], row["head"]))
    if both and len(both) == count:
        yield from _lines(found, WITH_TOKENS, count)
        yield from _previous(both, WITH_TOKENS)


@claim("query-bias-channel", holds=5.0, partly=3.0, form=two)
def favors_channel(m: AttentionMetrics) -> Evidence | Untested:
    found = m["query_bias"]
    if found is None:
        return Untested("no-query-bias")
    sides = [found["raw"], found["folded"] or found["raw"]]
    least = min(side["lead"] for side in sides)
    return Evidence(least, {"bias": found}, chance=strictest(side["chance"] for side in sides))


def _previous(each: Sequence[Head] | Sequence[TokenHead], how: str) -> Iterator[Fact]:
    weights = [row["weight_at_1"] for row in each]
    yield EntityNumbers(f"weight on the previous token, {how}", weights, "kernel-map", "largest")
    for index, row in enumerate(each):
        if row["previous_token_head"]:
            yield EntityNote(index, f"A previous-token head {how} (weight {share(row['weight_at_1'])}).")


def _lines(found: Measurements[AttentionMetrics], says: str, count: int) -> Iterator[Fact]:
    prefix, figure = ("", "positional-kernels") if says == ALONE else ("token_", None)
    offsets, weights = found.arrays.get(f"{prefix}kernel_offsets"), found.arrays.get(f"{prefix}kernels")
    if offsets is not None and weights is not None and len(weights) == count:
        usual = found.arrays.get("uniform_kernel") if says == ALONE else None
        yield attention_by_offset(says, offsets, weights, figure, usual, "uniform attention")


RULES = (
    reads_positions,
    reads_tokens,
    writes_positions,
    mlp_reads_tokens,
    mlp_ignores,
    by_position_alone,
    with_tokens,
    favors_channel,
)
FACTS = Facts(entities={"head": heads})
