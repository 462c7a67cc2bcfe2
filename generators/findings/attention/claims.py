from collections.abc import Callable, Iterator
from dataclasses import replace

from generators.base.text import share, two
from generators.findings.attention.heads import SMALLEST_WEIGHT, Kernels, best_of
from generators.findings.attention.measure import (
    CORNER,
    READING,
    AttentionMetrics,
    LayerShare,
    Matrix,
    RawAndFolded,
    Source,
    Turned,
    TurnedBoth,
)
from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts, attention_by_offset
from generators.findings.judging import Evidence, Untested, beyond_chance, claim, clearly_beyond
from generators.findings.measured import Measurements, StoredChance
from generators.findings.nulls import strictest

BEYOND_CHANCE = 0.05  # of the way from chance to all
IGNORES_AT_MOST = 0.5  # share of chance, "half" in words; below it that scale depends on the width
CHOICE = "whether the norm's gain is folded in"
RAW = "in the raw weights"
Judge = Callable[[float | None, Turned | None], Evidence | None]


def _judged(found: RawAndFolded | LayerShare, turned: TurnedBoth, of: Judge) -> Evidence | None:
    """Return what a claim makes of the matrix that the model computes with, and beside it of the raw one."""
    raw, folded = of(found["raw"], turned["raw"]), of(found["folded"], turned["folded"])
    return raw if raw is None or folded is None else replace(folded, otherwise={RAW: raw}, choice=CHOICE)


def _reading(matrix: Matrix) -> Callable[[AttentionMetrics], Evidence | Untested]:
    def reads(m: AttentionMetrics) -> Evidence | Untested:
        if m["shares"]["P"] is None:
            return Untested("no-positions")
        found, turned = m["reads"].get(matrix), m["chance"]["turned"].get(matrix)
        if found is None or turned is None:
            return Untested("zeros")

        def of(value: float | None, chance: Turned | None) -> Evidence | None:
            null = None if chance is None else chance["read"]
            if value is None or null is None:
                return None
            return Evidence(value, chance=null, holds_at=clearly_beyond(null))

        judged = _judged(found, turned, of)
        aligned = m["top5"]["P"][matrix]["raw"] / CORNER
        said = {"aligned": aligned, "by_chance": m["chance_top5"] / CORNER}
        return Untested("zeros") if judged is None else replace(judged, said={**judged.said, **said})

    return reads


def _share(m: AttentionMetrics, source: Source, matrix: Matrix) -> tuple[LayerShare, TurnedBoth] | Untested:
    shares, turned = m["shares"][source], m["chance"]["turned"].get(matrix)
    if shares is None:
        return Untested("no-positions" if source == "P" else "no-tokens")
    if source == "P" and "directions_of_P" in m:
        return Untested("low-rank")
    first = next((row for row in shares.get(matrix, []) if row["layer"] == 0), None)
    return Untested("no-matrix") if first is None or turned is None else (first, turned)


def _lying(source: Source, matrix: Matrix) -> Callable[[AttentionMetrics], Evidence | Untested]:
    """Return the rule of a claim that a matrix of layer 0 lies in the strongest directions of P or E."""

    def lies(m: AttentionMetrics) -> Evidence | Untested:
        found, by_chance = _share(m, source, matrix), m["chance_share"]
        if isinstance(found, Untested) or by_chance >= 1:
            return found if isinstance(found, Untested) else Untested("few-directions")

        def of(share: float | None, chance: Turned | None) -> Evidence | None:
            null = None if chance is None else chance["most"]
            if share is None or null is None:
                return None
            median, limit = (beyond_chance(value, by_chance) for value in (null["median"], null["limit"]))
            scaled: StoredChance = {**null, "median": median, "limit": limit}
            holds_at = max(BEYOND_CHANCE, clearly_beyond(scaled))
            return Evidence(beyond_chance(share, by_chance), {"share": share}, chance=scaled, holds_at=holds_at)

        return _judged(*found, of) or Untested("no-matrix")

    return lies


