from collections.abc import Iterator

from generators.base.text import share, two
from generators.findings.facts import EntityNote, Fact, Facts
from generators.findings.measured import Measurements
from generators.findings.position_line.claims import middle_of
from generators.findings.position_line.measure import PositionLineMetrics


def channels(found: Measurements[PositionLineMetrics], count: int | None) -> Iterator[Fact]:
    row, cost = middle_of(found.metrics), found.metrics["cost"]
    held = two(cost["at_its_mean"]["mean"])
    yield EntityNote(
        row["channel"],
        f"At the middle layer it carries more of the position than any other channel, {share(row['channel_share'])} "
        f"of the variance of position means. Fixing it at its mean costs {held} ({cost['unit']}).",
        role="line",
        claim="one-channel-carries-position",
    )


FACTS: Facts[PositionLineMetrics] = Facts(entities={"channel": channels})
