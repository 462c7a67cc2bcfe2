import numpy as np

from generators.base.text import in_units, share, two
from generators.findings.judging import Rule, Tested, Untested, strictest
from generators.findings.measured import Measurements
from generators.findings.nulls import chance, drawn
from generators.findings.position_line.costs import FEWEST_OTHERS
from generators.findings.position_line.measure import LineRow, PositionLineMetrics

STRAIGHT = {"holds": 0.8, "partly": 0.6}  # share of the curve's variance in its first component
CORRELATION = {"holds": 0.95, "partly": 0.9}  # correlation of that component with the position
CARRIED = {"holds": 0.5, "partly": 0.25}  # share of the curve's variance in one channel
RELIABLE = 0.9  # correlation of the curves from both halves of the text; lower values mean noise


def middle_of(metrics: PositionLineMetrics) -> LineRow:
    return metrics["layers"][metrics["middle"]]


def _noise(row: LineRow) -> Untested | None:
    if row["reliability"] >= RELIABLE:
        return None
    return Untested(
        f"Before layer {row['layer']}, the curves of positions computed from each half of the text correlate at "
        f"{two(row['reliability'], RELIABLE)}; below {RELIABLE:g}, a curve's shape is mostly noise."
    )


def _line(measured: Measurements[PositionLineMetrics]) -> Tested | Untested:
    row = middle_of(measured.metrics)
    if noise := _noise(row):
        return noise
    found = strictest(measured.metrics["straight_by_chance"])
    by_chance = "" if found is None else f" {found.null.capitalize()}: 99th percentile {share(found.limit)}."
    return Tested(
        row["line_share"],
        f"Before layer {row['layer']}, the first component holds {share(row['line_share'])} of the variance of the "
        f"curve of positions and correlates with position at {two(row['r'], *CORRELATION.values())}"
        f"{_not_in_step(row)}.{by_chance}",
        form=share,
        chance=found,
        interval=(row["line_low"], row["line_high"]),
        extra_condition_met=row["r"] >= CORRELATION["holds"],
        partly_condition_met=row["r"] >= CORRELATION["partly"],
    )


def _not_in_step(row: LineRow) -> str:
    if row["r"] >= CORRELATION["holds"] or row["line_share"] < STRAIGHT["partly"]:
        return ""
    to_hold = " to hold" if row["r"] >= CORRELATION["partly"] else ""
    needed = CORRELATION["holds" if to_hold else "partly"]
    return f", where {needed:g} is needed{to_hold}"


def _carried(measured: Measurements[PositionLineMetrics]) -> Tested | Untested:
    row, by_chance = middle_of(measured.metrics), measured.metrics["channel_by_chance"]
    if noise := _noise(row):
        return noise
    return Tested(
        row["channel_share"],
        f"Before layer {row['layer']}, channel {row['channel']} holds {share(row['channel_share'])} of the variance "
        f"of the curve of positions; after random rotations of the stream, the strongest channel holds "
        f"{share(by_chance['median'])}.",
        form=share,
        chance=chance(by_chance),
        interval=(row["channel_low"], row["channel_high"]),
    )


def _needed(measured: Measurements[PositionLineMetrics]) -> Tested | Untested:
    cost, row = measured.metrics["cost"], middle_of(measured.metrics)
    limit = measured.metrics["channel_by_chance"]["limit"]
    if row["channel_share"] <= limit:
        return Untested(
            f"No channel carries position: channel {row['channel']} holds {share(row['channel_share'])} of the "
            f"curve, within chance (99th percentile {share(limit)})."
        )
    if len(cost["others"]) < FEWEST_OTHERS:
        return Untested(
            f"Only {len(cost['others'])} other channels were fixed, too few to say how rare such a cost is."
        )
    others = np.array(cost["others"])
    found = drawn("other channels", others)
    held = cost["at_its_mean"]
    dearer = int(np.sum(others >= cost["swept"]))
    unit = in_units(cost["unit"])
    return Tested(
        cost["swept"],
        f"Fixing channel {cost['channel']} at its mean costs {two(held['mean'])} {unit}. We also fixed {len(others)} "
        f"other channels, one at a time. On those windows, it costs {two(cost['swept'])}; {dearer or 'none'} of the "
        f"others cost{'s' if dearer < 2 else ''} more, and their median is {two(found['median'])}.",
        form=two,
        chance=chance(found),
        holds_at=found["limit"],
        extra_condition_met=not dearer,
    )


RULES = (
    Rule(
        id="position-is-a-line",
        short="a line at the middle",
        statement="At the middle layer, positions form a line.",
        value="share of the variance of position means in their first component at layer L/2",
        holds=STRAIGHT["holds"],
        partly=STRAIGHT["partly"],
        unit="of variance",
        also=f"that component correlates with the position at {CORRELATION['holds']:g} or more (partly: "
        f"{CORRELATION['partly']:g})",
        test=_line,
    ),
    Rule(
        id="one-channel-carries-position",
        short="one channel",
        statement="One channel carries position.",
        value="largest share of a channel in the variance of position means at layer L/2",
        holds=CARRIED["holds"],
        partly=CARRIED["partly"],
        unit="of variance",
        test=_carried,
    ),
    Rule(
        id="position-channel-needed",
        short="that channel needed",
        statement="The model needs the channel that carries most of position.",
        value="cost of fixing that channel at its mean",
        holds_as="what 99 % of the other channels cost",
        also="no other channel costs as much on the same windows",
        test=_needed,
    ),
)
