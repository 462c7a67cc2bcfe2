"""What the atlas's own family shows: one recipe with one thing changed each time. Words: `templates/family.j2`.

Each lesson appears only where the models that it needs have results.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from generators.checkpoint.registry import Place
from generators.findings.stream.measure import StageRow
from generators.site.changes import UNTESTED, Change, verdict
from generators.site.claims_along import Along, SeriesMember
from generators.site.held_out import LossMean
from generators.site.series import SeriesPage

FAMILY, SEEDS, TRAJECTORY = "stdlib-family", "stdlib-seeds", "stdlib-gpt2-trajectory"
SCHEMES = ("stdlib-sinusoidal", "stdlib-rotary", "stdlib-alibi", "stdlib-none")  # other than a table that is learned
WITHOUT = "stdlib-none"
SURVIVAL = ("stdlib-rank-three", "stdlib-no-decay", "stdlib-context-64")  # of what is learned, with one change
DECAY = "stdlib-no-decay"
COMPACT = "three-components"  # shows whether the curve is compact
BY_DESIGN = {  # hold whatever is learned
    "stdlib-rank-three": ("three-components", "low-rank"),
    "stdlib-sinusoidal": ("winding", "look-back", "constant-norms"),
}
OWN_CURVE = "makes-its-own-positions"
USE = "position_use"
CHANGES_OF_POSITIONS = (("groups", 10), ("strongest", 50))
ClaimRows = tuple[Along, ...]


@dataclass(frozen=True)
class LessonPart:
    """Claims by what became of them; close calls at `places` are marked."""

    kind: str
    rows: ClaimRows
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Schemes:
    """How many claims hold with learned positions, and what became of them in models with another scheme."""

    reference: Place
    others: tuple[Place, ...]
    holding: int
    without: int
    given: int
    needing: int
    untestable: int


@dataclass(frozen=True)
class Compactness:
    """The share of the positions' variance that three components hold here and in the reference, and by seed."""

    here: float
    there: float
    seeds: tuple[float, ...]


@dataclass(frozen=True)
class LossChange:
    """How far a change moves the loss, on which text, and how far another seed alone does at most."""

    mean: LossMean
    text: str
    seeds: tuple[float, ...]


@dataclass(frozen=True)
class Survival:
    """What became of the reference's claims in one changed model; `retained_by_seed` with another seed alone."""

    model: str
    reference: Place | None
    change: Change
    retained_by_seed: tuple[int, ...]
    compact: Compactness | None
    loss: LossChange | None

    @property
    def reaching(self) -> ClaimRows:
        """Return what holds no longer though its effect reaches the threshold."""
        return tuple(row for row in self.change.lost if row.reaches_at(self.change.place))


@dataclass(frozen=True)
class OwnCurve:
    """The stage where most variance lies between positions, None where no share is surely above 0.

    `asked` is the share that the claim asks for, where this stays below; `reference` the model with learned positions
    and its stage.
    """

    stage: StageRow | None
    asked: float | None
    reference: tuple[Place, StageRow] | None


@dataclass(frozen=True)
class PositionWorth:
    """What training without positions costs in loss, and what changes cost the reference, by kind and in nats."""

    reference: Place
    trained_without: LossMean
    costs: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class SeedAgreement:
    """How many claims several seeds can test, and on how many they agree."""

    tested: int
    agreed: int


@dataclass(frozen=True)
class Appearance:
    """By which step half of the loss's fall is done, and how many claims appeared before it and since."""

    half: Place
    first: Place
    last: Place
    before: int
    after: int


@dataclass(frozen=True)
class FamilyLesson:
    """What a series of the family teaches, and claims by what became of them; `kind` names the words."""

    kind: str
    series: str
    facts: Schemes | Survival | OwnCurve | PositionWorth | SeedAgreement | Appearance
    parts: tuple[LessonPart, ...] = ()


