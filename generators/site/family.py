"""What the atlas's own family shows: one recipe with one thing changed each time, in sentences made from its results.

Each appears only where the models that it needs have results.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generators.base.sentences import listed, many
from generators.base.text import number
from generators.checkpoint.registry import Place
from generators.findings.stream.claims import RELIABLE
from generators.findings.stream.measure import StageRow
from generators.site.changes import UNTESTED, Change, verdict
from generators.site.claims_along import Along, SeriesMember
from generators.site.held_out import Mean
from generators.site.learned import Lesson
from generators.site.series import SeriesPage

FAMILY, SEEDS, COURSE = "stdlib-family", "stdlib-seeds", "stdlib-gpt2-trajectory"
SCHEMES = ("stdlib-sinusoidal", "stdlib-rotary", "stdlib-alibi", "stdlib-none")  # other than a table that is learned
WITHOUT = "stdlib-none"
SURVIVAL = {  # of what is learned still, with one change
    "stdlib-rank-three": "What survives when P may have three dimensions only?",
    "stdlib-no-decay": "What survives without weight decay?",
    "stdlib-context-64": "What survives with a short context?",
}
DECAY = "stdlib-no-decay"
COMPACT = "three-components"  # tells whether the curve is compact
BY_DESIGN = {  # hold whatever is learned
    "stdlib-rank-three": ("three-components", "low-rank"),
    "stdlib-sinusoidal": ("winding", "look-back", "constant-norms"),
}
WHEN = "Do observations appear in the first half of the loss's fall, or in the second?"
OWN_CURVE = "makes-its-own-positions"
LOOK_BACK = "look-back"
ASKED = {  # by readers of the posts, each with the claim or the member of the family that answers
    "whether looking back is a rotation": LOOK_BACK,
    "whether regularisation keeps the curve compact": "stdlib-no-decay",
    "whether one could train three components alone": "stdlib-rank-three",
}


@dataclass(frozen=True)
class Part:
    """Words, and the claims that they are about; close calls at `places` are marked."""

    words: str
    rows: tuple[Along, ...] = ()
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class FamilyLesson:
    """A question, the answer in one sentence, and claims by what became of them."""

    question: str
    answer: str
    series: str
    parts: tuple[Part, ...] = ()


def family_lessons(pages: Sequence[SeriesPage]) -> list[FamilyLesson]:
    """Return what the series of the family teach, as far as they have results."""
    by_name = {page.series.name: page for page in pages}
    lessons: list[FamilyLesson] = []
    seeds = by_name.get(SEEDS)
    if (family := by_name.get(FAMILY)) is not None and family.has_reference:
        lessons += [*_schemes(family, _unsteady(seeds)), *_survivals(family, seeds)]
    if (family := by_name.get(FAMILY)) is not None:
        lessons += _own_curve(family)
    if seeds is not None:
        lessons += _seeds(seeds)
    if (course := by_name.get(COURSE)) is not None:
        lessons += _course(course)
    return lessons


def what_readers_asked(found: Sequence[FamilyLesson], lessons: Sequence[Lesson]) -> tuple[list[str], list[str]]:
    """Return what readers of the posts asked that results answer, and what none does yet."""
    answers = {lesson.rule.id for lesson in lessons if lesson.cases}
    answers |= {member for member, question in SURVIVAL.items() if question in [one.question for one in found]}
    return [asked for asked, by in ASKED.items() if by in answers], [
        asked for asked, by in ASKED.items() if by not in answers
    ]


def _unsteady(seeds: SeriesPage | None) -> set[str]:
    """Return the claims on which seeds differ."""
    return {row.rule.id for row in seeds.in_several if not row.agrees} if seeds is not None else set()


def _schemes(family: SeriesPage, unsteady: set[str]) -> Iterator[FamilyLesson]:
    others = [member for member in family.members if member.model.name in SCHEMES]
    if not others:
        return
    reference = family.series.reference
    assert reference is not None
    holding = [row for row in family.rows if verdict(row, reference) == "holds"]
    if not holding:
        return
    elsewhere = {row.rule.id: {other.model.name: verdict(row, other.place) for other in others} for row in holding}
    able = [row for row in holding if set(elsewhere[row.rule.id].values()) != {UNTESTED}]
    in_which = {id: [name for name, found in of.items() if found == "holds"] for id, of in elsewhere.items()}
    held = [row for row in able if in_which[row.rule.id]]
    given = tuple(row for row in held if all(row.rule.id in BY_DESIGN.get(n, ()) for n in in_which[row.rule.id]))
    without = tuple(row for row in held if row not in given)
    needing = tuple(row for row in able if row not in held)
    about_table = tuple(row for row in holding if row not in able)
    within, nowhere = (
        ("in it as well", "in it no more") if len(others) == 1 else ("in at least one", "in none that can test it")
    )
    pieces = [
        f"{len(without)} {_hold(len(without))} {within}" if without else "",
        f"{len(given)} {_hold(len(given))} there by how it was made" if given else "",
        f"{len(needing)} {_hold(len(needing))} {nowhere}" if needing else "",
        f"{len(about_table)} can't be tested {'there' if len(others) == 1 else 'in any'}" if about_table else "",
    ]
    names = listed([str(other.place) for other in others])
    became = listed([piece for piece in pieces if piece])
    answer = f"{_claims(len(holding))} with {reference}. Trained with {names} instead: {became}."
    alone = "alone" if len(others) == 1 else "and with none of the others that can test them"
    alone = f"Hold with {reference} {alone}"
    parts = (
        Part(alone, tuple(row for row in needing if row.rule.id not in unsteady)),
        Part(f"{alone}, but seeds differ on them anyway", tuple(r for r in needing if r.rule.id in unsteady)),
        Part("Hold with another scheme, too", without),
        Part("Hold with another scheme, but as they must by how it was made", given),
    )
    yield FamilyLesson("Which observations need learned positions?", answer, FAMILY, _filled(parts))


def _survivals(family: SeriesPage, seeds: SeriesPage | None) -> Iterator[FamilyLesson]:
    found = {member.place: member.model.name for member in family.members}
    for change in family.changes:
        name = found[change.place]
        if name in SURVIVAL:
            more = _by_seed(family) + _compact(name, change.place, family) + _cost(change.place, family, seeds)
            yield _survival(name, change, family.series.reference, more, _unsteady(seeds))


def _by_seed(family: SeriesPage) -> str:
    """Return how many claims still hold with another seed alone; nothing without one."""
    kept = sorted({len(change.kept) for change in family.seed_changes})
    if not kept:
        return ""
    count = str(kept[0]) if len(kept) == 1 else f"{kept[0]} to {kept[-1]}"
    return f" With another seed alone {count} still {_hold(kept[-1])}."


def _compact(name: str, place: Place, family: SeriesPage) -> str:
    """Return how much of the positions three components hold without weight decay, and with it."""
    row = next((one for one in family.rows if one.rule.id == COMPACT), None)
    if name != DECAY or row is None:
        return ""
    shares = {member.place: claim.value for member, claim in row.tested}
    here, there = shares.get(place), shares.get(family.series.reference or "")
    if here is None or there is None:
        return ""
    said = f" Three components hold {_percent(here)} of the positions' variance, {_percent(there)} with weight decay"
    if len(row.seeds) > 1:
        said += f"; {len(row.seeds)} seeds make it {_percent(min(row.seeds))} to {_percent(max(row.seeds))}"
    return f"{said}."


def _survival(name: str, change: Change, reference: Place | None, more: str, unsteady: set[str]) -> FamilyLesson:
    by_design = BY_DESIGN.get(name, ())
    became = [f"{len(change.kept)} still {_hold(len(change.kept))}"] if change.kept else []
    became += [f"{len(change.lost)} {_hold(len(change.lost))} no more"] if change.lost else []
    became += [f"{len(change.untested)} can't be tested"] if change.untested else []
    said = listed(became) if len(change.kept) < change.held else "none is lost"
    answer = f"{_claims(change.held)} with {reference}. With {change.place}, {said or 'there is none'}."
    reaching = [row.rule.statement.rstrip(".") for row in change.lost if row.reaches_at(change.place)]
    if reaching:
        answer += (
            f" The effect of {listed([f'“{one}”' for one in reaching])} reaches the threshold still: what else is "
        )
        answer += "asked for is not met."
    answer += more
    gained = [row for row in change.gained if row.rule.id not in by_design]
    chance = [row for row in (*change.lost, *gained) if row.rule.id in unsteady]
    steady = tuple(row for row in change.lost if row not in chance)
    by_words = (
        ("Hold no more", steady),
        ("Hold no more, but seeds differ on them anyway", tuple(row for row in change.lost if row in chance)),
        ("Hold now and did not", tuple(row for row in gained if row not in chance)),
        ("Hold now, but seeds differ on them anyway", tuple(row for row in gained if row in chance)),
        ("Hold now, as they must by how it was made", tuple(r for r in change.gained if r.rule.id in by_design)),
    )
    places = (change.place,) if reference is None else (change.place, reference)
    parts = [Part(words, rows, places) for words, rows in by_words]
    return FamilyLesson(SURVIVAL[name], answer, FAMILY, _filled(parts))


def _cost(place: Place, family: SeriesPage, seeds: SeriesPage | None) -> str:
    """Return what a change costs in loss, or gains, in a sentence or two; none where that isn't known."""
    cost = _differences(family).get(place)
    if family.losses is None or cost is None:
        return ""
    more = "higher" if cost.mean > 0 else "lower"
    said = f" Its loss on {family.losses.text} is {number(abs(cost.mean))} nats {more}"
    if cost.interval is not None:
        low, high = cost.interval
        said += f" (95 % interval of the difference {number(low)} to {number(high)})"
        said += ", too little to be told from none" if low < 0 < high else ""
    by_seed = [abs(each.mean) for each in _differences(seeds).values()] if seeds is not None else []
    if by_seed:
        upto = "up to " if len(by_seed) > 1 else ""
        said += f"; another seed alone moves it by {upto}{number(max(by_seed))}"
    return f"{said}."