q_reads_positions, k_reads_positions = (
    claim(f"{matrix.lower()}-reads-positions", form=lambda *values: f"{two(*values)} times")(_reading(matrix))
    for matrix in READING
)
q_reads_tokens, k_reads_tokens, v_reads_tokens = (
    claim(f"{matrix.lower()}-reads-tokens", holds=BEYOND_CHANCE, form=share)(_lying("E", matrix))
    for matrix in (*READING, "V")
)
writes_positions = claim("writes-positions", holds=BEYOND_CHANCE, form=share)(_lying("P", "O"))
mlp_reads_tokens = claim("mlp-reads-tokens", holds=BEYOND_CHANCE, form=share)(_lying("E", "MLP in"))


@claim("mlp-ignores-positions", sense="at most", form=share)
def mlp_ignores(m: AttentionMetrics) -> Evidence | Untested:
    found = _share(m, "P", "MLP in")
    if isinstance(found, Untested):
        return found

    def of(share: float | None, chance: Turned | None) -> Evidence | None:
        null = None if chance is None else chance["least"]
        return None if share is None else Evidence(share, chance=null, holds_at=IGNORES_AT_MOST * m["chance_share"])

    return _judged(*found, of) or Untested("no-matrix")


@claim("previous-token-head", holds=SMALLEST_WEIGHT, form=share)
def by_position_alone(m: AttentionMetrics) -> Evidence | Untested:
    kernels = m["positional_kernels"]
    if kernels is None:
        return Untested("no-positions")
    return _best(kernels, m["chance"]["previous_token"])


@claim("previous-token-with-tokens", holds=SMALLEST_WEIGHT, form=share)
def with_tokens(m: AttentionMetrics) -> Evidence | Untested:
    kernels = m["token_kernels"]
    if m["positional_kernels"] is None:
        return Untested("no-positions")
    if kernels is None:
        return Untested("not-added" if m["shares"]["E"] else "no-tokens")
    return _best(kernels, m["chance"]["previous_token_with_tokens"])


def _best(kernels: Kernels, chance: StoredChance | None) -> Evidence:
    heads = kernels["heads"]
    best = heads[best_of(heads)]
    return Evidence(
        best["weight_at_1"],
        {"best": best, "layers": [head["layer"] for head in heads if head["previous_token_head"]]},
        chance=chance,
        interval=kernels["interval_of_best"],
        extra_condition_met=best["peak_offset"] == 1,
    )


def heads(found: Measurements[AttentionMetrics], count: int | None) -> Iterator[Fact]:
    arrays = found.arrays
    both = (
        ("by position alone", "", found.metrics["positional_kernels"]),
        ("with tokens added to positions", "token_", found.metrics["token_kernels"]),
    )
    for how, prefix, kernels in both:
        if kernels is None or len(kernels["heads"]) != count:
            continue
        each = sorted(kernels["heads"], key=lambda row: (row["layer"], row["head"]))
        offsets, means = arrays[f"{prefix}kernel_offsets"], arrays[f"{prefix}kernels"]
        usual = None if prefix else arrays["uniform_kernel"]
        yield attention_by_offset(how, offsets, means, None, usual, "uniform attention")
        if not prefix:
            yield EntityNumbers(f"strongest offset {how}", [row["peak_offset"] for row in each])
        weights = [row["weight_at_1"] for row in each]
        yield EntityNumbers(f"weight on the previous token, {how}", weights, order="largest")
        for index, row in enumerate(each):
            if row["previous_token_head"]:
                yield EntityNote(index, f"A previous-token head {how} (weight {share(row['weight_at_1'])}).")


@claim("query-bias-channel", holds=5.0, partly=3.0, form=two, with_arrays=True)
def favors_channel(measured: Measurements[AttentionMetrics]) -> Evidence | Untested:
    found = measured.metrics["query_bias"]
    if found is None:
        return Untested("no-query-bias")
    sides = {"raw": found["raw"], "folded": found["folded"] or found["raw"]}
    rows = measured.tables["query_bias"].named()
    led = {
        form: [row["layer"] for row in rows if (row[form] or row["raw"])[0] == side["channel"]]
        for form, side in sides.items()
    }
    least = min(side["lead"] for side in sides.values())
    chance = strictest(side["chance"] for side in sides.values())
    return Evidence(least, {"bias": found, "led": led}, chance=chance)


FACTS = Facts(entities={"head": heads})
