"""What chance gives each claim over all models."""

from types import SimpleNamespace

import pytest

from generators.compute.records import ChanceRecord
from generators.site.chances import chances, rules_by_finding
from tests.site.stand_ins import claim

RULE = next(rule for rule in rules_by_finding() if rule.id == "winding")


def page(verdict, draws=None):
    chance = None if draws is None else ChanceRecord(null="curves", median=0.5, limit=0.7, draws=draws)
    one = claim("winding", verdict, 2.0, 1.0, unit="").model_copy(update={"chance": chance})
    return SimpleNamespace(claims={"winding": one})


def test_verdicts_by_draws_are_counted_and_a_hundredth_of_them_is_expected_by_chance():
    pages = [
        page("holds", 200),
        page("fails", 200),
        page("holds", 99),
        page("holds"),
        page("untested"),
        page("fails", 200),
    ]
    found = chances([RULE], pages)
    (one,) = found.claims
    assert (len(one.tested), one.holding, one.nulls, one.draws) == (5, 3, ["curves"], [99, 200])
    assert (len(found.drawn), found.holding) == (4, 2)
    assert found.expected == pytest.approx(0.04)
    assert found.false_discoveries == pytest.approx(0.02)


def test_where_nothing_holds_nothing_is_false():
    assert chances([RULE], [page("fails", 200)]).false_discoveries == 0
    assert chances([RULE], [page("holds")]).claims[0].draws == []
    assert chances([RULE], [page("holds", 0)]).claims[0].draws == [], "an exact null has none"
