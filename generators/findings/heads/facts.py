from collections.abc import Iterator
from typing import Any

from generators.base.text import share
from generators.findings.facts import EntityLines, EntityNote, EntityNumbers, Fact, Facts
from generators.findings.heads.measure import HeadsMetrics
from generators.findings.measured import Measurements

ON_TEXT = ("on text", "on text, positions in groups of ten", "on text, positions removed")
RANKS = ("first", "second", "third")  # for heads listed by name


def heads(found: Measurements[HeadsMetrics], count: int | None) -> Iterator[Fact]:
    each = sorted(found.metrics["heads"], key=lambda row: (row["layer"], row["head"]))
    if not each or len(each) != count:
        return
    offsets, attention = found.arrays.get("offsets"), found.arrays.get("attention")
    if offsets is not None and attention is not None and attention.shape[1] == count:
        for says, of_heads in zip(ON_TEXT, attention, strict=False):
            yield EntityLines(
                drawing="Mean attention by offset",
                across="offset: tokens back from the query",
                says=says,
                at=offsets,
                values=of_heads,
                figure="heads-by-offset",
            )
    on_text = [row["on_text"] for row in each]
    weights: list[list[Any]] = [on_text, [row["in_groups"] for row in each], [row["removed"] for row in each]]
    for says, values in zip(ON_TEXT, weights, strict=True):
        yield EntityNumbers(f"weight on the previous token, {says}", values, "heads-on-text", "largest")
    first = [row["on_first_token"] for row in each]
    yield EntityNumbers("weight on the first token, on text", first, order="largest")
    yield EntityNumbers("strongest offset on text", [row["strongest_offset"] for row in each])
    for rank, index in zip(RANKS, sorted(range(count), key=lambda i: -on_text[i]), strict=False):
        says = f"Ranks {rank} among all heads in attention to the previous token on text: {share(on_text[index])}."
        yield EntityNote(index, says)


FACTS = Facts(entities={"head": heads})
