"""What is claimed of the channels that stand out: rules, numbers and sentences."""

import numpy as np

from generators.findings.channel_use.measure import ChannelUseMetrics, ChannelUseRow, SweptRow, Why
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements

RHO = -0.5
RANK = {"holds": 0.01, "partly": 0.05}  # share of channels that cost as much
NAMES: dict[Why, str] = {
    "frequency": "the channel of the token embedding that goes with frequency most",
    "ln2": "the channel that tops ln2 in most layers",
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
    """Return what a channel and all others came to, on the same windows."""
    rows = list(metrics["swept"])
    return next(row for row in rows if row["channel"] == channel), [row for row in rows if row["channel"] != channel]


def rank_of(metrics: ChannelUseMetrics, channel: int) -> tuple[int, int]:
    """Return a channel's place among all that were held, dearest first, and how many these are."""
    own, others = _swept(metrics, channel)
    return 1 + sum(other["cost"] >= own["cost"] for other in others), 1 + len(others)


def _leans(measured: Measurements[ChannelUseMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    row = named(metrics)
    if row is None:
        return Untested("No channel of this model stands out by frequency or by the gains of ln2.")
    rank, count = rank_of(metrics, row["channel"])
    if 1 / count > RANK["holds"]:
        return Untested(f"With {count} channels, even the dearest is no rarer than 1 in {count}.")
    unit = "in 1 − cosine" if metrics["unit"] == "1 - cosine" else metrics["unit"]
    median = float(np.median([other["cost"] for other in _swept(metrics, row["channel"])[1]]))
    return Tested(
        rank / count,
        f"Holding channel {row['channel']}, {NAMES[row['why']]}, at its mean costs {row['cost']:.3g} {unit} (95 % "
        f"interval {row['low']:.3g} to {row['high']:.3g}). Of {count} channels it ranks {rank} by cost (p = "
        f"{rank / count:.3f}); the median of the others is {median:.3g}.",
        form="p = {:.2f}",
        baseline=0.5,
        also=row["cost"] > 0,
    )


def _guess(measured: Measurements[ChannelUseMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    row = named(metrics)
    if row is None:
        return Untested("No channel of this model stands out by frequency or by the gains of ln2.")
    if row["unigram_rho"] is None:
        return Untested("This model predicts no tokens, or how often they occur isn't known.")
    if metrics["proxy"]:
        return Untested("How often tokens occur isn't known, only something that goes with it.")
    own, others = _swept(metrics, row["channel"])
    rhos = [other["unigram_rho"] for other in others if other["unigram_rho"] is not None]
    lowest = min(rhos, default=0.0)
    return Tested(
        row["unigram_rho"],
        f"With channel {row['channel']} held, what tokens gain in log-probability correlates with frequency at "
        f"{row['unigram_rho']:+.2f} (ranks); with each of {len(others)} others held, at {lowest:+.2f} or more.",
        form="{:+.2f}",
        baseline=float(np.median(rhos)) if rhos else None,
        also=own["unigram_rho"] is not None and own["unigram_rho"] < lowest,
    )


RULES = (
    Rule(
        id="leans-on-channel",
        short="leans on it",
        statement="The model leans on the channel that goes most with frequency.",
        value="share of all channels that cost at least as much when held at their mean",
        sense="at most",
        holds=RANK["holds"],
        partly=RANK["partly"],
        unit="of channels",
        test=_leans,
    ),
    Rule(
        id="guess-by-frequency",
        short="guess by frequency",
        statement="That channel carries a guess by frequency.",
        value="rank correlation over tokens of the change of log-probability with log-frequency",
        sense="at most",
        holds=RHO,
        unit="rank correlation",
        also="and below all other channels",
        test=_guess,
    ),
)
