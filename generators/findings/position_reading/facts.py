from collections.abc import Iterator

from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts
from generators.findings.measured import Measurements
from generators.findings.position_reading.claims import strong_heads
from generators.findings.position_reading.measure import PositionReadingMetrics


def heads(found: Measurements[PositionReadingMetrics], count: int | None) -> Iterator[Fact]:
    each = found.metrics["heads"]
    yield EntityNumbers(
        "how strongly it reads positions, in times the median head of layer 0",
        {row["head"]: row["times_median"] for row in each if row["times_median"] is not None},
        "position-reading",
        "largest",
    )
    for row in strong_heads(each):
        yield EntityNote(
            row["head"], f"It reads positions {row['times_median']:.2g} times as strongly as the median head."
        )


FACTS = Facts(entities={"head": heads})
