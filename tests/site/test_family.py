"""What the family of the atlas's own models teaches: sentences from results, none without those that it needs."""

from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import pytest

from generators.site.family import family_lessons
from generators.site.held_out import Losses, LossMean, SeriesLoss
from generators.site.series import SeriesPage
from generators.site.words import environment
from tests.site.stand_ins import claim

WHEN = "Do claims start to hold in the first half of the fall in loss, or in the second?"
NEED = "Which claims need learned positions?"
RANK = "What still holds when P may have only three dimensions?"
OWN = "Does a model without positions make its own curve?"
SEEDS = "Which claims depend on the seed?"
STAGE = {"layer": 2, "share": 0.2, "share_low": 0.19, "share_high": 0.21, "reliability": 0.99, "ev3": 0.9}


def member(name, place, stages=(), **verdicts):
    """Return a model of a series; names of claims have _ for -."""
    metrics = {"layers": [{**STAGE, "layer": 0, "share": 0.9}, *stages]}
    stream = SimpleNamespace(
        finding=SimpleNamespace(name="stream"), measured=SimpleNamespace(metrics=metrics) if stages else None
    )
    claims = {id.replace("_", "-"): claim(id.replace("_", "-"), verdict) for id, verdict in verdicts.items()}
    judged = SimpleNamespace(findings=[stream])
    return SimpleNamespace(model=SimpleNamespace(name=name), place=place, claims=claims, units={}, judged=judged)


def page(name, along, *members, losses=None, seeds=()):
    reference = "learned positions" if along == "change" else None
    series = SimpleNamespace(name=name, along=along, reference=reference)
    return SeriesPage(series, tuple(one.place for one in members), members, (), losses, seeds)


def family(*members):
    return page("stdlib-family", "change", *members)


LEARNED = member(
    "stdlib-learned", "learned positions", winding="holds", clump="holds", low_rank="holds", fraying="fails"
)


def answers(*pages):
    """Return what the page says of each question, and the claims below it."""
    words, found = environment().get_template("family.j2").module, {}
    for lesson in family_lessons(pages):
        parts = tuple(SimpleNamespace(words=said(words.part(lesson, one)), rows=one.rows) for one in lesson.parts)
        found[said(words.question(lesson))] = SimpleNamespace(answer=said(words.answer(lesson)), parts=parts)
    return found


def said(markup):
    return unescape(str(markup).strip()).replace("\u00a0", " ")


def ids(part):
    return [row.rule.id for row in part.rows]


def test_what_holds_with_learned_positions_alone_needs_them():
    none = member("stdlib-none", "no positions", winding="untested", clump="holds", low_rank="fails", fraying="fails")
    rotary = member("stdlib-rotary", "rotations", winding="untested", clump="fails", low_rank="untested")
    found = answers(family(LEARNED, none, rotary))[NEED]
    assert found.answer == (
        "3 claims hold with learned positions. With no positions or rotations instead (one model each), 1 still "
        "holds in at least one of these models, 1 holds in none and 1 can't be compared."
    )
    assert {part.words: ids(part) for part in found.parts} == {
        "Hold only with learned positions": ["low-rank"],
        "Hold with another scheme too": ["clump"],
    }


def test_what_a_formula_makes_hold_is_not_taken_for_learned():
    table = member("stdlib-sinusoidal", "sinusoids", winding="holds", clump="holds", low_rank="fails")
    found = answers(family(LEARNED, table))[NEED]
    assert {part.words: ids(part) for part in found.parts} == {
        "Hold only with learned positions": ["low-rank"],
        "Hold with another scheme too": ["clump"],
        "Hold with another scheme by construction": ["winding"],
    }
    assert "1 still holds, 1 holds by construction and 1 no longer holds" in found.answer


@pytest.mark.parametrize("pages", [(), (family(LEARNED),), (family(member("stdlib-none", "no positions")),)])
def test_without_the_models_that_it_needs_nothing_is_said(pages):
    assert not {NEED, RANK, OWN} & set(answers(*pages))


def test_with_one_other_scheme_the_answer_speaks_of_it():
    none = member("stdlib-none", "no positions", winding="untested", clump="holds", low_rank="holds")
    assert answers(family(LEARNED, none))[NEED].answer.endswith(
        "With no positions instead, 2 still hold and 1 can't be compared."
    )


def test_what_survives_a_change_and_what_seeds_unmake_anyway():
    three = member(
        "stdlib-rank-three", "rank three", winding="fails", clump="fails", low_rank="holds", fraying="holds"
    )
    other = member("stdlib-learned-seed-1", 1, winding="fails", clump="holds", low_rank="holds", fraying="fails")
    seeds = page("stdlib-seeds", "seed", LEARNED, other)
    found = answers(family(LEARNED, three), seeds)
    assert found[RANK].answer == (
        "3 claims hold with learned positions. With rank three, 1 still holds and 2 no longer "
        "hold. For “winding” "
        "and “cluster” the effect still reaches the threshold, but another condition fails."
    )
    assert {part.words: ids(part) for part in found[RANK].parts} == {
        "No longer hold": ["clump"],
        "No longer hold, but seeds disagree on them": ["winding"],
        "Start to hold": ["fraying"],
    }
    assert found[SEEDS].answer == "Seeds agree on 3 of 4 claims that at least two of them can test."
    assert ids(found[SEEDS].parts[0]) == ["winding"]


