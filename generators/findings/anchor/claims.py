import numpy as np

from generators.base.text import in_units, share, two
from generators.findings.anchor.measure import AnchorMetrics, AnchorStageRow
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements
from generators.findings.nulls import chance

RESTS = {"holds": 0.3, "partly": 0.15}  # share of attention
MASSIVE = 100.0  # multiple of the median
ELSEWHERE = 10.0  # multiple of the same channel at other positions
NEEDED = {"holds": 0.5, "partly": 0.25}  # share of the cost of removing all positions
FEWEST_ERRORS = 3


def massive(rows: list[AnchorStageRow]) -> AnchorStageRow:
    """Return the depth at which some channel is largest at the first token, relative to the median."""
    return max(rows, key=lambda row: row["over_median"])


def _rests(measured: Measurements[AnchorMetrics]) -> Tested:
    metrics = measured.metrics
    row = max(metrics["heads"], key=lambda row: row["on_first"])
    return Tested(
        row["on_first"],
        f"L{row['layer']}H{row['head']} gives the first token {share(row['on_first'])} of its attention, the most of "
        f"all heads. No head gives another early position more than {share(metrics['other_positions'])}.",
        form=share,
        baseline=metrics["uniform"],
        interval=(row["low"], row["high"]),
        extra_condition_met=row["on_first"] > metrics["other_positions"],
    )


def _massive(measured: Measurements[AnchorMetrics]) -> Tested:
    row = massive(measured.metrics["stages"])
    return Tested(
        row["over_median"],
        f"At layer {row['layer']}, channel {row['channel']} at the first token is {two(row['over_median'])} times "
        f"the median activation. That is {two(row['over_elsewhere'])} times its size at other positions"
        f"{_as_elsewhere(row)}. At other positions, the largest channel is {two(row['others_median'])} times the "
        "median.",
        form="{:.0f} times",
        chance=chance(measured.metrics["massive_by_chance"]),
        extra_condition_met=row["over_elsewhere"] >= ELSEWHERE,
    )


def _as_elsewhere(row: AnchorStageRow) -> str:
    few = row["over_median"] >= MASSIVE and row["over_elsewhere"] < ELSEWHERE
    return f", and at least {ELSEWHERE:g} times is needed" if few else ""


def _needed(measured: Measurements[AnchorMetrics]) -> Tested | Untested:
    rows = measured.metrics["rows"]
    if rows is None:
        return Untested("This model has no position embedding whose first row could be replaced.")
    if rows["all_rows"]["mean"] <= FEWEST_ERRORS * rows["all_rows"]["standard_error"]:
        return Untested("Removing all positions has no measurable cost on these windows.")
    most = float(np.max(rows["others"]))
    return Tested(
        rows["share"],
        f"Replacing row 0 of P by the mean row costs {two(rows['first_by_mean']['mean'])} {in_units(rows['unit'])}, "
        f"{share(rows['share'])} of the cost of replacing all rows. We also replaced {len(rows['others'])} other "
        f"rows, one at a time. On those windows, row 0 costs {two(rows['few_first'])}, and the most costly of the "
        f"others {two(most, rows['few_first'])}{'' if rows['few_first'] > most else '; row 0 must cost more'}.",
        form=share,
        interval=(rows["share_low"], rows["share_high"]),
        extra_condition_met=rows["few_first"] > most,
    )


RULES = (
    Rule(
        id="head-rests-on-first",
        short="attention sink",
        statement="Some head uses the first token as an attention sink.",
        value="largest mean attention of a head to the first token",
        holds=RESTS["holds"],
        partly=RESTS["partly"],
        unit="of attention",
        also="more than any head gives another early position",
        test=_rests,
    ),
    Rule(
        id="massive-at-first",
        short="massive at the first",
        statement="One channel is massive at the first token.",
        value="largest mean |activation| at position 0 over the median |activation|, at any layer",
        holds=MASSIVE,
        unit="times the median",
        also=f"at least {ELSEWHERE:g} times the same channel at other positions",
        test=_massive,
    ),
    Rule(
        id="position-0-needed",
        short="position 0 needed",
        statement="The model depends mostly on position 0.",
        value="cost of replacing row 0 by the mean row, as a share of replacing all rows",
        holds=NEEDED["holds"],
        partly=NEEDED["partly"],
        unit="of the cost of removing all positions",
        also="more than any other single row",
        test=_needed,
    ),
)
