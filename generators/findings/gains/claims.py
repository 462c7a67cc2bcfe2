import numpy as np

from generators.base.sentences import first, listed
from generators.base.text import two
from generators.findings.gains.measure import SMALLEST_RATIO, GainsMetrics
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Chance, Measurements
from generators.findings.nulls import chance, pair
from generators.maths.channels import ConsistentChannel

SAME = "The first norm's gain is equal in all channels."
WITHOUT = "There is no position embedding to compare the gain with."
DOWN, DOWN_PARTLY = -0.50, -0.25  # correlation
MOST_NAMED = 4  # tied channels named in a sentence
# The channel must top at least so many layers, and at least one layer in so many.
LAYERS = {"holds": (3, 2), "partly": (2, 4)}


def _dials_down(measured: Measurements[GainsMetrics]) -> Tested | Untested:
    correlations = measured.metrics["correlation"]["ln1"]
    if "0" not in correlations:
        return Untested("There is no norm before the first attention, or its gain is missing from this checkpoint.")
    value = correlations["0"]
    if value is None:
        row = next(row for row in measured.tables["norms"].named() if (row["norm"], row["layer"]) == ("ln1", 0))
        alike = row["top_channels"] is None
        return Untested(SAME if alike else WITHOUT)
    null = chance(measured.metrics["chance"]["dials_down"])
    limit = (
        "" if null is None else f"; {null.null} would give {null.median:+z.2f} (1st percentile {null.limit:+z.2f})"
    )
    how = f"Layer 0's gains correlate with the position std of their channels at r = {value:+.2f}{limit}"
    return Tested(
        value,
        {"holds": f"{how}: layer 0 turns position channels down.", "fails": f"{how}."},
        form="{:.2f}",
        chance=null,
        interval=pair(measured.metrics["intervals"]["dials_down"]),
    )


def _one_channel(measured: Measurements[GainsMetrics]) -> Tested | Untested:
    found = measured.metrics["consistent_channel"]["ln2"]
    if found is None:
        there = measured.metrics["correlation"]["ln2"]
        return Untested(
            f"The gains of ln2 are {'equal in all channels' if there else 'missing from this checkpoint'}."
        )
    layers, topped = found["n_layers"], found["layers_topped"]
    median = float(np.median(found["ratios"])) if found["ratios"] else None
    null = chance(measured.metrics["chance"]["layers_topped"])
    return Tested(
        topped,
        f"{_who_tops(found, median)}{_by_chance(null)}{_too_little(median)}",
        form=two,
        chance=null,
        holds_at=_least("holds", layers),
        partly_at=_least("partly", layers),
        extra_condition_met=median is not None and median >= SMALLEST_RATIO and len(found["tied"]) == 1,
        partly_condition_met=median is not None and median >= SMALLEST_RATIO,
    )


def _who_tops(found: ConsistentChannel, median: float | None) -> str:
    layers, topped = found["n_layers"], found["layers_topped"]
    in_layers = f"in {topped} of {layers} layers"
    if len(found["tied"]) > 1:
        tied = found["tied"]
        named = first(tied, MOST_NAMED) if len(tied) > MOST_NAMED else listed([str(channel) for channel in tied])
        return f"Channels {named} each have the largest |gain| of ln2 {in_layers}, so none is singled out."
    ratio = "" if median is None else f", with a median of {median:.2f} times the runner-up"
    return f"Channel {found['channel']} has the largest |gain| of ln2 {in_layers}{ratio}."


def _by_chance(null: Chance | None) -> str:
    if null is None:
        return ""
    layers = f"{two(null.median)} {'layer' if null.median == 1 else 'layers'}"
    return f" Random axes would lead by as much in {layers} (99th percentile {two(null.limit)})."


def _too_little(median: float | None) -> str:
    if median is None or median >= SMALLEST_RATIO:
        return ""
    return f" At least {SMALLEST_RATIO:g} times the runner-up is needed."


def _least(verdict: str, layers: int) -> float:
    fewest, one_in = LAYERS[verdict]
    return max(fewest, layers / one_in)


RULES = (
    Rule(
        id="ln1-dials-down",
        short="ln1 dials down",
        statement="The first norm dials positions down.",
        value="correlation of the positions' standard deviation with layer 0's |gain| of ln1, both as logarithms",
        sense="at most",
        holds=DOWN,
        partly=DOWN_PARTLY,
        unit="correlation",
        test=_dials_down,
    ),
    Rule(
        id="ln2-one-channel",
        short="ln2 channel",
        statement="ln2 singles out one channel.",
        value="layers in which one channel has ln2's largest |gain|",
        unit="layers",
        holds_as="max({}, L/{}) layers (partly: max({}, L/{}))".format(*LAYERS["holds"], *LAYERS["partly"]),
        also=f"with a median ratio to the runner-up of at least {SMALLEST_RATIO:g}, and, to hold, no "
        "other channel that tops as many",
        test=_one_channel,
    ),
)
