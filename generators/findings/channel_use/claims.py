from collections.abc import Iterator, Mapping

import numpy as np

from generators.base.text import in_units, two
from generators.findings.channel_use.measure import (
    ChannelUseMetrics,
    ChannelUseRow,
    SweptRow,
    ValueRow,
    Why,
    drawn_to_sweep,
)
from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts, rows
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements

RANK = 0.01  # share of channels that cost at least as much


def of_frequency(m: ChannelUseMetrics) -> ChannelUseRow | Untested:
    """Return the channel that claims are about."""
    if m["proxy"]:
        return Untested("proxy")
    return next((row for row in m["channels"] if row["why"] == "frequency"), Untested("no-channel"))


def _swept(measured: Measurements[ChannelUseMetrics], channel: int) -> tuple[SweptRow, list[SweptRow]]:
    """Return a channel's row and those of the others it is compared with, which no finding chose."""
    rows, d = measured.metrics["swept"], measured.model.d_model
    drawn = {row["channel"] for row in rows} if d is None else {*drawn_to_sweep(d)}
    own = next(row for row in rows if row["channel"] == channel)
    return own, [row for row in rows if row["channel"] in drawn and row is not own]


@claim(
    "leans-on-channel",
    sense="at most",
    holds=RANK,
    partly=0.05,
    form=lambda *values: f"p = {two(*values)}",
    with_arrays=True,
)
def leans(measured: Measurements[ChannelUseMetrics]) -> Evidence | Untested:
    row = of_frequency(measured.metrics)
    if isinstance(row, Untested):
        return row
    own, others = _swept(measured, row["channel"])
    rank, count = 1 + sum(other["cost"] >= own["cost"] for other in others), 1 + len(others)
    if 1 / count > RANK:
        return Untested("few-channels", {"count": count})
    median = float(np.median([other["cost"] for other in others]))
    said = {"row": row, "own": own["cost"], "rank": rank, "count": count, "median": median}
    return Evidence(rank / count, said, baseline=0.5, extra_condition_met=row["cost"] > 0)


@claim("guess-by-frequency", sense="at most", holds=-0.5, form="{:+.2f}", with_arrays=True)
def guess(measured: Measurements[ChannelUseMetrics]) -> Evidence | Untested:
    row = of_frequency(measured.metrics)
    if isinstance(row, Untested):
        return row
    if row["unigram_rho"] is None:
        return Untested("no-tokens")
    own, others = _swept(measured, row["channel"])
    rhos = [other["unigram_rho"] for other in others if other["unigram_rho"] is not None]
    lowest = min(rhos, default=0.0)
    return Evidence(
        row["unigram_rho"],
        {"row": row, "own": own["unigram_rho"], "others": len(others), "lowest": lowest},
        baseline=float(np.median(rhos)) if rhos else None,
        extra_condition_met=own["unigram_rho"] is not None and own["unigram_rho"] < lowest,
    )


WHY: Mapping[Why, str] = {
    "frequency": "it correlates most strongly with token frequency",
    "ln2": "ln2 gives it the largest gain in more layers than any other channel",
    "position": "positions vary most in it",
}


def channels(found: Measurements[ChannelUseMetrics], count: int | None) -> Iterator[Fact]:
    """Yield what holding a channel at its mean costs, and for those that findings name with its interval.

    In wide models all are held on fewer windows than those: two numbers for one channel, so it is said of which.
    """
    unit, tried = found.metrics["unit"], rows(found, "channels", ChannelUseRow)
    for row in tried:
        cost = f"{two(row['cost'])} {in_units(unit)} (95 % interval {two(row['low'])} to {two(row['high'])})"
        by_index = row["why"] == "frequency" and found.metrics["proxy"]
        why = "it correlates most strongly with the token index" if by_index else WHY[row["why"]]
        says = f"Fixing it at its mean costs {cost}. We tested it because {why}."
        yield EntityNote(row["channel"], says, named=True)
    swept = rows(found, "swept", SweptRow)
    if swept:
        on, of = found.metrics["swept_windows"], found.metrics["ran"]["windows"]
        fewer = f", on {on} of {of} windows" if on < of else ""
        says = f"cost of fixing it at its mean{fewer} ({unit})"
        costs = {row["channel"]: row["cost"] for row in swept}
        yield EntityNumbers(says, costs, "channel-cost", "largest", name="cost")
    values = rows(found, "values", ValueRow)
    there = "token_there", "the token there", [(row["channel"], row["token_there"]) for row in values]
    following = "next_token", "the next token", [(row["channel"], row["next_token"]) for row in values]
    for name, token, known in (there, following):
        strongest: dict[int, float] = {}
        for channel, value in known:
            if value is not None and abs(value) > abs(strongest.get(channel, 0.0)):
                strongest[channel] = value
        if strongest:
            says = "strongest correlation, over layers, of its value in the running model"
            yield EntityNumbers(f"{says} with the log frequency of {token}", strongest, order="strongest", name=name)


FACTS = Facts(entities={"channel": channels})
