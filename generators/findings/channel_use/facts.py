from collections.abc import Iterator, Mapping

from generators.base.text import two
from generators.findings.channel_use.measure import ChannelUseMetrics, ChannelUseRow, SweptRow, ValueRow, Why
from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts, rows
from generators.findings.measured import Measurements

WHY: Mapping[Why, str] = {
    "frequency": "the channel most correlated with frequency",
    "ln2": "the channel with the largest gain of ln2 in most layers",
    "position": "the channel in which positions vary most",
}


def channels(found: Measurements[ChannelUseMetrics], count: int | None) -> Iterator[Fact]:
    """Yield what holding a channel at its mean costs, and for those that findings name with its interval.

    In wide models all are held on fewer windows than those: two numbers for one channel, so it is said of which.
    """
    unit, tried = found.metrics["unit"], rows(found, "channels", ChannelUseRow)
    for row in tried:
        cost = f"{two(row['cost'])} ({unit}; 95 % interval {two(row['low'])} to {two(row['high'])})"
        says = f"Fixing it at its mean costs {cost}. It was tested as {WHY[row['why']]}."
        yield EntityNote(row["channel"], says, named=True)
    swept = rows(found, "swept", SweptRow)
    if swept:
        on, of = found.metrics["swept_windows"], found.metrics["ran"]["windows"]
        fewer = f", on {on} of {of} windows" if on < of else ""
        says = f"cost of fixing it at its mean{fewer} ({unit})"
        costs = {row["channel"]: row["cost"] for row in swept}
        yield EntityNumbers(says, costs, "channel-cost", "largest", name="cost")
    values = rows(found, "values", ValueRow)
    there = [(row["channel"], row["token_there"]) for row in values]
    following = [(row["channel"], row["next_token"]) for row in values]
    for name, token, known in (
        ("token_there", "the token there", there),
        ("next_token", "the next token", following),
    ):
        strongest: dict[int, float] = {}
        for channel, value in known:
            if value is not None and abs(value) > abs(strongest.get(channel, 0.0)):
                strongest[channel] = value
        if strongest:
            says = "strongest correlation, over layers, of its value in the running model"
            yield EntityNumbers(f"{says} with the log frequency of {token}", strongest, order="strongest", name=name)


FACTS = Facts(entities={"channel": channels})
