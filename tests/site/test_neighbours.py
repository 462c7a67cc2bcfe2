"""The most and the least alike of each model, by verdicts: planted twins, too little to compare, and what is said."""

from types import SimpleNamespace

import numpy as np
import pytest

from generators.site.neighbours import neighbours
from generators.site.words import environment, rules

RULES = [rule.id for rule in rules()]


def model(name: str, verdicts: list[str]):
    claims = {id_: SimpleNamespace(verdict=verdict) for id_, verdict in zip(RULES, verdicts, strict=False)}
    return SimpleNamespace(name=name, title=name.upper(), claims=claims)


def dealt(names: str, claims: int = 30):
    rng = np.random.default_rng(0)
    return [model(name, [str(v) for v in rng.choice(["holds", "partly", "fails"], claims)]) for name in names]


def twins():
    pages = dealt("abcdefgh")
    return [*pages, model("twin", [claim.verdict for claim in pages[2].claims.values()])]


def said(pages) -> str:
    alike = SimpleNamespace(claims=None, size=None, start=None, unmeasured=list)
    alike.start = (SimpleNamespace(title="x", values=[]), SimpleNamespace(title="y", values=[]))
    alike.shown = alike.lacking = list
    template = environment(whole=True).get_template("alike.md.j2")
    return template.render(
        root="../", alike=alike, pages=pages, fewest=8, is_many=False, neighbours=neighbours(pages)
    )


def test_twins_find_each_other_beyond_chance():
    found = {one.page.name: one for one in neighbours(twins())}
    assert found["twin"].most.other.name == "c"
    assert found["c"].most.other.name == "twin"
    assert found["c"].most.same == found["c"].most.shared == 30
    assert found["c"].most.beyond_chance
    assert not found["a"].most.beyond_chance
    least = found["a"].least
    assert least is not None and least.share < found["a"].most.share


@pytest.mark.parametrize("pages", [[], dealt("ab")])
def test_of_few_models_nothing_is_said(pages):
    assert neighbours(pages) == []
    assert "By their verdicts" not in said(pages)


def test_a_model_that_shares_too_few_verdicts_is_compared_with_none():
    found = neighbours([*dealt("abcd"), model("bare", ["holds"] * 3 + ["untested"] * 27)])
    assert [one.page.name for one in found] == ["a", "b", "c", "d"]
    assert "bare" not in {other.other.name for one in found for other in (one.most, one.least) if other is not None}


def test_the_page_says_whether_any_two_agree_beyond_chance():
    assert "No pair of models agrees more than chance would" in said(dealt("abcdef"))
    assert "30 of 30 *" in said(twins())
    assert "No pair of models agrees more than chance would" not in said(twins())


def test_where_all_others_agree_as_often_none_is_called_the_least_alike():
    pages = [model(name, ["holds"] * 10) for name in "abc"]
    assert [one.least for one in neighbours(pages)] == [None] * 3
    assert said(pages).count("<td>none</td>") == 3
    assert "<td>none</td>" not in said(dealt("abcdef"))
