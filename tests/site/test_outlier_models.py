"""What sets a model apart is told by the others: verdicts that only it has, effects far from all of theirs."""

from types import SimpleNamespace

import pytest

from generators.compute.records import ClaimRecord
from generators.site.outlier_models import outlier_model


def model(name, recipe=None, **claims):
    reported = {"finding": "f", "unit": "turns", "threshold": 1.0, "baseline": None, "answer": ""}
    records = [
        ClaimRecord(id=id, statement=f"{id}.", verdict=verdict, value=value, **reported)
        for id, (verdict, value) in claims.items()
    ]
    return SimpleNamespace(
        name=name,
        counted_as=recipe or name,
        findings=SimpleNamespace(claims=records),
        claims={claim.id: claim for claim in records},
    )


def apart(mine, *others):
    page = model("mine", a=mine)
    return outlier_model(page, [page, *(model(str(i), a=other) for i, other in enumerate(others))])


@pytest.mark.parametrize(
    ("mine", "others", "holds", "fails"),
    [
        ("holds", ["fails", "partly"], 1, 0),
        ("holds", ["fails", "holds"], 0, 0),
        ("fails", ["holds", "holds"], 0, 1),
        ("fails", ["holds", "partly"], 0, 0),
        ("holds", ["fails"], 0, 0),  # of two models each differs from the other
        ("holds", ["fails", "untested"], 0, 0),
        ("untested", ["holds", "holds"], 0, 0),
        ("partly", ["holds", "holds"], 0, 0),
    ],
)
def test_only_a_verdict_that_no_other_has_is_shown(mine, others, holds, fails):
    found = apart((mine, None), *((other, None) for other in others))
    assert (len(found.holds), len(found.fails)) == (holds, fails)
    assert bool(found) == bool(holds or fails)


def test_models_of_one_recipe_are_one_of_the_others():
    page, one, two = model("mine", a=("holds", None)), *(model(n, "r", a=("fails", None)) for n in ("one", "two"))
    assert not outlier_model(page, [page, one, two])
    assert outlier_model(page, [page, one, two, model("more", a=("fails", None))]).holds
    assert not outlier_model(one, [page, one, two, model("more", a=("holds", None))]).fails, "its twin fails, too"


@pytest.mark.parametrize(
    ("value", "others", "times"),
    [
        (5.0, [1.0, 2.0, 1.5], 3.0),
        (-1.0, [1.0, 2.0, 1.5], 2.0),
        (2.9, [1.0, 2.0, 1.5], None),
        (1.5, [1.0, 2.0, 1.5], None),
        (5.0, [1.0, 2.0], None),  # the range of two says little
        (5.0, [1.0, 1.0, 1.0], None),  # no range at all: nothing to be far by
        (None, [1.0, 2.0, 1.5], None),
        (5.0, [1.0, 2.0, None], None),
    ],
)
def test_an_effect_is_far_if_it_is_farther_than_the_others_lie_apart(value, others, times):
    found = apart(("holds", value), *(("holds", other) for other in others)).far
    assert [one.times for one in found] == ([] if times is None else [pytest.approx(times)])


def test_the_farthest_are_shown_and_no_claim_twice():
    others = [model(str(i), **{c: ("fails", float(i)) for c in "abcde"}) for i in range(3)]
    page = model("mine", a=("holds", 99.0), **{c: ("fails", 5.0 + i) for i, c in enumerate("bcde")})
    found = outlier_model(page, [page, *others])
    assert [claim.id for claim in found.holds] == ["a"]
    assert [one.claim.id for one in found.far] == ["e", "d", "c"]
