from collections.abc import Iterator

import numpy as np

from generators.base.text import in_units, share, two
from generators.findings.facts import EntityNote, Fact, Facts
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements
from generators.findings.nulls import drawn, strictest
from generators.findings.position_line.measure import FEWEST_OTHERS, LineRow, PositionLineMetrics

CORRELATION = {"holds": 0.95, "partly": 0.9}  # correlation of the curve's first component with the position
RELIABLE = 0.9  # correlation of the curves from both halves of the text; lower values mean noise


def middle_of(m: PositionLineMetrics) -> LineRow:
    return m["layers"][m["middle"]]


def _noise(row: LineRow) -> Untested:
    return Untested("noise", {"row": row, "reliable": RELIABLE})


@claim("position-is-a-line", holds=0.8, partly=0.6, form=share, steps=CORRELATION)
def line(m: PositionLineMetrics) -> Evidence | Untested:
    row = middle_of(m)
    if row["reliability"] < RELIABLE:
        return _noise(row)
    return Evidence(
        row["line_share"],
        {"row": row},
        chance=strictest(m["straight_by_chance"]),
        interval=(row["line_low"], row["line_high"]),
        extra_condition_met=row["r"] >= CORRELATION["holds"],
        partly_condition_met=row["r"] >= CORRELATION["partly"],
    )


@claim("one-channel-carries-position", holds=0.5, partly=0.25, form=share)
def carried(m: PositionLineMetrics) -> Evidence | Untested:
    row = middle_of(m)
    if row["reliability"] < RELIABLE:
        return _noise(row)
    interval = (row["channel_low"], row["channel_high"])
    return Evidence(row["channel_share"], {"row": row}, chance=m["channel_by_chance"], interval=interval)


@claim("position-channel-needed", form=two)
def needed(m: PositionLineMetrics) -> Evidence | Untested:
    cost, row = m["cost"], middle_of(m)
    if row["channel_share"] <= m["channel_by_chance"]["limit"]:
        return Untested("no-channel", {"row": row})
    if len(cost["others"]) < FEWEST_OTHERS:
        return Untested("few-others")
    others = np.array(cost["others"])
    found = drawn("other channels", others)
    dearer = int(np.sum(others >= cost["swept"]))
    said = {"dearer": dearer}
    return Evidence(cost["swept"], said, chance=found, holds_at=found["limit"], extra_condition_met=not dearer)


def channels(found: Measurements[PositionLineMetrics], count: int | None) -> Iterator[Fact]:
    row, cost = middle_of(found.metrics), found.metrics["cost"]
    if row["reliability"] < RELIABLE:
        return
    held = two(cost["at_its_mean"]["mean"])
    yield EntityNote(
        row["channel"],
        f"At the middle layer, it holds {share(row['channel_share'])} of the variance of position means (hidden "
        "states averaged over texts), more than any other channel. "
        f"Fixing it at its mean costs {held} {in_units(cost['unit'])}.",
        role="line",
        claim="one-channel-carries-position",
    )


FACTS: Facts[PositionLineMetrics] = Facts(entities={"channel": channels})
