"""One claim along a series of models: in words, as numbers to draw, where it settles, whether seeds agree."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from generators.base.sentences import listed
from generators.base.text import number
from generators.checkpoint.registry import Model, Place, Series
from generators.compute.judged import JudgedModel
from generators.compute.records import ClaimRecord
from generators.drawing.along import Panel, Point
from generators.findings.judging import Rule


@dataclass(frozen=True)
class SeriesMember:
    """A model of a series that has results, judged."""

    place: Place
    model: Model
    judged: JudgedModel

    @cached_property
    def claims(self) -> dict[str, ClaimRecord]:
        """Return its claims by id."""
        return {claim.id: claim for claim in self.judged.published().claims}


Tested = list[tuple[SeriesMember, ClaimRecord]]


@dataclass(frozen=True)
class Settled:
    """The verdict that a training ends with, and the step from which it stays.

    `always` says that it is so at every step that can test it, `just` that it is so at the last one only.
    """

    verdict: str
    place: Place
    always: bool
    just: bool


@dataclass(frozen=True)
class Along:
    """One claim in every model of a series that has results.

    `seeds` are its effects in the reference's recipe from several seeds, where a series along a change names them.
    """

    rule: Rule[Any]
    series: Series
    members: tuple[SeriesMember, ...]
    seeds: tuple[float, ...] = ()

    @property
    def tested(self) -> Tested:
        """Return the models that can test it, with its claim."""
        known = [(member, member.claims[self.rule.id]) for member in self.members if self.rule.id in member.claims]
        return [(member, claim) for member, claim in known if claim.verdict != "untested"]

    @property
    def effects(self) -> tuple[float, ...]:
        """Return the effects that were measured."""
        return tuple(claim.value for _, claim in self.tested if claim.value is not None)

    @property
    def spread(self) -> float | None:
        """Return how far the measured effects lie apart, None where there are fewer than two."""
        return max(self.effects) - min(self.effects) if len(self.effects) > 1 else None

    @property
    def holding(self) -> int:
        """Return in how many models it holds."""
        return sum(claim.verdict == "holds" for _, claim in self.tested)

    @property
    def agrees(self) -> bool:
        """Return whether all models that can test it, and at least two can, come to one verdict."""
        return len(self.tested) > 1 and len({claim.verdict for _, claim in self.tested}) == 1

    @property
    def settled(self) -> Settled | None:
        """Return from where on its last verdict stays, None where no model can test it."""
        tested = self.tested
        if not tested:
            return None
        verdict, start = tested[-1][1].verdict, len(tested) - 1
        while start and tested[start - 1][1].verdict == verdict:
            start -= 1
        return Settled(verdict, tested[start][0].place, start == 0, start == len(tested) - 1 > 0)

    @property
    def panel(self) -> Panel | None:
        """Return what is drawn of it, None without an effect in two models."""
        measured = [(member, claim) for member, claim in self.tested if claim.value is not None]
        if len(measured) < 2:
            return None
        thresholds = {claim.threshold for _, claim in measured}
        points = [
            Point(m.place, c.value, c.interval, c.verdict, c.chance.limit if c.chance else None)
            for m, c in measured
            if c.value is not None
        ]
        threshold = thresholds.pop() if len(thresholds) == 1 else None
        return Panel(self.rule.statement.rstrip("."), self.rule.unit, tuple(points), threshold)

    @property
    def sentence(self) -> str:
        """Return in words what the series says of it."""
        tested = self.tested
        if not tested:
            return "No model of the series can test it."
        said = {"step": self._settling, "seed": self._agreement, "change": self._changes}[self.series.along](tested)
        untested = len(self.members) - len(tested)
        return said + (f" Untested in {_of(untested, len(self.members))}." if untested else "") + self._beside_seeds()

    def _settling(self, tested: Tested) -> str:
        settled = self.settled
        assert settled is not None
        verb = _verb(settled.verdict).capitalize()
        span = _span([claim.value for _, claim in (tested[0], tested[-1])])
        if len(tested) == 1:
            return f"{verb} at the one step that can test it, {number(settled.place)}{_range(list(self.effects))}."
        if settled.always:
            return f"{verb} from the first step looked at to the last{span}."
        if settled.just:
            return f"{verb} at the last step only, {number(settled.place)}{span}."
        return f"{verb} from step {number(settled.place)} on{span}."

    def _agreement(self, tested: Tested) -> str:
        verdicts = [claim.verdict for _, claim in tested]
        kinds = list(dict.fromkeys(verdicts))
        span = _range(list(self.effects))
        if len(kinds) == 1:
            count = "The one seed tested" if len(tested) == 1 else f"All {len(tested)} seeds agree: it"
            return f"{count} {_verb(kinds[0])}{span}."
        each = ", ".join(f"{_verb(kind)} in {verdicts.count(kind)}" for kind in kinds)
        return f"Seeds differ: it {each} of {len(tested)}{span}."

    @property
    def _base(self) -> ClaimRecord | None:
        """Return the claim in the reference, None where that isn't known or can't test it."""
        return {member.place: claim for member, claim in self.tested}.get(self.series.reference or "")

    def _changes(self, tested: Tested) -> str:
        base, first = self._base, self.series.reference
        by_verdict: dict[str, list[str]] = {}
        for member, claim in tested:
            by_verdict.setdefault(claim.verdict, []).append(str(member.place))
        if base is None:
            each = "; ".join(f"{_verb(kind)} with {listed(names)}" for kind, names in by_verdict.items())
            return f"{each[0].upper()}{each[1:]}."
        same = [name for name in by_verdict[base.verdict] if name != str(first)]
        others = {kind: names for kind, names in by_verdict.items() if kind != base.verdict}
        said = f"{_verb(base.verdict).capitalize()} with {first}"
        if same:
            said += f", and still with {listed(same)}"
        for kind, names in others.items():
            said += f"; {_verb(kind)} with {listed(names)}"
        return f"{said}."

    def differences(self) -> list[tuple[Place, float]]:
        """Return how far the effect is from the reference's in every other model; none where that isn't measured."""
        base = self._base
        if base is None or base.value is None:
            return []
        others = [(m.place, c.value) for m, c in self.tested if m.place != self.series.reference]
        return [(place, value - base.value) for place, value in others if value is not None]

    def _beside_seeds(self) -> str:
        """Return which changes make a larger difference than another seed does; nothing without two seeds."""
        differences = self.differences()
        if len(self.seeds) < 2 or not differences:
            return ""
        spread = max(self.seeds) - min(self.seeds)
        larger = [f"{place} ({_signed(by)})" for place, by in differences if abs(by) > spread]
        smaller = [str(place) for place, by in differences if abs(by) <= spread]
        said = f" Over {len(self.seeds)} seeds the effect spreads by {number(spread)}"
        if not larger:
            return f"{said}: no change makes a larger difference."
        if not smaller:
            return f"{said}: every change makes a larger difference, {listed(larger)}."
        make, do = "makes" if len(smaller) == 1 else "make", "does" if len(larger) == 1 else "do"
        return f"{said}: {listed(smaller)} {make} no larger a difference, {listed(larger)} {do}."


def _signed(value: float) -> str:
    return number(value) if value < 0 else f"+{number(value)}"


def _verb(verdict: str) -> str:
    return {"holds": "holds", "partly": "partly holds", "fails": "fails"}[verdict]


def _span(values: list[float | None]) -> str:
    first, last = values
    return "" if first is None or last is None else f" (from {number(first)} at first to {number(last)} in the end)"


def _range(values: list[float]) -> str:
    if not values:
        return ""
    low, high = number(min(values)), number(max(values))
    return f" ({low})" if low == high else f" ({low} to {high})"


def _of(count: int, whole: int) -> str:
    return "all of them" if count == whole else f"{count} of {whole}"