def _differences(page: SeriesPage) -> dict[Place, Mean]:
    """Return how far each model's loss is from the first model's, of those of which it is known."""
    rows = () if page.losses is None else page.losses.rows
    return {row.place: row.difference for row in rows if row.difference is not None}


def _own_curve(family: SeriesPage) -> Iterator[FamilyLesson]:
    member = next((one for one in family.members if one.model.name == WITHOUT), None)
    found = None if member is None else _largest(member)
    if member is None or found is None:
        return
    stage, reliable = found
    if not reliable:
        answer = "At no layer do both halves of the windows of text agree on a curve of positions: it makes none."
    else:
        answer = (
            f"It does: {_percent(stage['share'])} of the variance {_depth(stage)} lies between positions "
            f"({_percent(stage['share_low'])} to {_percent(stage['share_high'])}), on a curve that both halves of "
            f"the windows of text agree on; three components hold {_percent(stage['ev3'])} of it."
        )
        rule = next((row.rule for row in family.rows if row.rule.id == OWN_CURVE), None)
        if rule is not None and rule.holds is not None and stage["share"] < rule.holds:
            answer = answer.replace("It does:", f"Less than the {_percent(rule.holds)} asked for:", 1)
    beside = next((one for one in family.members if one.place == family.series.reference), None)
    theirs = None if beside is None else _largest(beside)
    if beside is not None and theirs is not None and theirs[1]:
        answer += f" With {beside.place} it is {_percent(theirs[0]['share'])} {_depth(theirs[0])}."
    yield FamilyLesson("Does a model without positions make its own curve?", answer, FAMILY)


