"""How a rule judges, and the small things that findings are made with."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from generators.findings.contract import roles
from generators.findings.inputs import FREQUENCIES, RUN, TOKENS
from generators.findings.judging import Claim, Rule, Untested, judge
from generators.findings.judging import Tested as Found
from generators.findings.measured import Chance, Measurements, finite, table_of

NOTHING: Measurements[dict[str, float]] = Measurements({})
ANSWERS = {"holds": "Yes.", "partly": "Somewhat.", "fails": "No."}


def rule_of(tested: Found | Untested, **changed: Any) -> Rule[dict[str, float]]:
    plain = Rule("one", "short", "It is so.", "the number", lambda _: tested, holds=2.0, partly=1.0, unit="units")
    return replace(plain, **changed)


def judged(tested: Found | Untested, **changed: Any) -> Claim:
    return judge("some", rule_of(tested, **changed), NOTHING)


@pytest.mark.parametrize(("sense", "value", "verdict"), [
    ("at least", 2.0, "holds"), ("at least", 1.999, "partly"), ("at least", 1.0, "partly"),
    ("at least", 0.999, "fails"), ("at least", 1e9, "holds"), ("at least", -5, "fails"),
    ("at most", 1.0, "holds"), ("at most", 1.001, "partly"), ("at most", 2.0, "partly"),
    ("at most", 2.001, "fails"), ("at most", -5, "holds"), ("at most", 1e9, "fails"),
])  # fmt: skip
def test_a_threshold_itself_is_reached(sense, value, verdict):
    holds, partly = (2.0, 1.0) if sense == "at least" else (1.0, 2.0)
    claim = judged(Found(value, ANSWERS), sense=sense, holds=holds, partly=partly)
    assert (claim.verdict, claim.value, claim.threshold) == (verdict, value, holds)
    assert claim.answer == ANSWERS[verdict]


@pytest.mark.parametrize(("also", "also_partly", "value", "verdict"), [
    (True, None, 3.0, "holds"), (False, None, 3.0, "fails"), (False, True, 3.0, "partly"),
    (False, False, 3.0, "fails"), (True, False, 3.0, "holds"), (True, False, 1.5, "fails"),
    (False, True, 1.5, "partly"), (False, None, 1.5, "fails"), (True, True, 0.5, "fails"),
])  # fmt: skip
def test_a_further_condition_must_be_met(also, also_partly, value, verdict):
    assert (
        judged(Found(value, ANSWERS, extra_condition_met=also, partly_condition_met=also_partly)).verdict == verdict
    )


@pytest.mark.parametrize(("value", "verdict"), [(9.0, "fails"), (10.0, "partly"), (19.0, "partly"), (20.0, "holds")])
def test_thresholds_relative_to_chance_replace_those_of_the_rule(value, verdict):
    claim = judged(Found(value, ANSWERS, holds_at=20.0, partly_at=10.0))
    assert (claim.verdict, claim.threshold) == (verdict, 20.0)


def test_without_a_threshold_nothing_reaches_it():
    assert judged(Found(1e9, ANSWERS), holds=None, partly=None).verdict == "fails"
    assert judged(Found(1e9, ANSWERS), holds=None).verdict == "partly"
    assert judged(Found(1.5, ANSWERS), partly=None).verdict == "fails"


def test_what_has_no_value_fails_whatever_else_is_met():
    claim = judged(Found(None, ANSWERS))
    assert (claim.verdict, claim.value, claim.threshold, claim.answer) == ("fails", None, 2.0, "No.")


def test_a_value_of_0_is_a_value():
    assert judged(Found(0.0, ANSWERS), holds=0.0, partly=None).verdict == "holds"
    assert judged(Found(3.0, ANSWERS, holds_at=0.0)).threshold == 0.0


def test_answers_that_are_not_given_are_those_of_failing():
    assert judged(Found(3.0, {"fails": "No."})).answer == "No."
    assert judged(Found(1.5, {"holds": "Yes.", "fails": "No."})).answer == "No."
    assert judged(Found(3.0, "One for all.")).answer == "One for all."


def test_untested_says_why():
    claim = judged(Untested("There are none."))
    assert (claim.verdict, claim.answer, claim.threshold) == ("untested", "There are none.", 2.0)
    assert (claim.value, claim.interval, claim.baseline, claim.chance) == (None, None, None, None)


def test_a_claim_carries_what_its_rule_says():
    claim = judged(Found(3.0, ANSWERS, baseline=0.5))
    assert (claim.id, claim.finding, claim.statement, claim.unit) == ("one", "some", "It is so.", "units")
    assert (claim.baseline, claim.chance) == (0.5, None)


def test_the_median_of_what_was_drawn_is_the_baseline():
    chance = Chance("shuffled", median=0.25, limit=0.75, draws=100)
    claim = judged(Found(3.0, ANSWERS, baseline=0.5, chance=chance))
    assert (claim.baseline, claim.chance) == (0.25, chance)


@pytest.mark.parametrize(("interval", "close"), [
    ((1.9, 2.1), True), ((2.1, 2.3), False), ((1.0, 1.9), False), ((2.0, 2.5), False),
    ((0.9, 1.1), True), ((0.5, 0.9), False), ((1.0, 1.4), False),
])  # fmt: skip
def test_interval_with_a_cutoff_is_close(interval, close):
    assert judged(Found(1.05, ANSWERS, interval=interval)).close is close
    assert judged(Found(1.05, ANSWERS, interval=interval), holds=None, partly=None).close is False


@pytest.mark.parametrize(("value", "close"), [
    (0.89, False), (0.91, True), (1.09, True), (1.11, False), (1.79, False), (1.81, True), (2.19, True),
    (2.21, False), (None, False),
])  # fmt: skip
def test_value_near_a_cutoff_is_close(value, close):
    assert judged(Found(value, ANSWERS)).close is close


def test_cutoff_without_effect_is_not_close():
    near = Found(2.05, ANSWERS, interval=(1.9, 2.1))
    assert judged(replace(near, extra_condition_met=False)).close is False
    assert judged(replace(near, extra_condition_met=False, partly_condition_met=True), partly=2.0).close is True
    beyond = Chance("shuffled", median=1.0, limit=3.0, draws=100)
    assert judged(replace(near, chance=beyond)).close is False
    assert judged(replace(near, chance=beyond, interval=(1.9, 3.1))).close is True


@pytest.mark.parametrize(("value", "verdict"), [(0.5, "fails"), (1.9, "fails"), (2.0, "untested"), (9.0, "untested")])
def test_threshold_that_chance_reaches(value, verdict):
    chance = Chance("shuffled curves", median=2.5, limit=3.0, draws=100)
    claim = judged(Found(value, ANSWERS, chance=chance))
    assert claim.verdict == verdict
    assert ("shuffled curves give 2.5" in claim.answer) is (verdict == "untested")


@pytest.mark.parametrize(("value", "verdict"), [(0.2, "holds"), (0.25, "partly"), (0.3, "fails"), (0.35, "fails")])
def test_partly_may_have_a_limit_of_chance_of_its_own(value, verdict):
    chance = Chance("turned", median=0.3, limit=0.25, draws=100)
    found = Found(value, ANSWERS, chance=chance, holds_at=0.25, partly_at=0.3, partly_limit=0.3)
    assert judged(found, sense="at most").verdict == verdict
    assert judged(replace(found, partly_limit=None), sense="at most").verdict == (
        "holds" if value == 0.2 else "fails"
    )


@pytest.mark.parametrize(("value", "sense", "end"), [
    (3.0, "at least", ""), (1.5, "at least", " To hold, at least 2.0 is needed."),
    (0.5, "at least", " To hold partly, at least 1.0 is needed; to hold, 2.0."),
    (0.996, "at least", " To hold partly, at least 1.000 is needed; to hold, 2.0."),
    (2.5, "at most", " To hold partly, at most 2.0 is allowed; to hold, 1.0."),
    (1.5, "at most", " To hold, at most 1.0 is allowed."),
])  # fmt: skip
def test_an_answer_ends_with_the_cutoff_that_its_value_misses(value, sense, end):
    holds, partly = (2.0, 1.0) if sense == "at least" else (1.0, 2.0)
    changed = {"sense": sense, "holds": holds, "partly": partly}
    assert judged(Found(value, "So.", form="{:.1f}"), **changed).answer == f"So.{end}"
    assert judged(Found(value, "So."), **changed).answer == "So."


def test_a_cutoff_that_chance_sets_is_named_so():
    chance = Chance("turned", median=0.5, limit=1.5, draws=100)
    found = Found(1.2, "So.", chance=chance, form="{:.1f}")
    assert judged(found).answer == (
        "So. To hold partly, more than 1.5, the 99th percentile of chance, is needed; to hold, 2.0."
    )
    assert judged(found, partly=None).answer == "So. At least 2.0 is needed."
    assert judged(replace(found, partly_limit=0.5)).answer == "So. To hold, at least 2.0 is needed."
    beyond = replace(found, value=2.5, chance=replace(chance, limit=3.0))
    assert judged(beyond, partly=None).answer == "So. More than 3.0, the 99th percentile of chance, is needed."
    at_most = replace(found, value=0.9, chance=replace(chance, median=0.8, limit=0.6), partly_limit=0.8)
    assert judged(at_most, sense="at most", holds=0.7, partly=1.0).answer == (
        "So. To hold partly, the value must be less than 0.8, the median of chance; to hold, 0.6."
    )


def test_what_fails_by_a_further_condition_misses_no_cutoff():
    assert judged(Found(3.0, "So.", extra_condition_met=False, form="{:.1f}")).answer == "So."
    assert (
        judged(Found(3.0, "So.", extra_condition_met=False, partly_condition_met=True, form="{:.1f}")).answer == "So."
    )
    assert judged(Found(None, "So.", form="{:.1f}")).answer == "So."


# What findings are made with


def test_roles_stand_for_every_layer_and_capabilities_for_none():
    patterns = ("position_embedding", TOKENS, "blocks.*.ln1.gain", FREQUENCIES, RUN)
    assert roles(patterns, 2) == ["position_embedding", "blocks.0.ln1.gain", "blocks.1.ln1.gain"]


def test_a_table_is_read_by_the_names_of_its_columns():
    table = table_of("Two", ("b", "a"), [{"a": 1, "b": 2, "c": 3}, {"a": 4, "b": 5, "c": 6}])
    assert (table.columns, table.rows) == (("b", "a"), ((2, 1), (5, 4)))
    assert table.named() == [{"b": 2, "a": 1}, {"b": 5, "a": 4}]
    assert table.column("a") == [1, 4]
    with pytest.raises(ValueError, match="not in"):
        table.column("c")
    with pytest.raises(KeyError):
        table_of("One", ("b", "a"), [{"b": 2}])


@pytest.mark.parametrize(
    ("value", "stored"), [(1.5, 1.5), (np.float32(0.5), 0.5), (np.nan, None), (np.inf, None), (0, 0.0)]
)
def test_what_is_not_finite_is_stored_as_absent(value, stored):
    found = finite(value)
    assert found == stored
    assert found is None or type(found) is float
