"""In how many models a claim holds, and what is said of it."""

from html import unescape
from types import SimpleNamespace

import pytest

from generators.compute.records import ChanceRecord
from generators.site.learned import Overview, lessons
from generators.site.words import environment
from tests.site.stand_ins import RULES, claim

NAMES = ("winding", "clump", "fraying", "constant-norms", "low-rank", "makes-its-own-positions")
THRESHOLD = 1.0


def page(name, *verdicts, values=(), recipe=None, is_small=False):
    """Return a model whose verdicts are those of `NAMES`."""
    claims = {}
    for at, (id, verdict) in enumerate(zip(NAMES, verdicts, strict=False)):
        passes = (verdict == "holds") == (RULES[id][1].sense == "at least")
        value = values[at] if at < len(values) else 2.0 if passes else 0.5
        claims[id] = claim(id, verdict, value, THRESHOLD, unit="")
    return SimpleNamespace(
        name=name,
        title=f"{name}'s title",
        claims=claims,
        counted_as=recipe or name,
        is_small=is_small,
        claim_address=lambda claim: f"models/{name}/#claim-{claim}",
    )


def learned(*pages, in_series=()):
    return {lesson.rule.id: lesson for lesson in lessons([RULES[id][1] for id in NAMES], pages, in_series)}


def overview(*pages):
    return Overview(tuple(learned(*pages).values()), next(page for page in pages if page.name == "gpt2"))


def said(macro, *facts):
    return unescape(str(getattr(environment().get_template("lessons.j2").module, macro)(*facts)).rstrip("\n"))


def ids(these):
    return [lesson.rule.id for lesson in these]


GPT2 = page("gpt2", "holds", "untested", "holds", "fails", "holds", "untested")
OTHER = page("other", "holds", "fails", "fails", "holds", "partly", "untested")
THIRD = page("third", "holds", "fails", "fails", "fails", "partly", "untested")
TWIN = page("twin", "holds", "holds", "fails", "holds", "partly", "holds", recipe="other")  # of OTHER's recipe


def test_what_most_models_show_and_what_none_does():
    fourth = page("fourth", "holds", "fails", "fails", "fails", "partly", "untested")
    found = overview(GPT2, OTHER, THIRD)
    assert ids(found.in_most) == ["winding"]
    assert found.nowhere == [], "clump holds in neither of two models, which are too few"
    assert ids(overview(GPT2, OTHER, THIRD, fourth).nowhere) == ["clump"]
    assert [claim.id for claim in found.untested] == ["clump", "makes-its-own-positions"]
    assert overview(GPT2, OTHER).in_most == []


def test_what_most_of_series_deny_is_said_to_be_so():
    holds, fails = (page(name, name, *["untested"] * 5) for name in ("holds", "fails"))
    assert [
        learned(GPT2, OTHER, in_series=series)["winding"].mostly_otherwise
        for series in ([], [holds], [fails], [holds, fails], [fails, holds, fails])
    ] == [False, False, True, False, True]
    assert not learned(GPT2, OTHER, in_series=[page("x", "fails", "fails", *["fails"] * 4)])["clump"].mostly_otherwise


def test_models_of_one_recipe_count_once_and_hold_only_together():
    found = learned(GPT2, OTHER, TWIN)
    assert (found["winding"].tested, found["winding"].holding) == (2, 2)
    counts = {name: (one.holding, one.partly, one.tested) for name, one in found.items()}
    assert (counts["clump"], counts["constant-norms"]) == ((0, 1, 1), (1, 0, 2))
    assert counts["makes-its-own-positions"] == (1, 0, 1)
    assert overview(GPT2, OTHER, TWIN).in_most == [], "two models are too few"
    assert said("sentence", found["winding"]) == "Holds in both models we could test"
    assert said("sentence", found["clump"]) == "Partly holds in the one model we could test"


def test_models_of_a_series_count_only_where_no_other_can_tell():
    member = page("member", "fails", "untested", "untested", "untested", "untested", "holds")
    found = learned(GPT2, OTHER, in_series=[member])
    assert said("sentence", found["winding"]).endswith(", but in 0 of 1 small or series models")
    own = found["makes-its-own-positions"]
    assert said("sentence", own) == "Tested only in one small model, where it holds"
    module = environment().get_template("macros.j2").make_module({"root": "../", "whole": True})
    assert '<a href="../models/member/#claim-makes-its-own-positions">' in module.of_small(own, "../")
    assert not str(module.of_small(found["winding"], "../")).strip()
    assert said("sentence", learned(GPT2)["makes-its-own-positions"]) == "It can't be tested in any model here"


def test_small_models_are_counted_only_where_there_are_no_others():
    small = [page(name, "fails", is_small=True) for name in ("a", "b")]
    found = learned(GPT2, *small, in_series=[page("c", "holds")])["winding"]
    assert (found.holding, found.tested, len(found.small), found.small_holding) == (1, 1, 3, 1)
    alone = learned(*small)["winding"]
    assert (alone.tested, len(alone.small)) == (2, 0)


@pytest.mark.parametrize("holding", [True, False])
def test_of_the_helix_both_counts_are_given(holding):
    one = page("one", "holds")
    one.claims["three-components"] = one.claims["winding"].model_copy(
        update={
            "id": "three-components",
            "verdict": "holds" if holding else "fails",
            "value": 0.91,
            "chance": ChanceRecord(null="curves", median=0.63, limit=0.7, draws=200),
        }
    )
    named = " (one's title)" if holding else ""
    together = environment().get_template("findings/helix.md.j2").make_module({"root": ""}).together
    assert unescape(str(together([one]))).strip() == (
        "Learned positions form a winding curve in 1 of 1 model tested; "
        f"in {int(holding)} of 1{named} the curve also lies in three dimensions, so it is a helix"
    )
    assert not str(together([page("two", "untested")])).strip()