def family_lessons(pages: Sequence[SeriesPage]) -> list[FamilyLesson]:
    """Return what the series of the family teach, as far as they have results."""
    by_name = {page.series.name: page for page in pages}
    family, seeds, trajectory = (by_name.get(name) for name in (FAMILY, SEEDS, TRAJECTORY))
    lessons: list[FamilyLesson] = []
    if family is not None and family.has_reference:
        lessons += [*_schemes(family, _unsteady(seeds)), *_survivals(family, seeds)]
    if family is not None:
        lessons += [*_own_curve(family), *_worth(family)]
    if seeds is not None:
        lessons += _seeds(seeds)
    if trajectory is not None:
        lessons += _appearance(trajectory)
    return lessons


def _unsteady(seeds: SeriesPage | None) -> set[str]:
    return {row.rule.id for row in seeds.comparable if not row.agrees} if seeds is not None else set()


def _schemes(family: SeriesPage, unsteady: set[str]) -> Iterator[FamilyLesson]:
    others = [member for member in family.members if member.model.name in SCHEMES]
    reference = family.series.reference
    assert reference is not None
    holding = [row for row in family.rows if verdict(row, reference) == "holds"]
    if not others or not holding:
        return
    elsewhere = {row.rule.id: {other.model.name: verdict(row, other.place) for other in others} for row in holding}
    able = [row for row in holding if set(elsewhere[row.rule.id].values()) != {UNTESTED}]
    in_which = {id: [name for name, found in of.items() if found == "holds"] for id, of in elsewhere.items()}
    held = [row for row in able if in_which[row.rule.id]]
    given = tuple(row for row in held if all(row.rule.id in BY_DESIGN.get(n, ()) for n in in_which[row.rule.id]))
    without = tuple(row for row in held if row not in given)
    needing = tuple(row for row in able if row not in held)
    places = tuple(other.place for other in others)
    untestable = len(holding) - len(able)
    facts = Schemes(reference, places, len(holding), len(without), len(given), len(needing), untestable)
    parts = (
        LessonPart("alone", tuple(row for row in needing if row.rule.id not in unsteady)),
        LessonPart("alone, seeds differ", tuple(row for row in needing if row.rule.id in unsteady)),
        LessonPart("elsewhere", without),
        LessonPart("elsewhere, by design", given),
    )
    yield FamilyLesson("schemes", FAMILY, facts, _filled(parts))


def _survivals(family: SeriesPage, seeds: SeriesPage | None) -> Iterator[FamilyLesson]:
    found = {member.place: member.model.name for member in family.members}
    retained_by_seed = tuple(sorted({len(change.retained) for change in family.seed_changes}))
    for change in family.changes:
        name = found[change.place]
        if name in SURVIVAL:
            compact, loss = _compact(name, change.place, family), _loss_change(change.place, family, seeds)
            facts = Survival(name, family.series.reference, change, retained_by_seed, compact, loss)
            yield FamilyLesson("survival", FAMILY, facts, _became(facts, _unsteady(seeds)))


def _compact(name: str, place: Place, family: SeriesPage) -> Compactness | None:
    """Return how much of the positions three components hold without weight decay, and with it."""
    row = next((one for one in family.rows if one.rule.id == COMPACT), None)
    if name != DECAY or row is None:
        return None
    shares = {member.place: claim.value for member, claim in row.tested}
    here, there = shares.get(place), shares.get(family.series.reference or "")
    return None if here is None or there is None else Compactness(here, there, row.seeds)


def _became(facts: Survival, unsteady: set[str]) -> tuple[LessonPart, ...]:
    change, by_design = facts.change, BY_DESIGN.get(facts.model, ())
    gained = [row for row in change.gained if row.rule.id not in by_design]
    by_kind = (
        ("lost", [row for row in change.lost if row.rule.id not in unsteady]),
        ("lost, seeds differ", [row for row in change.lost if row.rule.id in unsteady]),
        ("gained", [row for row in gained if row.rule.id not in unsteady]),
        ("gained, seeds differ", [row for row in gained if row.rule.id in unsteady]),
        ("gained, by design", [row for row in change.gained if row.rule.id in by_design]),
    )
    places = (change.place,) if facts.reference is None else (change.place, facts.reference)
    return _filled([LessonPart(kind, tuple(rows), places) for kind, rows in by_kind])


