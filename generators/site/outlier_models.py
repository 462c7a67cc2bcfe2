"""What sets one model apart from the others: verdicts that only it has, and effects far from all of theirs.

Made from the distribution over models, so that it is as true for four as for fifty; with fewer than three models that
can test a claim, those of one recipe counted once, nothing is said of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generators.compute.records import ClaimRecord
from generators.site.view import ModelPage

FEWEST_OTHERS = 2
MOST_FAR = 3  # effects that are named


@dataclass(frozen=True)
class FarEffect:
    """An effect that lies farther from the others' than these lie apart, by how many times, and their range."""

    claim: ClaimRecord
    times: float
    low: float
    high: float
    others: int


@dataclass(frozen=True)
class OutlierModel:
    """Claims that only one model bears out, claims that only it does not, and its effects far from all others."""

    models: int  # the others
    holds: tuple[ClaimRecord, ...] = ()
    fails: tuple[ClaimRecord, ...] = ()
    far: tuple[FarEffect, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.holds or self.fails or self.far)


def outlier_model(page: ModelPage, pages: Sequence[ModelPage]) -> OutlierModel:
    """Return what sets a model apart from the others of `pages`."""
    tested = list(_compared(page, pages))
    holds = tuple(c for c, others in tested if c.verdict == "holds" and all(o.verdict != "holds" for o in others))
    fails = tuple(c for c, others in tested if c.verdict == "fails" and all(o.verdict == "holds" for o in others))
    far = [found for c, theirs in tested if c not in (*holds, *fails) and (found := _far(c, theirs)) is not None]
    others = [other for other in pages if other.name != page.name]
    return OutlierModel(len(others), holds, fails, tuple(sorted(far, key=lambda one: -one.times)[:MOST_FAR]))


def _compared(page: ModelPage, pages: Sequence[ModelPage]) -> Iterator[tuple[ClaimRecord, list[ClaimRecord]]]:
    """Yield each claim that the model and two others of other recipes can test, with the others'."""
    others = [other for other in pages if other.name != page.name]
    for claim in page.findings.claims:
        if claim.verdict == "untested":
            continue
        judged = [(other, other.claims[claim.id]) for other in others if claim.id in other.claims]
        able = [(other, theirs) for other, theirs in judged if theirs.verdict != "untested"]
        if len({other.counted_as for other, _ in able} - {page.counted_as}) >= FEWEST_OTHERS:
            yield claim, [theirs for _, theirs in able]


def _far(claim: ClaimRecord, others: Sequence[ClaimRecord]) -> FarEffect | None:
    values = [one.value for one in others if one.value is not None]
    if claim.value is None or len(values) <= FEWEST_OTHERS:
        return None  # the range of two says little
    low, high = min(values), max(values)
    beyond = max(low - claim.value, claim.value - high)
    if beyond <= high - low or high == low:
        return None
    return FarEffect(claim, beyond / (high - low), low, high, len(values))
