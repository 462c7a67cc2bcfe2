from collections.abc import Iterator

from generators.base.text import share
from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements
from generators.findings.rogue.measure import ALIKE, RankOfChannel, RogueMetrics, RogueRow

THIRD = 1 / 3
PARTLY = 0.2
RARE = 0.01  # share of channels that rank as high
FEWEST_CHANNELS = 100
GAIN = 2.0  # multiple of the median gain from which ln2 singles a channel out
CORRELATION = 0.3  # |rank correlation| with log-frequency that makes a frequency channel
NOT_ALIKE = Untested("not-alike", {"alike": ALIKE})


def rogue_of(m: RogueMetrics) -> RogueRow | None:
    """Return the depth at which one channel accounts for most of the mean cosine."""
    return None if m["worst"] is None else m["layers"][m["worst"]]


@claim("rogue-channel", holds=round(THIRD, 4), partly=PARTLY, form=share)
def third(m: RogueMetrics) -> Evidence | Untested:
    row = rogue_of(m)
    if row is None:
        return NOT_ALIKE
    return Evidence(row["share"], {"row": row}, chance=m["largest_by_chance"], interval=(row["low"], row["high"]))


def _ranked(m: RogueMetrics, found: RankOfChannel | None, least: float, absent: str) -> Evidence | Untested:
    row = rogue_of(m)
    if row is None:
        return NOT_ALIKE
    least_share = max(PARTLY, m["largest_by_chance"]["limit"])
    if row["share"] < least_share:
        return Untested("no-channel", {"row": row, "least_share": least_share})
    if found is None:
        return Untested(absent)
    if found["channels"] < FEWEST_CHANNELS:
        return Untested("few-channels", {"found": found})
    said = {"row": row, "found": found}
    first = found["rank"] == 1 and found["size"] >= least
    return Evidence(found["rank"] / found["channels"], said, baseline=0.5, extra_condition_met=first)


@claim("rogue-is-ln2", sense="at most", holds=RARE, least=GAIN)
def is_ln2(m: RogueMetrics) -> Evidence | Untested:
    return _ranked(m, m["ln2"], GAIN, "no-ln2")


@claim("rogue-is-frequency", sense="at most", holds=RARE, least=CORRELATION)
def is_frequency(m: RogueMetrics) -> Evidence | Untested:
    return _ranked(m, m["frequency"], CORRELATION, "no-frequency")


def channels(found: Measurements[RogueMetrics], count: int | None) -> Iterator[Fact]:
    shares, row = found.arrays.get("shares"), rogue_of(found.metrics)
    if shares is not None and shares.shape[1] == count:
        largest = [float(share) for share in shares.max(axis=0)]
        yield EntityNumbers("largest share of the mean cosine", largest, "rogue-shares", "largest")
    if row is not None:
        yield EntityNote(
            row["channel"],
            f"It accounts for {share(row['share'])} of the mean cosine of hidden states at layer {row['layer']}, "
            "more than any other channel at any layer.",
            role="rogue",
            claim="rogue-channel",
        )


FACTS: Facts[RogueMetrics] = Facts(entities={"channel": channels})
