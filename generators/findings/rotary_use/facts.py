from collections.abc import Iterator

from generators.findings.facts import EntityNumbers, Fact, Facts
from generators.findings.measured import Measurements
from generators.findings.rotary_use.measure import RotaryUseMetrics


def heads(found: Measurements[RotaryUseMetrics], count: int | None) -> Iterator[Fact]:
    rows = found.metrics["heads"]
    if rows is not None and len(rows) == count:
        shares = [row["fast_share"] for row in rows]
        yield EntityNumbers("share of scores from fast rotary pairs", shares, "rotary-pairs", "largest")


FACTS: Facts[RotaryUseMetrics] = Facts(entities={"head": heads})
