"""One claim along a series of models: as numbers to draw, where its verdict stays, whether seeds agree.

And what one change to a recipe does to the claims that hold without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from generators.checkpoint.registry import Model, Place, Series
from generators.compute.judged import JudgedModel
from generators.compute.records import ClaimRecord
from generators.drawing.along import EffectPanel, EffectPoint
from generators.findings.judging import Rule


@dataclass(frozen=True)
class SeriesMember:
    place: Place
    model: Model
    judged: JudgedModel

    @cached_property
    def claims(self) -> dict[str, ClaimRecord]:
        return {claim.id: claim for claim in self.judged.published().claims}

    @cached_property
    def units(self) -> dict[str, str]:
        """Return by claim in what unit the cost of a change was measured: loss, or a cosine without a head."""
        found = {}
        for one in self.judged.findings:
            for rule in (rule for rule in one.finding.rules if rule.measured_in):
                at: Any = one.stored.metrics if one.stored else None
                for part in rule.measured_in.split("."):
                    at = (at or {}).get(part)
                if at:
                    found[rule.id] = at
        return found


Tested = list[tuple[SeriesMember, ClaimRecord]]
UNTESTED = "untested"


@dataclass(frozen=True)
class FinalVerdict:
    """The verdict that a training ends with, and the step from which it stays.

    `throughout` says that it is so at every step that can test it, and `from_start` that the first step looked at is
    one of these; `at_end` that the last one looked at can test it.
    """

    verdict: str
    place: Place
    throughout: bool
    from_start: bool
    at_end: bool


@dataclass(frozen=True)
class Along:
    """One claim in every model of a series that has results."""

    rule: Rule[Any]
    series: Series
    members: tuple[SeriesMember, ...]

    @property
    def in_other_units(self) -> list[Place]:
        """Return the models in which it is measured in another unit than in the reference, or else the first."""
        units = {member.place: member.units.get(self.rule.id) for member in self.members}
        unit = units.get(self.series.reference or "", next(iter(units.values()), None))
        return [member.place for member, _ in self._judged if unit and (units[member.place] or unit) != unit]

    @property
    def tested(self) -> Tested:
        """Return the models that can test it in the reference's unit, with its claim."""
        left_out = self.in_other_units
        return [(m, claim) for m, claim in self._judged if m.place not in left_out]

    @property
    def _judged(self) -> Tested:
        known = [(member, member.claims[self.rule.id]) for member in self.members if self.rule.id in member.claims]
        return [(member, claim) for member, claim in known if claim.verdict != UNTESTED]

    @property
    def spread(self) -> float | None:
        effects = [claim.value for _, claim in self.tested if claim.value is not None]
        return max(effects) - min(effects) if len(effects) > 1 else None

    @property
    def holding(self) -> int:
        return sum(claim.verdict == "holds" for _, claim in self.tested)

    @property
    def never_holds(self) -> bool:
        """Return whether it can be tested and holds in no model that can test it."""
        return bool(self.tested) and not self.holding

    @property
    def close_calls(self) -> int:
        return sum(claim.close for _, claim in self.tested)

    @property
    def agrees(self) -> bool:
        """Return whether all models that can test it, and at least two can, come to one verdict."""
        return len(self.tested) > 1 and len({claim.verdict for _, claim in self.tested}) == 1

    @property
    def final_verdict(self) -> FinalVerdict | None:
        """Return from where on its last verdict stays, None where no model can test it."""
        tested = self.tested
        if not tested:
            return None
        verdict, start = tested[-1][1].verdict, len(tested) - 1
        while start and tested[start - 1][1].verdict == verdict:
            start -= 1
        return FinalVerdict(
            verdict,
            tested[start][0].place,
            throughout=start == 0,
            from_start=start == 0 and tested[0][0].place == self.members[0].place,
            at_end=tested[-1][0].place == self.members[-1].place,
        )

    @property
    def panel(self) -> EffectPanel | None:
        """Return what is drawn of it, None without an effect in two models."""
        measured = [(member, claim) for member, claim in self.tested if claim.value is not None]
        if len(measured) < 2:
            return None
        thresholds = {claim.threshold for _, claim in measured}
        points = [
            EffectPoint(m.place, c.value, c.interval, c.verdict, c.chance.limit if c.chance else None)
            for m, c in measured
            if c.value is not None
        ]
        threshold = thresholds.pop() if len(thresholds) == 1 else None
        return EffectPanel(self.rule.short, self.rule.unit, tuple(points), threshold)

    @property
    def by_verdict(self) -> dict[str, list[Place]]:
        verdicts = dict.fromkeys(claim.verdict for _, claim in self.tested)
        return {kind: [member.place for member, claim in self.tested if claim.verdict == kind] for kind in verdicts}

    def close_at(self, *places: Place) -> bool:
        """Return whether its verdict at one of these places is a close call."""
        return any(claim.close for member, claim in self.tested if member.place in places)


@dataclass(frozen=True)
class Change:
    """Claims by what became of them in one model, beside the reference, if they hold fully in either.

    `lost` and `gained` hold in the one alone; `untested` hold in the reference; `new` hold here, and the reference
    can't test them.
    """

    place: Place
    retained: tuple[Along, ...]
    lost: tuple[Along, ...]
    gained: tuple[Along, ...]
    untested: tuple[Along, ...]
    new: tuple[Along, ...]

    @property
    def held(self) -> int:
        return len(self.retained) + len(self.lost) + len(self.untested)


def verdict(row: Along, place: Place) -> str:
    """Return a claim's verdict at a place, `untested` where nothing is known of it."""
    return next((claim.verdict for member, claim in row.tested if member.place == place), UNTESTED)


def change(rows: Sequence[Along], reference: Place, place: Place) -> Change:
    sorted_out: dict[str, list[Along]] = {kind: [] for kind in ("retained", "lost", "gained", "untested", "new")}
    for row in rows:
        kind = _kind(verdict(row, reference), verdict(row, place))
        if kind is not None:
            sorted_out[kind].append(row)
    return Change(place, **{kind: tuple(these) for kind, these in sorted_out.items()})


def _kind(before: str, after: str) -> str | None:
    if before == UNTESTED:
        return "new" if after == "holds" else None
    if before == "holds":
        return {"holds": "retained", UNTESTED: "untested"}.get(after, "lost")
    return "gained" if after == "holds" else None
