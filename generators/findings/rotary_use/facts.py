from collections.abc import Iterator

from generators.findings.facts import EntityNumbers, Fact, Facts
from generators.findings.measured import Measurements
from generators.findings.rotary_use.measure import RotaryUseMetrics


def heads(found: Measurements[RotaryUseMetrics], count: int | None) -> Iterator[Fact]:
    rows = found.metrics["heads"]
    if rows is not None and len(rows) == count:
        shares = [row["fast_share"] for row in rows]
        yield EntityNumbers("share of scores from fast rotary pairs", shares, "rotary-pairs", "largest")


FACTS: Facts[RotaryUseMetrics] = Facts(
    entities={"head": heads},
    columns={
        "damage": "share of stopping all",
        "fast_share": "scores from the fast half",
        "first": "on the first token",
        "high": "share, to",
        "longest_pair": "longest pair",
        "longest_ratio": "its length / median",
        "longest_turns": "its turns in a window",
        "low": "share, from",
        "previous": "on the previous token",
        "turning": "pairs that turn",
        "which": "which",
    },
    search=("RoPE", "rotary frequencies", "rotary pairs", "rotary position embedding", "context extension"),
)
