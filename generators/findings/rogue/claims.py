from generators.base.text import ordinal, share, two
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements
from generators.findings.nulls import chance
from generators.findings.rogue.measure import ALIKE, RankOfChannel, RogueMetrics, RogueRow

THIRD = 1 / 3
PARTLY = 0.2
RARE = 0.01  # share of channels that rank as high
FEWEST_CHANNELS = 100
GAIN = 2.0  # multiple of the median gain from which ln2 singles a channel out
CORRELATION = 0.3  # |rank correlation| with log-frequency that makes a frequency channel
NOT_ALIKE = f"At no layer do hidden states have a mean cosine of {ALIKE:g}."


def rogue_of(metrics: RogueMetrics) -> RogueRow | None:
    """Return the depth at which one channel accounts for most of the mean cosine."""
    return None if metrics["worst"] is None else metrics["layers"][metrics["worst"]]


def _third(measured: Measurements[RogueMetrics]) -> Tested | Untested:
    row = rogue_of(measured.metrics)
    if row is None:
        return Untested(NOT_ALIKE)
    by_chance = measured.metrics["largest_by_chance"]
    return Tested(
        row["share"],
        f"At layer {row['layer']}, channel {row['channel']} accounts for {share(row['share'])} of the mean cosine of "
        f"{two(row['mean_cosine'])}; without it, the mean cosine is {two(row['without_1'])}. After random rotations "
        f"of the stream, the strongest channel accounts for {share(by_chance['median'])}.",
        form=share,
        chance=chance(by_chance),
        interval=(row["low"], row["high"]),
    )


def _ranked(
    metrics: RogueMetrics, found: RankOfChannel | None, least: float, what: str, absent: str
) -> Tested | Untested:
    row = rogue_of(metrics)
    if row is None:
        return Untested(NOT_ALIKE)
    least_share = max(PARTLY, metrics["largest_by_chance"]["limit"])
    if row["share"] < least_share:
        return Untested(
            f"No channel accounts for {share(least_share)} of the mean cosine at any layer: channel {row['channel']} "
            f"has the most, {share(row['share'])} at layer {row['layer']}."
        )
    if found is None:
        return Untested(absent)
    if found["channels"] < FEWEST_CHANNELS:
        return Untested(
            f"With only {found['channels']} channels, a random one ranks first too often for that to be evidence."
        )
    first = "" if found["rank"] == 1 else f" Channel {found['first']} ranks first."
    return Tested(
        found["rank"] / found["channels"],
        f"Channel {row['channel']} accounts for the largest share of the mean cosine at layer {row['layer']}. By "
        f"{what}, it ranks {ordinal(found['rank'])} of {found['channels']} channels, with a value of "
        f"{two(found['size'])}.{first} Channel {row['channel']} must rank first, with a value of at least {least:g}.",
        baseline=0.5,
        extra_condition_met=found["rank"] == 1 and found["size"] >= least,
    )


def _ln2(measured: Measurements[RogueMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    what = "gain in ln2 relative to the median gain"
    return _ranked(metrics, metrics["ln2"], GAIN, what, "No norm before the MLP singles out a channel.")


def _frequency(measured: Measurements[RogueMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    what = "|rank correlation| with token frequency"
    absent = "Token frequencies or token embeddings are unknown."
    return _ranked(metrics, metrics["frequency"], CORRELATION, what, absent)


RULES = (
    Rule(
        id="rogue-channel",
        short="a third in one",
        statement="One channel accounts for a third of the mean cosine.",
        value="largest share of a channel in the mean cosine, at any layer where states are similar",
        holds=round(THIRD, 4),
        partly=PARTLY,
        unit="of the mean cosine",
        test=_third,
    ),
    Rule(
        id="rogue-is-ln2",
        short="rogue is ln2's",
        statement="That channel also has the largest gain in ln2.",
        value="share of channels whose median gain in ln2 is as large",
        sense="at most",
        holds=RARE,
        unit="of channels",
        also=f"none has a larger one, and it is at least {GAIN:g} times the median",
        test=_ln2,
    ),
    Rule(
        id="rogue-is-frequency",
        short="rogue is frequency's",
        statement="That channel also correlates most with frequency.",
        value="share of channels that correlate as strongly with token frequency",
        sense="at most",
        holds=RARE,
        unit="of channels",
        also=f"none correlates more strongly, and that correlation is at least {CORRELATION:g}",
        test=_frequency,
    ),
)