def _loss_change(place: Place, family: SeriesPage, seeds: SeriesPage | None) -> LossChange | None:
    """Return what a change costs in loss, or gains, None where that isn't known."""
    moved = _differences(family).get(place)
    if family.losses is None or moved is None:
        return None
    by_seed = () if seeds is None else tuple(abs(each.mean) for each in _differences(seeds).values())
    return LossChange(moved, family.losses.text, by_seed)


def _differences(page: SeriesPage) -> dict[Place, LossMean]:
    """Return how far each model's loss is from the first model's, of those of which it is known."""
    rows = () if page.losses is None else page.losses.rows
    return {row.place: row.difference for row in rows if row.difference is not None}


def _own_curve(family: SeriesPage) -> Iterator[FamilyLesson]:
    member = next((one for one in family.members if one.model.name == WITHOUT), None)
    found = None if member is None else _largest(member)
    if found is None:
        return
    stage, sure = found
    rule = next((row.rule for row in family.rows if row.rule.id == OWN_CURVE), None)
    asked = rule.holds if rule is not None and rule.holds is not None and stage["share"] < rule.holds else None
    reference = next((one for one in family.members if one.place == family.series.reference), None)
    theirs = None if reference is None else _largest(reference)
    there = (reference.place, theirs[0]) if reference is not None and theirs is not None and theirs[1] else None
    yield FamilyLesson("own-curve", FAMILY, OwnCurve(stage if sure else None, asked, there))


def _worth(family: SeriesPage) -> Iterator[FamilyLesson]:
    """Yield what positions are worth to a model trained with them, against training without them."""
    places = {member.model.name: member.place for member in family.members}
    reference = next((one for one in family.members if one.place == family.series.reference), None)
    without = _differences(family).get(places.get(WITHOUT, ""))
    judged = (
        None if reference is None else next((f for f in reference.judged.findings if f.finding.name == USE), None)
    )
    if reference is None or without is None or judged is None or judged.measured is None:
        return
    metrics = judged.measured.metrics
    if not isinstance(metrics.get("removed_but_first"), Mapping):
        return  # measured before there was that number
    costs = [("removed", metrics["removed_but_first"]["mean"])]
    costs += [
        (row["kind"], row["cost"])
        for row in metrics["damages"]
        if (row["kind"], row["amount"]) in CHANGES_OF_POSITIONS
    ]
    yield FamilyLesson("worth", FAMILY, PositionWorth(reference.place, without, tuple(costs)))


def _largest(member: SeriesMember) -> tuple[StageRow, bool] | None:
    """Return the stage after the first where most variance lies between positions, and whether any surely does.

    Of those with an interval above 0 where there are some; None where the model was not run.
    """
    judged = next((each for each in member.judged.findings if each.finding.name == "stream"), None)
    if judged is None or judged.measured is None:
        return None
    stages: list[StageRow] = judged.measured.metrics["layers"][1:]
    sure = [stage for stage in stages if stage["share_low"] > 0]
    return max(sure or stages, key=lambda stage: stage["share"]), bool(sure)


def _seeds(seeds: SeriesPage) -> Iterator[FamilyLesson]:
    comparable = seeds.comparable
    differing = tuple(row for row in comparable if not row.agrees)
    if comparable:
        facts = SeedAgreement(len(comparable), len(comparable) - len(differing))
        yield FamilyLesson("seeds", SEEDS, facts, _filled([LessonPart("seeds differ", differing)]))


def _appearance(trajectory: SeriesPage) -> Iterator[FamilyLesson]:
    found, half = trajectory.emergence, trajectory.half_fallen
    if half is None or not (found.before or found.after):
        return
    first, last = trajectory.places[0], trajectory.places[-1]
    parts = (
        LessonPart("before", found.before),
        LessonPart("after", found.after),
        LessonPart("always", found.always),
        LessonPart("late", found.late),
    )
    facts = Appearance(half, first, last, len(found.before), len(found.after))
    yield FamilyLesson("appearance", TRAJECTORY, facts, _filled(parts))


def _filled(parts: Sequence[LessonPart]) -> tuple[LessonPart, ...]:
    return tuple(part for part in parts if part.rows)
