"""What chance gives each claim over all models."""

from types import SimpleNamespace

import pytest

from generators.compute.records import ChanceRecord
from generators.site.chances import chances
from tests.site.stand_ins import claim


def page(verdict, draws=None):
    chance = None if draws is None else ChanceRecord(null="curves", median=0.5, limit=0.7, draws=draws)
    one = claim("winding", verdict, 2.0, 1.0, unit="").model_copy(update={"chance": chance})
    return SimpleNamespace(claims={"winding": one})


def of_winding(found):
    return next(one for one in found.claims if one.rule.id == "winding")


def test_verdicts_by_draws_are_counted_and_a_hundredth_of_them_is_expected_by_chance():
    verdicts = ("holds", 200), ("fails", 200), ("holds", 99), ("holds",), ("untested",), ("fails", 200)
    found = chances([page(*one) for one in verdicts])
    one = of_winding(found)
    assert (len(one.tested), one.holding, one.nulls, one.draws) == (5, 3, ["curves"], [99, 200])
    assert (len(found.drawn), found.holding) == (4, 2)
    assert found.expected == pytest.approx(0.04)
    assert found.false_discoveries == pytest.approx(0.02)


def test_where_nothing_holds_nothing_is_false():
    assert chances([page("fails", 200)]).false_discoveries == 0
    assert of_winding(chances([page("holds")])).draws == []
    assert of_winding(chances([page("holds", 0)])).draws == [], "an exact null has none"
