import numpy as np

from generators.base.text import share, two
from generators.findings.facts import Facts, FollowedCurve
from generators.findings.judging import Evidence, Untested, claim, clearly_beyond
from generators.findings.measured import Measurements, StoredChance
from generators.findings.stream.measure import StageRow, StreamMetrics

RELIABLE = 0.9  # correlation of the curves from both halves of the windows; lower values say nothing of a shape
SHARE = 0.02  # smallest share of the variance that counts
# Share of the variance of a long random walk in many channels in its first three components, 6 / (pi k)^2 each.
WALK = float(sum(6 / (np.pi * k) ** 2 for k in (1, 2, 3)))
MEAN_PARTLY = 1.5  # times the cost of a random shift
FEW_ONES = 0.25  # share of what a typical direction has


def _middle(m: StreamMetrics) -> StageRow:
    return m["layers"][m["middle"]]


def _reliable(row: StageRow) -> bool:
    return row["reliability"] is not None and row["reliability"] >= RELIABLE


def _share(row: StageRow) -> Evidence:
    return Evidence(
        row["share"],
        {"row": row},
        baseline=0.0,
        interval=(row["share_low"], row["share_high"]),
        extra_condition_met=row["share_low"] > 0,
    )


def _differing(m: StreamMetrics) -> Untested | None:
    """Return why texts can't tell positions apart: layer 0 knows tokens alone, but where P is added."""
    differs = not m["has_position_embedding"] and m["layers"][0]["share_low"] > 0
    return Untested("differing-texts") if differs else None


@claim("positions-last", holds=0.05, partly=SHARE, form=share)
def last(m: StreamMetrics) -> Evidence | Untested:
    return _differing(m) or _share(_middle(m))


@claim("curve-stays-low-dimensional", holds=0.9, partly=round(WALK, 2), form=share, walk=WALK)
def low_dimensional(m: StreamMetrics) -> Evidence | Untested:
    row = _middle(m)
    if not _reliable(row):
        return Untested("no-curve")
    return Evidence(row["ev3"], {"row": row}, baseline=WALK, interval=(row["ev3_low"], min(row["ev3_high"], 1.0)))


@claim("positions-and-contexts-apart", sense="at most", form=two)
def apart(m: StreamMetrics) -> Evidence | Untested:
    row, chance = _middle(m), m["incoherence_by_chance"]
    if not _reliable(row):
        return Untested("no-curve")
    turned: StoredChance = {**chance, "null": "means of positions turned at random"}
    return Evidence(
        row["incoherence"],
        {"row": row},
        chance=turned,
        holds_at=clearly_beyond(turned),
        partly_at=chance["median"],
        partly_limit=chance["median"],
    )


@claim("makes-its-own-positions", holds=SHARE, form=share)
def its_own(m: StreamMetrics) -> Evidence | Untested:
    if m["has_position_embedding"]:
        return Untested("positions")
    found = max(map(_share, m["layers"][1:]), key=lambda found: (found.extra_condition_met, found.value))
    widest = max(m["layers"][1:], key=lambda row: row["share_high"])
    if not found.extra_condition_met and widest["share_high"] > SHARE:
        return Untested("few-windows-for-share", {"row": widest})
    return _differing(m) or found


@claim("avoids-all-ones", sense="at most", form=two, few=FEW_ONES, with_arrays=True)
def all_ones(measured: Measurements[StreamMetrics]) -> Evidence | Untested:
    if measured.model.post_norm:
        return Untested("centered")
    found = measured.metrics["all_ones"]
    holds_at = min(found["chance"]["limit"], FEW_ONES)
    return Evidence(
        found["value"], baseline=1.0, chance=found["chance"], interval=found["interval"], holds_at=holds_at
    )


@claim("needs-the-mean", holds=2.0, partly=MEAN_PARTLY, form=two, with_arrays=True)
def needs_the_mean(measured: Measurements[StreamMetrics]) -> Evidence | Untested:
    found = measured.metrics["mean_removed"]
    if found["times"] is None:
        return Untested("free-shifts")
    if found["low"] <= 0 and found["times_high"] > MEAN_PARTLY:
        return Untested("few-windows")
    interval = (found["times_low"], found["times_high"])
    said = {"tied": measured.model.tied and found["unit"].startswith("nats")}  # a cosine uses no output embedding
    return Evidence(found["times"], said, baseline=1.0, interval=interval, extra_condition_met=found["low"] > 0)


CURVE = "The mean hidden state at every position, half way through the model, in three principal components"
FACTS: Facts[StreamMetrics] = Facts(
    curve=FollowedCurve("stream-curve", "stream-curves", "The curve in the stream", CURVE)
)
