from collections.abc import Iterator

from generators.findings.anchor.claims import massive
from generators.findings.anchor.measure import AnchorMetrics
from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts
from generators.findings.measured import Measurements


def heads(found: Measurements[AnchorMetrics], count: int | None) -> Iterator[Fact]:
    on_first = [row["on_first"] for row in found.metrics["heads"]]
    if len(on_first) == count:
        yield EntityNumbers("attention to the first token, late queries", on_first, "anchor-heads", "largest")


def channels(found: Measurements[AnchorMetrics], count: int | None) -> Iterator[Fact]:
    row = massive(found.metrics["stages"])
    yield EntityNote(
        row["channel"],
        f"At the first token it reaches {row['over_median']:.0f} times the median activation (layer {row['layer']}).",
        role="first token",
        claim="massive-at-first",
    )


FACTS: Facts[AnchorMetrics] = Facts(entities={"head": heads, "channel": channels})