def test_what_a_change_costs_is_shown_and_what_it_makes_hold_by_design():
    three = member(
        "stdlib-rank-three", "rank three", winding="fails", clump="holds", low_rank="holds", fraying="holds"
    )
    plain = member(
        "stdlib-learned", "learned positions", winding="holds", clump="holds", low_rank="fails", fraying="fails"
    )
    rows = (
        SeriesLoss("learned positions", LossMean(3.3, (3.2, 3.4))),
        SeriesLoss("rank three", LossMean(3.31, (3.2, 3.4)), LossMean(0.01, (-0.002, 0.022))),
    )
    losses = Losses(rows, "held-out text", "nats per token")
    found = answers(page("stdlib-family", "change", plain, three, losses=losses))[RANK]
    assert found.answer.endswith(
        "Loss on held-out text is 0.01 nats higher (95 % interval of the difference −0.002 to 0.022, which "
        "includes zero)."
    )
    assert {part.words: ids(part) for part in found.parts} == {
        "No longer hold": ["winding"],
        "Start to hold": ["fraying"],
        "Start to hold, by construction": ["low-rank"],
    }
    dearer = Losses(
        (rows[0], SeriesLoss("rank three", LossMean(3.5, None), LossMean(0.2, (0.19, 0.21)))),
        losses.text,
        losses.unit,
    )
    dear = page("stdlib-family", "change", plain, three, losses=dearer)
    assert answers(dear)[RANK].answer.endswith("0.19 to 0.21).")
    one, two = member("stdlib-learned", 0, winding="holds"), member("stdlib-learned-seed-1", 1, winding="holds")
    by_seed = Losses(
        (SeriesLoss(0, LossMean(3.3, None)), SeriesLoss(1, LossMean(3.28, None), LossMean(-0.02, None))),
        "text",
        "nats",
    )
    seeds = page("stdlib-seeds", "seed", one, two, losses=by_seed)
    assert answers(dear, seeds)[RANK].answer.endswith("0.19 to 0.21); another seed alone changes the loss by 0.02.")


def test_what_cant_be_tested_after_a_change_is_no_loss():
    short = member("stdlib-context-64", "a context of 64", winding="untested", clump="holds", low_rank="holds")
    found = answers(family(LEARNED, short))["What still holds with a short context?"]
    assert found.answer.endswith("With a context of 64, 2 still hold and 1 can't be compared.")
    assert found.parts == ()


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([STAGE], "Yes: position explains 20 % of the variance at layer 2 (95 % interval 19 % to 21 %)"),
        ([{**STAGE, "share": 0.01}], "Less than the 2 % required: position explains 1 % of the variance"),
        ([{**STAGE, "share_low": -0.1}], "No: at no layer is the share"),
        (
            [{**STAGE, "share_low": -0.1, "share": 0.9}, {**STAGE, "layer": 3}],
            "Yes: position explains 20 % of the variance at layer 3",
        ),
    ],
)
def test_whether_a_model_without_positions_makes_a_curve_is_known_from_its_layers(stages, said):
    alone = member("stdlib-none", "no positions", stages=stages, makes_its_own_positions="untested", clump="holds")
    rotary = member("stdlib-rotary", "rotations", makes_its_own_positions="holds")
    assert answers(family(alone, rotary))[OWN].answer.startswith(said)


def test_its_curve_is_set_beside_that_of_learned_positions():
    alone = member("stdlib-none", "no positions", stages=[STAGE])
    beside = member(
        "stdlib-learned", "learned positions", stages=[{**STAGE, "share": 0.4, "layer": 1}], clump="holds"
    )
    assert answers(family(beside, alone))[OWN].answer.endswith(
        " With learned positions, position explains 40 % at layer 1."
    )


def test_when_claims_appear_is_shown_beside_the_loss():
    steps = [
        member(f"s{i}", i, winding="holds" if i > 0 else "fails", clump="holds" if i > 2 else "fails")
        for i in range(4)
    ]
    losses = Losses(
        tuple(SeriesLoss(i, LossMean(loss, None)) for i, loss in enumerate([10.0, 9.0, 3.0, 2.0])), "text", "nats"
    )
    found = answers(page("stdlib-gpt2-trajectory", "step", *steps, losses=losses))[WHEN]
    assert found.answer == (
        "The loss has fallen half way by step 2 of 3. Of the 2 claims that come to hold during "
        "training, 1 does so before "
        "that step and 1 at that step or later."
    )
    assert [ids(part) for part in found.parts] == [["winding"], ["clump"]]
    held = [SimpleNamespace(**{**vars(one), "place": i}) for i, one in enumerate(steps[1:])]
    early = replace(losses, rows=losses.rows[:3])
    always = answers(page("stdlib-gpt2-trajectory", "step", *held, losses=early))[WHEN]
    assert (always.parts[-1].words, ids(always.parts[-1])) == (
        "Hold at every step, from step 0 on",
        ["winding"],
    )
    assert WHEN not in answers(page("stdlib-gpt2-trajectory", "step", *steps))  # no losses


def test_the_page_of_all_series_has_the_family_only_where_it_has_results():
    shared = {"root": "", "series": [], "waiting": []}
    template = environment().get_template("all_series.md.j2")
    assert "one thing changed" not in template.render(family=[], **shared)
    three = member("stdlib-rank-three", "rank three", winding="fails", clump="holds", low_rank="holds")
    text = template.render(family=family_lessons([family(LEARNED, three)]), **shared)
    assert "## One recipe, one thing changed { #family }" in text
    assert 'No longer hold (1): <a href="series/stdlib-family/#winding">winding</a>' in text
