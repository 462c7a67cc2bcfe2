import numpy as np

from generators.base.text import in_units, two
from generators.findings.channel_use.measure import ChannelUseMetrics, ChannelUseRow, SweptRow, Why
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements

RHO = -0.5
RANK = {"holds": 0.01, "partly": 0.05}  # share of channels that cost at least as much
NAMES: dict[Why, str] = {
    "frequency": "the channel of the token embedding most correlated with frequency",
    "ln2": "the channel with the largest gain of ln2 in most layers",
    "position": "the channel in which positions vary most",
}


def named(metrics: ChannelUseMetrics) -> ChannelUseRow | None:
    """Return the channel that claims are about: that of frequency, else that of ln2; None without either."""
    for why in ("frequency", "ln2"):
        for row in metrics["channels"]:
            if row["why"] == why:
                return row
    return None


def _swept(metrics: ChannelUseMetrics, channel: int) -> tuple[SweptRow, list[SweptRow]]:
    rows = list(metrics["swept"])
    return next(row for row in rows if row["channel"] == channel), [row for row in rows if row["channel"] != channel]


def rank_of(metrics: ChannelUseMetrics, channel: int) -> tuple[int, int]:
    """Return a channel's place among all that were held, most costly first, and how many these are."""
    own, others = _swept(metrics, channel)
    return 1 + sum(other["cost"] >= own["cost"] for other in others), 1 + len(others)


def _leans(measured: Measurements[ChannelUseMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    row = named(metrics)
    if row is None:
        return Untested("Neither frequency nor the gains of ln2 single out a channel of this model.")
    rank, count = rank_of(metrics, row["channel"])
    if 1 / count > RANK["holds"]:
        return Untested(
            f"With {count} channels, a random one ranks first 1 time in {count}. That is too often to be evidence."
        )
    unit = in_units(metrics["unit"])
    median = float(np.median([other["cost"] for other in _swept(metrics, row["channel"])[1]]))
    return Tested(
        rank / count,
        f"Fixing channel {row['channel']}, {NAMES[row['why']]}, at its mean costs {two(row['cost'])} {unit} (95 % "
        f"interval {two(row['low'])} to {two(row['high'])}). It ranks {rank} of {count} channels by cost (p = "
        f"{two(rank / count)}); the median of the others is {two(median)}.",
        form=lambda *values: f"p = {two(*values)}",
        baseline=0.5,
        extra_condition_met=row["cost"] > 0,
    )


def _guess(measured: Measurements[ChannelUseMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    row = named(metrics)
    if row is None:
        return Untested("Neither frequency nor the gains of ln2 single out a channel of this model.")
    if row["unigram_rho"] is None:
        return Untested("This model predicts no tokens, or their frequencies are unknown.")
    if metrics["proxy"]:
        return Untested("Token frequencies are unknown; the token index is only a proxy.")
    own, others = _swept(metrics, row["channel"])
    rhos = [other["unigram_rho"] for other in others if other["unigram_rho"] is not None]
    lowest = min(rhos, default=0.0)
    return Tested(
        row["unigram_rho"],
        f"When channel {row['channel']} is fixed, the change in tokens' log-probabilities has a rank correlation of "
        f"{row['unigram_rho']:+.2f} with frequency. For each of {len(others)} other channels it is {lowest:+.2f} or "
        "more.",
        form="{:+.2f}",
        baseline=float(np.median(rhos)) if rhos else None,
        extra_condition_met=own["unigram_rho"] is not None and own["unigram_rho"] < lowest,
    )


RULES = (
    Rule(
        id="leans-on-channel",
        short="depends on it",
        statement="The model depends on the channel most correlated with frequency.",
        value="share of all channels that cost at least as much when fixed at their mean",
        sense="at most",
        holds=RANK["holds"],
        partly=RANK["partly"],
        unit="of channels",
        test=_leans,
    ),
    Rule(
        id="guess-by-frequency",
        short="guess by frequency",
        statement="That channel pushes predictions toward frequent tokens.",
        value="rank correlation over tokens of the change of log-probability with log-frequency",
        sense="at most",
        holds=RHO,
        unit="rank correlation",
        also="and below all other channels",
        test=_guess,
    ),
)
