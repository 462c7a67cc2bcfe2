import numpy as np

from generators.base.text import two
from generators.findings.channel_use.measure import ChannelUseMetrics, ChannelUseRow, SweptRow
from generators.findings.judging import Evidence, Untested, claim

RANK = 0.01  # share of channels that cost at least as much


def named(m: ChannelUseMetrics) -> ChannelUseRow | None:
    """Return the channel that claims are about: that of frequency, else that of ln2; None without either."""
    rows = [row for why in ("frequency", "ln2") for row in m["channels"] if row["why"] == why]
    return rows[0] if rows else None


def _swept(m: ChannelUseMetrics, channel: int) -> tuple[SweptRow, list[SweptRow]]:
    rows = list(m["swept"])
    return next(row for row in rows if row["channel"] == channel), [row for row in rows if row["channel"] != channel]


def rank_of(m: ChannelUseMetrics, channel: int) -> tuple[int, int]:
    """Return a channel's place among all that were held, most costly first, and how many these are."""
    own, others = _swept(m, channel)
    return 1 + sum(other["cost"] >= own["cost"] for other in others), 1 + len(others)


@claim("leans-on-channel", sense="at most", holds=RANK, partly=0.05, form=lambda *values: f"p = {two(*values)}")
def leans(m: ChannelUseMetrics) -> Evidence | Untested:
    row = named(m)
    if row is None:
        return Untested("no-channel")
    rank, count = rank_of(m, row["channel"])
    if 1 / count > RANK:
        return Untested("few-channels", {"count": count})
    median = float(np.median([other["cost"] for other in _swept(m, row["channel"])[1]]))
    said = {"row": row, "rank": rank, "count": count, "median": median}
    return Evidence(rank / count, said, baseline=0.5, extra_condition_met=row["cost"] > 0)


@claim("guess-by-frequency", sense="at most", holds=-0.5, form="{:+.2f}")
def guess(m: ChannelUseMetrics) -> Evidence | Untested:
    row = named(m)
    if row is None:
        return Untested("no-channel")
    if row["unigram_rho"] is None:
        return Untested("no-tokens")
    if m["proxy"]:
        return Untested("proxy")
    own, others = _swept(m, row["channel"])
    rhos = [other["unigram_rho"] for other in others if other["unigram_rho"] is not None]
    lowest = min(rhos, default=0.0)
    return Evidence(
        row["unigram_rho"],
        {"row": row, "others": len(others), "lowest": lowest},
        baseline=float(np.median(rhos)) if rhos else None,
        extra_condition_met=own["unigram_rho"] is not None and own["unigram_rho"] < lowest,
    )


RULES = (leans, guess)
