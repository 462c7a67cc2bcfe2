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
FEW = 4  # steps, up to which they are named
FACTOR = 2  # between thresholds, beyond which effects are of different things


@dataclass(frozen=True)
class Settled:
    """The verdict that a training ends with, and the step from which it stays.

    `throughout` says that it is so at every step that can test it, and `from_start` that the first step looked at is
    one of these; `at_end` that the last one looked at can test it. `earlier` are steps with that verdict before it
    was another once more.
    """

    verdict: str
    place: Place
    throughout: bool
    from_start: bool
    at_end: bool
    earlier: tuple[Place, ...] = ()


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
        return Settled(
            verdict,
            tested[start][0].place,
            throughout=start == 0,
            from_start=start == 0 and tested[0][0].place == self.members[0].place,
            at_end=tested[-1][0].place == self.members[-1].place,
            earlier=tuple(member.place for member, claim in tested[:start] if claim.verdict == verdict),
        )

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
        first, last = (number(tested[at][0].place) for at in (0, -1))
        values = [claim.value for _, claim in (tested[0], tested[-1])]
        span = (
            "" if None in values else f" (effect {number(values[0])} at step {first}, {number(values[1])} at {last})"
        )
        until = "" if settled.at_end else f" until {last}, the last that can test it"
        if len(tested) == 1:
            return f"{verb} at the one step that can test it, {first}{_range(list(self.effects))}."
        if settled.throughout:
            known = f" that can test it, from {first} to {last}" if len(tested) < len(self.members) else " looked at"
            return f"{verb} at every step{known}{span}."
        if settled.place == tested[-1][0].place:
            which = "looked at" if settled.at_end else "that can test it"
            return f"{verb} at the last step {which}, {last}, and not at the one before{_as_before(settled)}{span}."
        return f"{verb} from step {number(settled.place)} on{until}{_as_before(settled)}{span}."

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
        return f"{said}.{self._by_what_else(base.verdict, tested)}"

    def _by_what_else(self, verdict: str, tested: Tested) -> str:
        """Return where a claim holds no more though its effect reaches the threshold: what else is asked decides."""
        if verdict != "holds":
            return ""
        reach = [str(member.place) for member, claim in tested if claim.verdict != "holds" and self._reaches(claim)]
        if not reach:
            return ""
        return f" With {listed(reach)} the effect reaches the threshold; what else is asked for is not met."

    def _reaches(self, claim: ClaimRecord) -> bool:
        return claim.value is not None and self.rule.reached(claim.value, claim.threshold)

    def reaches_at(self, place: Place) -> bool:
        """Return whether its effect at a place reaches the threshold, whatever the verdict."""
        return any(self._reaches(claim) for member, claim in self.tested if member.place == place)

    def close_at(self, *places: Place) -> bool:
        """Return whether its verdict at one of these places is a close call."""
        return any(claim.close for member, claim in self.tested if member.place in places)

    def _others(self) -> list[tuple[Place, ClaimRecord]]:
        """Return the claim in every model but the reference that can test it."""
        return [(member.place, claim) for member, claim in self.tested if member.place != self.series.reference]

    def differences(self) -> list[tuple[Place, float]]:
        """Return how far the effect is from the reference's in every other model; none where that isn't measured.

        Nor where the claim is judged by quite another threshold, as where directions are counted by the size of P.
        """
        base = self._base
        if base is None or base.value is None:
            return []
        comparable = [(place, claim) for place, claim in self._others() if _alike(claim.threshold, base.threshold)]
        return [(place, claim.value - base.value) for place, claim in comparable if claim.value is not None]

    def larger(self) -> list[tuple[Place, float]]:
        """Return the differences that are larger than the effects of seeds lie apart; none without two seeds."""
        if len(self.seeds) < 2:
            return []
        spread = max(self.seeds) - min(self.seeds)
        return [(place, by) for place, by in self.differences() if abs(by) > spread]

    def _beside_seeds(self) -> str:
        """Return which changes make a larger difference than another seed does; nothing without two seeds."""
        differences, larger = self.differences(), self.larger()
        if len(self.seeds) < 2 or not differences:
            return self._not_compared()
        smaller = [str(place) for place, by in differences if (place, by) not in larger]
        named = [f"{place} ({_signed(by)})" for place, by in larger]
        said = f" Over {len(self.seeds)} seeds the effect spreads by {number(max(self.seeds) - min(self.seeds))}"
        if not larger:
            said += ": no change makes a larger difference."
        elif not smaller:
            every = "every change" if len(differences) == len(self._others()) else "every other change"
            said += f": {every} makes a larger difference, {listed(named)}."
        else:
            make, do = "makes" if len(smaller) == 1 else "make", "does" if len(larger) == 1 else "do"
            said += f": {listed(smaller)} {make} no larger a difference, {listed(named)} {do}."
        return said + self._not_compared()

    def _not_compared(self) -> str:
        base = self._base
        other = [(p, c) for p, c in self._others() if base is not None and not _alike(c.threshold, base.threshold)]
        if base is None or not other:
            return ""
        each = listed([f"{place} ({number(claim.threshold)})" for place, claim in other])
        return (
            f" Its threshold with {each} is another than {number(base.threshold)}: effects can't be compared there."
        )


def _alike(threshold: float | None, other: float | None) -> bool:
    """Return whether two thresholds are of one size: neither more than twice the other."""
    if not threshold or not other:
        return threshold == other
    return 1 / FACTOR <= threshold / other <= FACTOR


def _signed(value: float) -> str:
    return number(value) if value < 0 else f"+{number(value)}"


def _verb(verdict: str) -> str:
    return {"holds": "holds", "partly": "partly holds", "fails": "fails"}[verdict]


def _as_before(settled: Settled) -> str:
    """Return at which steps it was so already, before it was otherwise once more."""
    if not settled.earlier:
        return ""
    if len(settled.earlier) > FEW:
        return f", as at {len(settled.earlier)} steps before, with others between"
    return f", as at {listed([number(place) for place in settled.earlier])} before, with others between"


def _range(values: list[float]) -> str:
    if not values:
        return ""
    low, high = number(min(values)), number(max(values))
    return f" ({low})" if low == high else f" ({low} to {high})"


def _of(count: int, whole: int) -> str:
    return "all of them" if count == whole else f"{count} of {whole}"
