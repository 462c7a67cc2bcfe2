import numpy as np

from generators.base.text import in_units, share, two
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Chance, Measurements
from generators.findings.nulls import chance
from generators.findings.stream.measure import StageRow, StreamMetrics

RELIABLE = 0.9  # correlation of the curves from both halves of the windows
SHARE = {"holds": 0.05, "partly": 0.02}
# Share of the variance of a long random walk in many channels in its first three components, 6 / (pi k)^2 each.
WALK = float(sum(6 / (np.pi * k) ** 2 for k in (1, 2, 3)))
MARGIN = 0.2  # relative error of (limit - median) from 199 draws
FEW_ONES = 0.25  # share of what a typical direction has
NEEDS = {"holds": 2.0, "partly": 1.5}
LOW = {"holds": 0.9, "partly": round(WALK, 2)}


def _middle(metrics: StreamMetrics) -> StageRow:
    return metrics["layers"][metrics["middle"]]


def _reliable(row: StageRow) -> bool:
    return row["reliability"] is not None and row["reliability"] >= RELIABLE


def _last(measured: Measurements[StreamMetrics]) -> Tested:
    row = _middle(measured.metrics)
    return Tested(
        row["share"],
        f"At the middle layer (layer {row['layer']}), position explains {share(row['share'])} of the variance of "
        f"hidden states{_halves(row)}.",
        form=share,
        baseline=0.0,
        interval=(row["share_low"], row["share_high"]),
        extra_condition_met=_reliable(row),
    )


def _halves(row: StageRow) -> str:
    if row["reliability"] is None:
        return ""
    needed = "" if _reliable(row) else f", and {RELIABLE:g} is needed"
    return f"; the curves of both halves of the text correlate at {two(row['reliability'], RELIABLE)}{needed}"


def _low_dimensional(measured: Measurements[StreamMetrics]) -> Tested | Untested:
    row = _middle(measured.metrics)
    if not _reliable(row):
        return Untested("At the middle layer, the two halves of the text don't agree on a curve of positions.")
    return Tested(
        row["ev3"],
        f"At the middle layer (layer {row['layer']}), three components hold {share(row['ev3'])} of the curve's "
        f"variance; for a long random walk, it would be {share(WALK)}.",
        form=share,
        baseline=WALK,
        interval=(row["ev3_low"], row["ev3_high"]),
    )


def _apart(measured: Measurements[StreamMetrics]) -> Tested | Untested:
    row, chance = _middle(measured.metrics), measured.metrics["incoherence_by_chance"]
    if not _reliable(row):
        return Untested("At the middle layer, the two halves of the text don't agree on a curve of positions.")
    return Tested(
        row["incoherence"],
        f"At the middle layer (layer {row['layer']}), the largest |cosine| between the mean of a position and that "
        f"of a window is {two(row['incoherence'])}; with one side rotated at random, it is {two(chance['median'])} "
        "in the median.",
        form=two,
        chance=Chance("means of positions turned at random", chance["median"], chance["limit"], chance["draws"]),
        holds_at=chance["limit"] - MARGIN * (chance["median"] - chance["limit"]),
        partly_at=chance["median"],
        partly_limit=chance["median"],
    )


def _its_own(measured: Measurements[StreamMetrics]) -> Tested | Untested:
    if measured.metrics["has_position_embedding"]:
        return Untested("This model has position embeddings.")
    reliable = [row for row in measured.metrics["layers"][1:] if _reliable(row)]
    if not reliable:
        return Tested(None, "At no layer do the two halves of the text agree on a curve of positions.")
    row = max(reliable, key=lambda row: row["share"])
    return Tested(
        row["share"],
        f"Without position embeddings, position explains {share(row['share'])} of the variance at layer "
        f"{row['layer']}.",
        form=share,
        baseline=0.0,
        interval=(row["share_low"], row["share_high"]),
    )


def _all_ones(measured: Measurements[StreamMetrics]) -> Tested:
    found = measured.metrics["all_ones"]
    by_chance = found["chance"]
    layer = measured.metrics["middle"]
    return Tested(
        found["value"],
        f"At the middle layer (layer {layer}), the mean squared cosine of hidden states with the all-ones direction "
        f"is {two(found['value'])} times that with a typical direction; for 99 % of random directions, it is more "
        f"than {two(by_chance['limit'])} times.",
        form=two,
        baseline=1.0,
        chance=chance(by_chance),
        interval=(found["interval"][0], found["interval"][1]),
        holds_at=min(by_chance["limit"], FEW_ONES),
    )


def _mean(measured: Measurements[StreamMetrics]) -> Tested | Untested:
    found = measured.metrics["mean_removed"]
    unit = in_units(found["unit"])
    if found["times"] is None:
        return Untested("Shifts of that length in random directions cost the model nothing.")
    return Tested(
        found["times"],
        f"Removing the mean of what layer 0 reads costs {two(found['cost'])} {unit}. That is {two(found['times'])} "
        f"times as much as the costliest of {found['shifts']} random shifts of the same length "
        f"({two(found['random'])}).",
        form=two,
        baseline=1.0,
        interval=(found["times_low"], found["times_high"]),
        extra_condition_met=found["low"] > 0,
    )


RULES = (
    Rule(
        id="positions-last",
        short="persist to the middle",
        statement="Positions persist to the middle layer.",
        value="share of the variance at layer L/2 that position explains",
        holds=SHARE["holds"],
        partly=SHARE["partly"],
        unit="of variance",
        also=f"with a reliability of at least {RELIABLE:g}",
        test=_last,
    ),
    Rule(
        id="curve-stays-low-dimensional",
        short="three components",
        statement="The curve stays low-dimensional there.",
        value="EV3 of the position means at layer L/2",
        holds=LOW["holds"],
        partly=LOW["partly"],
        unit="of variance",
        test=_low_dimensional,
    ),
    Rule(
        id="positions-and-contexts-apart",
        short="apart from context",
        statement="Positions and contexts overlap less than expected by chance.",
        value="largest |cosine| of position means with window means at layer L/2",
        sense="at most",
        holds_as="what 99 % of random rotations exceed, less a fifth of its distance from their median, since the "
        "limit comes from 199 draws (partly: the median)",
        unit="cosine",
        test=_apart,
    ),
    Rule(
        id="makes-its-own-positions",
        short="makes its own",
        statement="Without position embeddings the model makes its own positions.",
        value="largest share of the variance at any layer that position explains",
        holds=SHARE["partly"],
        unit="of variance",
        also=f"with a reliability of at least {RELIABLE:g}",
        test=_its_own,
    ),
    Rule(
        id="avoids-all-ones",
        short="avoids all-ones",
        statement="The stream avoids the all-ones direction.",
        value="mean squared cosine of hidden states at layer L/2 with the all-ones vector, times d",
        sense="at most",
        holds_as=f"what 99 % of vectors of random signs exceed, and at most {FEW_ONES:g}",
        unit="times a typical direction's",
        test=_all_ones,
    ),
    Rule(
        id="needs-the-mean",
        short="needs the mean",
        statement="The model needs the mean of its embeddings.",
        value="cost of taking away the mean of what layer 0 reads, over that of the costliest random shift as long",
        holds=NEEDS["holds"],
        partly=NEEDS["partly"],
        unit="times a random shift's cost",
        also="and a cost whose interval is above 0",
        test=_mean,
    ),
)
