from collections.abc import Iterator, Sequence

from generators.base.text import share
from generators.findings.attention.heads import Head
from generators.findings.attention.measure import AttentionMetrics
from generators.findings.attention.with_tokens import TokenHead
from generators.findings.facts import EntityLines, EntityNote, EntityNumbers, Fact, Facts
from generators.findings.measured import Measurements

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
        yield EntityLines(
            drawing="Mean attention by offset",
            across="offset: tokens back from the query",
            says=says,
            at=offsets,
            values=weights,
            figure=figure,
            usual=found.arrays.get("uniform_kernel") if says == ALONE else None,
            usual_says="uniform attention",
        )


FACTS = Facts(entities={"head": heads})