def _largest(member: SeriesMember) -> tuple[StageRow, bool] | None:
    """Return the stage after the first where most variance lies between positions, and whether its curve is reliable.

    Of reliable ones where there are some; None where the model was not run.
    """
    judged = next((each for each in member.judged.findings if each.finding.name == "stream"), None)
    if judged is None or judged.measured is None:
        return None
    stages: list[StageRow] = judged.measured.metrics["layers"][1:]
    reliable = [stage for stage in stages if (stage["reliability"] or 0) >= RELIABLE]
    return max(reliable or stages, key=lambda stage: stage["share"]), bool(reliable)


def _seeds(seeds: SeriesPage) -> Iterator[FamilyLesson]:
    several = seeds.in_several
    if not several:
        return
    differing = tuple(row for row in several if not row.agrees)
    agreed = len(several) - len(differing)
    answer = (
        f"Of {_claims(len(several), hold=False)} that can be tested in two seeds or more, the seeds agree on "
        f"{agreed if differing else 'every one'}."
    )
    yield FamilyLesson(
        "Which observations vary with the seed?", answer, SEEDS, _filled((Part("Seeds differ", differing),))
    )


def _course(course: SeriesPage) -> Iterator[FamilyLesson]:
    found = course.emergence
    if course.half_fallen is None or not (found.before or found.after):
        return
    arrived = len(found.before) + len(found.after)
    answer = (
        f"Half of the loss's fall is done by step {number(course.half_fallen)} of {number(course.places[-1])}. "
        f"Of the {_claims(arrived, hold=False)} that {_hold(arrived)} at the last step, but not at every step before "
        f"that can test {_them(arrived)}, {len(found.before)} {_have(len(found.before))} held without interruption "
        f"since a step before that one, {len(found.after)} since that one or later."
    )
    start = number(course.places[0])
    parts = (
        Part("Since before that", found.before),
        Part("Since then or later", found.after),
        Part(f"Hold at step {start} already, and at every other", found.always),
        Part(f"Hold at every step that can test them, which step {start} can't", found.late),
    )
    yield FamilyLesson(WHEN, answer, COURSE, _filled(parts))


def _filled(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(part for part in parts if part.rows)


def _claims(count: int, *, hold: bool = True) -> str:
    claims = many(count, "claim")
    return f"{claims} {_hold(count)}" if hold else claims


def _hold(count: int) -> str:
    return "holds" if count == 1 else "hold"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _percent(share: float) -> str:
    return f"{number(100 * share)} %"


def _depth(stage: StageRow) -> str:
    return f"at layer {stage['layer']}"
