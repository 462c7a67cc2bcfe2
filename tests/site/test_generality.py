"""Claims from the most general to the least."""

from html import unescape
from types import SimpleNamespace

import pytest

from generators.compute.records import ChanceRecord
from generators.site.learned import generality, lessons
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


def general(*pages, in_series=()):
    return generality(list(learned(*pages, in_series=in_series).values()), pages)


def said(macro, *facts):
    return unescape(str(getattr(environment().get_template("lessons.j2").module, macro)(*facts)).rstrip("\n"))


def ids(these):
    return [lesson.rule.id for lesson in these]


GPT2 = page("gpt2", "holds", "untested", "holds", "fails", "holds", "untested")
OTHER = page("other", "holds", "fails", "fails", "holds", "partly", "untested")
THIRD = page("third", "holds", "fails", "fails", "fails", "partly", "untested")
TWIN = page("twin", "holds", "holds", "fails", "holds", "partly", "holds", recipe="other")  # of OTHER's recipe


def test_claims_are_ordered_by_the_share_that_holds_then_partly_and_those_that_few_can_test_come_last():
    found = general(GPT2, OTHER, THIRD)
    assert ids(found.lessons) == [
        "winding",  # 3 of 3
        "low-rank",  # 1 of 3, partly in 2
        "fraying",  # 1 of 3
        "constant-norms",  # 1 of 3
        "clump",  # 0 of 2
        "makes-its-own-positions",
    ]


def test_what_holds_in_one_model_alone_is_the_least_general():
    found = general(GPT2, OTHER, THIRD)
    assert ids(found.everywhere) == ["winding"]
    assert ids(found.most_general_of_first) == ["winding"]
    assert ids(found.in_first_alone) == ["fraying", "low-rank"]  # the least general first
    assert [(lesson.rule.id, title) for lesson, title in found.in_another_alone] == [
        ("constant-norms", "other's title")
    ]
    assert found.nowhere == [], "clump holds in neither of two models, which are too few"
    fourth = page("fourth", "holds", "fails", "fails", "fails", "partly", "untested")
    assert ids(general(GPT2, OTHER, THIRD, fourth).nowhere) == ["clump"]


def test_only_needs_a_difference_beyond_both_ranges_and_every_holder_counts():
    near = page("near", "holds", "fails", "fails", values=[2.0, 0.5, 1.9])
    assert ids(general(GPT2, near, THIRD).in_first_alone) == ["fraying"]
    GPT2.claims["fraying"], kept = (
        GPT2.claims["fraying"].model_copy(update={"interval": (1.5, 2.5)}),
        GPT2.claims["fraying"],
    )
    assert "fraying" not in ids(general(GPT2, near, THIRD).in_first_alone)
    GPT2.claims["fraying"] = kept
    twin = page("twin", "holds", "fails", "holds", recipe="other")
    assert "fraying" not in ids(general(GPT2, OTHER, twin, THIRD).in_first_alone), "one of two of a recipe"
    small = page("small", "fails", "untested", "holds", is_small=True)
    assert "fraying" not in ids(general(GPT2, OTHER, THIRD, small).in_first_alone), "a small model holds it, too"


def test_what_most_of_series_deny_is_not_called_the_most_general():
    holds, fails = (page(name, name, *["untested"] * 5) for name in ("holds", "fails"))
    assert [
        learned(GPT2, OTHER, in_series=series)["winding"].mostly_otherwise
        for series in ([], [holds], [fails], [holds, fails], [fails, holds, fails])
    ] == [False, False, True, False, True]
    assert not learned(GPT2, OTHER, in_series=[page("x", "fails", "fails", *["fails"] * 4)])["clump"].mostly_otherwise


def test_what_holds_in_the_first_alone_or_in_fewer_than_three_models_is_not_the_most_general():
    fails = page("other", *["fails"] * 5)
    assert general(GPT2, fails, page("more", *["fails"] * 5)).most_general_of_first == []
    assert general(OTHER, THIRD).most_general_of_first == []
    for few in (general(GPT2), general(GPT2, OTHER)):
        assert few.everywhere == few.in_first_alone == few.in_another_alone == few.most_general_of_first == []


def test_models_of_one_recipe_count_once_and_hold_only_together():
    found = learned(GPT2, OTHER, TWIN)
    assert (found["winding"].tested, found["winding"].holding) == (2, 2)
    counts = {name: (one.holding, one.partly, one.tested) for name, one in found.items()}
    assert (counts["clump"], counts["constant-norms"]) == ((0, 1, 1), (1, 0, 2))
    assert counts["makes-its-own-positions"] == (1, 0, 1)
    assert general(GPT2, OTHER, TWIN).everywhere == []
    assert ids(general(GPT2, OTHER, TWIN, THIRD).everywhere) == ["winding"]
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


def test_where_models_of_a_series_say_otherwise_that_is_said():
    against, alike, nowhere = page("a", "fails"), page("b", "holds"), page("c", "fails")
    for of, series, otherwise in (
        ([GPT2, OTHER], [against, alike], ("fails", 1)),
        ([GPT2, OTHER], [alike], None),
        ([nowhere], [against, alike], ("holds", 1)),
        ([GPT2, nowhere], [against], None),  # it is in some anyway
    ):
        assert learned(*of, in_series=series)["winding"].otherwise == otherwise
    assert "3 of 3 models; fails in 1 of 2 small models." in short(GPT2, OTHER, THIRD, in_series=[against, alike])


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
    named = " (one&#39;s title)" if holding else ""
    assert (
        "Learned positions form a winding curve in 1 of 1 model tested; "
        f"in {int(holding)} of 1 the curve also lies in three dimensions and is a helix{named}."
    ) in short(one)
    assert "The helix" not in short(page("two", "untested"))


def short(*pages, in_series=()):
    source = '{% import "macros.j2" as m with context %}{% include "generality.md.j2" %}'
    found = general(*pages, in_series=in_series)
    return environment().from_string(source).render(root="../", pages=pages, counted=pages, general=found)


@pytest.mark.parametrize(
    ("pages", "said", "unsaid"),
    [
        ((), [], ["In every model counted</strong>"]),
        (
            (GPT2,),
            ["2 of its 6 claims"],
            ["Only in", "in the largest share of others", "<details"],
        ),
        ((OTHER,), [], ["GPT", "gpt2", "Not tested in"]),
        (
            (GPT2, OTHER, THIRD),
            [
                "<strong>In gpt2&#39;s title and in the largest share of others</strong> (1 claim)",
                "<strong>Only in gpt2&#39;s title</strong> (2 claims, ",
                "own waves with random phases</a>. Holds in 1 of 3 models.",
            ],
            ["no claim that can be tested in three or more models"],
        ),
    ],
)
def test_the_page_says_it_in_short(pages, said, unsaid):
    text = short(*pages)
    assert "## In most models, or in one { #in-short }" in text
    assert [one for one in said if one not in text] == []
    assert [one for one in unsaid if one in text] == []


def test_many_claims_are_counted_and_named_on_demand():
    three = [page(name, *["fails"] * len(NAMES)) for name in ("one", "two", "three")]
    text = short(*three)
    assert "In no model counted</strong> (6 claims):<details" in text
    named = text.partition('<details class="which"><summary>Which they are</summary>')[2].partition("</details>")[0]
    assert named.count('<a href="../questions/') == len(NAMES)
