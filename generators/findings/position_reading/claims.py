from collections.abc import Iterator, Sequence

from generators.base.text import share, two
from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements
from generators.findings.position_reading.measure import HeadReading, PositionReadingMetrics

FEWEST_HEADS = 3  # heads needed for one to stand out from the median
STRONG = 5.0  # multiple of the median head from which a head reads positions strongly
TIMES_CHANCE = 2.0  # multiple of chance that the strongest head must also reach
ALL_OF_P = 0.99  # share of P's variance in the plane above which any reading lies in it
MOST_NAMED = 4


def strong_heads(heads: Sequence[HeadReading]) -> list[HeadReading]:
    """Return the heads that read positions at least five times as strongly as the median head, strongest first."""
    found = [head for head in heads if (head["times_median"] or 0) >= STRONG]
    return sorted(found, key=lambda head: -(head["times_median"] or 0))


def needed_strength(chance_median: float) -> float:
    """Return how many times as strongly as the median head the strongest must read positions."""
    return max(STRONG, TIMES_CHANCE * chance_median)


def _times(*values: float) -> str:
    return f"{two(*values)} times"


@claim("position-heads", form=_times, strong=STRONG, times_chance=TIMES_CHANCE, fewest=FEWEST_HEADS)
def position_heads(m: PositionReadingMetrics) -> Evidence | Untested:
    value, found = m["effects"]["times_median"], m["chance"]["times_median"]
    if m["n_heads"] < FEWEST_HEADS:
        return Untested("few-heads")
    if value is None or found is None:
        return Untested("no-reading")
    top = max(m["heads"], key=lambda head: head["times_median"] or 0)
    return Evidence(
        value,
        {"top": top, "others": strong_heads(m["heads"])[1:MOST_NAMED]},
        chance=found,
        interval=m["intervals"]["times_median"],
        holds_at=needed_strength(found["median"]),
    )


@claim("reads-main-plane", form=share)
def reads_main_plane(m: PositionReadingMetrics) -> Evidence | Untested:
    if m["plane"]["share"] >= ALL_OF_P:
        return Untested("whole-plane")
    chance = m["chance"]["in_plane"]
    return Evidence(
        m["effects"]["in_plane"], chance=chance, interval=m["intervals"]["in_plane"], holds_at=chance["limit"]
    )


def heads(found: Measurements[PositionReadingMetrics], count: int | None) -> Iterator[Fact]:
    each = found.metrics["heads"]
    says = "how strongly it reads positions, in times the median head of layer 0"
    strengths = {row["head"]: row["times_median"] for row in each if row["times_median"] is not None}
    yield EntityNumbers(says, strengths, "position-reading", "largest")
    for row in strong_heads(each):
        yield EntityNote(
            row["head"], f"It reads positions {row['times_median']:.2g} times as strongly as the median head."
        )


FACTS = Facts(entities={"head": heads})
