"""How a rule judges, and the small things that findings are made with."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from generators.compute.records import claim_record
from generators.findings.contract import roles
from generators.findings.inputs import FREQUENCIES, RUN, TOKENS
from generators.findings.judging import Claim, Evidence, Rule, Untested, judge
from generators.findings.measured import Chance, Measurements, StoredChance, finite, table_of
from generators.findings.token_cells import COLUMNS, cells, name, names
from tests import synthetic

NOTHING: Measurements[dict[str, float]] = Measurements({})
ANSWERS = {"holds": "Yes.", "partly": "Somewhat.", "fails": "No."}
REASONS = {"none": "There are none of {{ count }}."}


def rule_of(tested: Evidence | Untested, **changed: Any) -> Rule[dict[str, float]]:
    says = {"answer": "{{ answers[verdict] }}", "given": {"answers": ANSWERS}, "untested": REASONS}
    plain = Rule("short", "It is so.", "the number", id="one", test=lambda _: tested, holds=2.0, partly=1.0, **says)
    return replace(plain, unit="units", **changed)


def drawn(null: str, median: float, limit: float) -> StoredChance:
    return {"null": null, "median": median, "limit": limit, "draws": 100}


def judged(tested: Evidence | Untested, **changed: Any) -> Claim:
    return judge("some", rule_of(tested, **changed), NOTHING)


@pytest.mark.parametrize(("sense", "value", "verdict"), [
    ("at least", 2.0, "holds"), ("at least", 1.999, "partly"), ("at least", 1.0, "partly"),
    ("at least", 0.999, "fails"), ("at least", 1e9, "holds"), ("at least", -5, "fails"),
    ("at most", 1.0, "holds"), ("at most", 1.001, "partly"), ("at most", 2.0, "partly"),
    ("at most", 2.001, "fails"), ("at most", -5, "holds"), ("at most", 1e9, "fails"),
])  # fmt: skip
def test_a_threshold_itself_is_reached(sense, value, verdict):
    holds, partly = (2.0, 1.0) if sense == "at least" else (1.0, 2.0)
    for claim in (
        judged(Evidence(value), sense=sense, holds=holds, partly=partly),
        judged(Evidence(value, holds_at=holds, partly_at=partly), sense=sense, holds=7.0, partly=7.0),
    ):
        assert (claim.verdict, claim.value, claim.threshold) == (verdict, value, holds)
        assert claim.answer == ANSWERS[verdict]


@pytest.mark.parametrize(("also", "also_partly", "value", "verdict"), [
    (True, None, 3.0, "holds"), (False, None, 3.0, "fails"), (False, True, 3.0, "partly"),
    (False, False, 3.0, "fails"), (True, False, 3.0, "holds"), (True, False, 1.5, "fails"),
    (False, True, 1.5, "partly"), (False, None, 1.5, "fails"), (True, True, 0.5, "fails"),
])  # fmt: skip
def test_a_further_condition_must_be_met(also, also_partly, value, verdict):
    assert judged(Evidence(value, extra_condition_met=also, partly_condition_met=also_partly)).verdict == verdict


def test_without_a_threshold_nothing_reaches_it():
    assert judged(Evidence(1e9), holds=None, partly=None).verdict == "fails"
    assert judged(Evidence(1e9), holds=None).verdict == "partly"
    assert judged(Evidence(1.5), partly=None).verdict == "fails"


def test_what_has_no_value_fails_and_0_is_a_value():
    claim = judged(Evidence(None))
    assert (claim.verdict, claim.value, claim.threshold, claim.answer) == ("fails", None, 2.0, "No.")
    assert judged(Evidence(0.0), holds=0.0, partly=None).verdict == "holds"
    assert judged(Evidence(3.0, holds_at=0.0)).threshold == 0.0


def test_an_answer_names_numbers_thresholds_and_the_verdict():
    said = "{{ n }} of {{ m.all }}: {{ value | two }}, {{ chance.limit }}, {{ verdict }}."
    rule = rule_of(Evidence(3.0, {"n": 2}, chance=drawn("shuffled", 0.25, 0.75)), answer=said)
    assert judge("some", rule, Measurements({"all": 7.0})).answer == "2 of 7: 3, 0.75, holds."


def test_untested_says_why():
    claim = judged(Untested("none", {"count": 3}))
    assert (claim.verdict, claim.answer, claim.threshold) == ("untested", "There are none of 3.", 2.0)
    assert (claim.value, claim.interval, claim.baseline, claim.chance) == (None, None, None, None)


def test_a_claim_carries_what_its_rule_says_and_the_median_of_what_was_drawn():
    chance = drawn("shuffled", 0.25, 0.75)
    plain, claim = judged(Evidence(3.0, baseline=0.5)), judged(Evidence(3.0, baseline=0.5, chance=chance))
    assert (claim.id, claim.finding, claim.statement, claim.unit) == ("one", "some", "It is so.", "units")
    assert (plain.baseline, plain.chance) == (0.5, None)
    assert (claim.baseline, claim.chance) == (0.25, Chance(**chance))


@pytest.mark.parametrize(("interval", "close"), [
    ((1.9, 2.1), True), ((2.1, 2.3), False), ((1.0, 1.9), False), ((2.0, 2.5), False),
    ((0.9, 1.1), True), ((0.5, 0.9), False), ((1.0, 1.4), False),
])  # fmt: skip
def test_interval_with_a_cutoff_is_close(interval, close):
    assert judged(Evidence(1.05, interval=interval)).close is close
    assert judged(Evidence(1.05, interval=interval), holds=None, partly=None).close is False


@pytest.mark.parametrize(("value", "close"), [
    (0.89, False), (0.91, True), (1.09, True), (1.11, False), (1.79, False), (1.81, True), (2.19, True),
    (2.21, False), (None, False),
])  # fmt: skip
def test_value_near_a_cutoff_is_close(value, close):
    assert judged(Evidence(value)).close is close


def test_cutoff_without_effect_is_not_close():
    near = Evidence(2.05, interval=(1.9, 2.1))
    assert judged(replace(near, extra_condition_met=False)).close is False
    assert judged(replace(near, extra_condition_met=False, partly_condition_met=True), partly=2.0).close is True
    beyond = drawn("shuffled", 1.0, 3.0)
    assert judged(replace(near, chance=beyond)).close is False
    assert judged(replace(near, chance=beyond, interval=(1.9, 3.1))).close is True


@pytest.mark.parametrize("value", [0.5, 1.9, 2.0, 9.0])
def test_a_threshold_that_chance_reaches_tests_nothing_whatever_the_value(value):
    claim = judged(Evidence(value, chance=drawn("shuffled curves", 2.5, 3.0)))
    assert claim.verdict == "untested"
    assert "(shuffled curves), at least half would pass: the median is 2.5 (needed: at least 2)" in claim.answer


@pytest.mark.parametrize(("value", "also", "verdict", "weak"), [
    (0.9, True, "fails", True), (0.4, True, "fails", False), (0.9, False, "fails", False),
    (1.5, True, "partly", False), (2.5, True, "holds", False), (None, True, "fails", False),
])  # fmt: skip
def test_what_fails_beyond_chance_is_there_but_weak(value, also, verdict, weak):
    claim = judged(Evidence(value, chance=drawn("shuffled", 0.25, 0.5), extra_condition_met=also))
    assert (claim.verdict, claim.weak) == (verdict, weak)
    assert claim_record(claim).in_words == ("present, weak" if weak else verdict)
    assert not judged(Evidence(0.9)).weak, "without chance nothing is beyond it"


@pytest.mark.parametrize(("raw", "depends"), [(3.0, False), (1.5, True), (None, True)])
def test_a_verdict_that_a_choice_flips_names_it_with_both_numbers(raw, depends):
    choice = {"otherwise": {"in the raw weights": Evidence(raw)}, "choice": "whether the gain is folded in"}
    claim = judged(Evidence(2.5, **choice), form="{:.1f}")
    assert (claim.verdict, claim.value) == ("holds", 2.5)
    assert claim.depends_on == ("whether the gain is folded in" if depends else "")
    said = "in the raw weights, the claim holds partly (1.5)." if raw else "the claim fails (no value)."
    assert (said in claim.answer) is depends


@pytest.mark.parametrize(("value", "verdict"), [(0.2, "holds"), (0.25, "partly"), (0.3, "fails"), (0.35, "fails")])
def test_partly_may_have_a_limit_of_chance_of_its_own(value, verdict):
    chance = drawn("turned", 0.3, 0.25)
    found = Evidence(value, chance=chance, holds_at=0.25, partly_at=0.3, partly_limit=0.3)
    assert judged(found, sense="at most").verdict == verdict
    plain = judged(replace(found, partly_limit=None), sense="at most")
    assert plain.verdict == ("holds" if value == 0.2 else "fails")


@pytest.mark.parametrize(("value", "sense", "end"), [
    (3.0, "at least", ""), (1.5, "at least", " The claim would hold at 2.0 or above."),
    (0.5, "at least", " The claim would partly hold at 1.0 or above, and hold at 2.0 or above."),
    (0.996, "at least", " The claim would partly hold at 1.000 or above, and hold at 2.0 or above."),
    (2.5, "at most", " The claim would partly hold at 2.0 or below, and hold at 1.0 or below."),
    (1.5, "at most", " The claim would hold at 1.0 or below."),
])  # fmt: skip
def test_an_answer_ends_with_the_cutoff_that_its_value_misses(value, sense, end):
    holds, partly = (2.0, 1.0) if sense == "at least" else (1.0, 2.0)
    changed = {"sense": sense, "holds": holds, "partly": partly}
    assert judged(Evidence(value), answer="So.", form="{:.1f}", **changed).answer == f"So.{end}"
    assert judged(Evidence(value), answer="So.", **changed).answer == "So."


def so(tested: Evidence, **changed: Any) -> Claim:
    return judged(tested, answer="So.", form="{:.1f}", **changed)


def test_a_cutoff_that_chance_sets_is_named_so():
    chance = drawn("turned", 0.5, 1.5)
    found = Evidence(1.2, chance=chance)
    beyond = replace(found, value=2.5, chance={**chance, "limit": 3.0})
    at_most = replace(found, value=0.9, chance={**chance, "median": 0.8, "limit": 0.6}, partly_limit=0.8)
    for claim, said in (
        (
            so(found),
            " The claim would partly hold above 1.5, the 99th percentile of chance, and hold at 2.0 or above.",
        ),
        (so(found, partly=None), " The claim would hold at 2.0 or above."),
        (so(replace(found, partly_limit=0.5)), " The claim would hold at 2.0 or above."),
        (so(beyond, partly=None), " The claim would hold above 3.0, the 99th percentile of chance."),
        (
            so(at_most, sense="at most", holds=0.7, partly=1.0),
            " The claim would partly hold below 0.8, the median of chance, and hold at 0.6 or below.",
        ),
        (so(Evidence(3.0, extra_condition_met=False)), ""),
        (so(Evidence(3.0, extra_condition_met=False, partly_condition_met=True)), ""),
        (so(Evidence(None)), ""),
    ):
        assert claim.answer == f"So.{said}"


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


def test_what_tables_and_figures_say_of_a_token():
    known = synthetic.vocabulary(2, {0: b" the", 1: "漢".encode()})
    table = table_of("tokens", COLUMNS, [cells(known, 0), cells(None, 7)])
    assert table.rows == ((0, "␠the", "20 74 68 65"), (7, None, None))
    assert (name(0, "␠the"), name(7, None)) == ("␠the", "#7")
    assert names(None, np.arange(3), "best_name") == {}
    assert names(known, np.array([1, 0]), "best_name")["best_name"].tolist() == ["漢", "␠the"]
