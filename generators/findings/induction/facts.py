from collections.abc import Iterator

from generators.base.text import share
from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts
from generators.findings.induction.claims import COPIES, best_of
from generators.findings.induction.measure import InductionMetrics
from generators.findings.measured import Measurements


def heads(found: Measurements[InductionMetrics], count: int | None) -> Iterator[Fact]:
    rows, best = found.metrics["heads"], best_of(found.metrics)
    if len(rows) != count:
        return
    yield EntityNumbers(
        "attention to what followed, tokens read twice",
        [row["copying"] for row in rows],
        "induction-heads",
        "largest",
    )
    if best["copying"] >= COPIES:
        yield EntityNote(
            found.metrics["best"],
            f"It copies more than any other head: on random tokens read twice, it gives {share(best['copying'])} of "
            "its attention to the token that followed.",
        )


FACTS: Facts[InductionMetrics] = Facts(entities={"head": heads})
