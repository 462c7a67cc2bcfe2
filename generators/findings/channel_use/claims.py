"""What is claimed of the channels that stand out: rules, numbers and sentences."""

import numpy as np

from generators.findings.channel_use.measure import ChannelUseMetrics, ChannelUseRow, Why
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements

RHO = 0.5
PERCENTILE = 95  # of the other channels' costs
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


def _others(metrics: ChannelUseMetrics) -> list[ChannelUseRow]:
    return [row for row in metrics["channels"] if row["why"] == "drawn"]


def _leans(measured: Measurements[ChannelUseMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    row = named(metrics)
    if row is None:
        return Untested("No channel of this model stands out by frequency or by the gains of ln2.")
    costs = [other["cost"] for other in _others(metrics)]
    limit = float(np.percentile(costs, PERCENTILE))
    unit = "in 1 − cosine" if metrics["unit"] == "1 - cosine" else metrics["unit"]
    dearer = sum(cost >= row["cost"] for cost in costs)
    return Tested(
        row["cost"],
        f"Holding channel {row['channel']}, {NAMES[row['why']]}, at its mean costs {row['cost']:.3g} "
        f"{unit}; of {len(costs)} drawn at random {dearer} {'costs' if dearer == 1 else 'cost'} as much, and their "
        f"median is {np.median(costs):.3g}.",
        baseline=float(np.median(costs)),
        interval=(row["low"], row["high"]),
        holds_at=limit,
        also=row["cost"] > limit,
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
    rhos = [abs(other["unigram_rho"]) for other in _others(metrics) if other["unigram_rho"] is not None]
    largest = max(rhos, default=0.0)
    return Tested(
        abs(row["unigram_rho"]),
        f"With channel {row['channel']} held, what tokens gain or lose goes with their frequency at "
        f"{row['unigram_rho']:+.2f} (ranks); with other channels held, at up to {largest:.2f}.",
        baseline=float(np.median(rhos)) if rhos else None,
        also=abs(row["unigram_rho"]) > largest,
    )


RULES = (
    Rule(
        id="leans-on-channel",
        short="leans on it",
        statement="The model leans on the channel that goes most with frequency.",
        value="change of the loss with the channel held at its mean",
        holds_as=f"the {PERCENTILE}th percentile of other channels",
        test=_leans,
    ),
    Rule(
        id="guess-by-frequency",
        short="guess by frequency",
        statement="That channel carries a guess by frequency.",
        value="|rank correlation| over tokens of the change of log-probability with log-frequency",
        holds=RHO,
        unit="rank correlation",
        also="and beyond all other channels",
        test=_guess,
    ),
)
