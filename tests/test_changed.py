"""Verdicts that changed are listed by claim and model, with the numbers that moved."""

from typing import Any

from tests.changed import changed, claims_only_in


def judged(verdict: str, value: float | None, threshold: float = 0.5, answer: str = "It is so.") -> dict[str, Any]:
    numbers = {"value": value, "threshold": threshold, "limit": None}
    return {"finding": "some", "statement": "It is.", "verdict": verdict, "answer": answer, **numbers}


def test_what_changed_is_said_with_the_numbers_that_moved():
    before = {
        "a": {"one": judged("fails", 0.4), "two": judged("holds", 0.6), "old": judged("holds", 1)},
        "b": {"one": judged("fails", 0.4)},
        "gone": {"one": judged("fails", 0.4)},
    }
    after = {
        "a": {"one": judged("holds", 0.4, 0.3), "two": judged("holds", 0.9), "new": judged("holds", 1)},
        "b": {"one": judged("untested", None, answer="There is none.")},
    }
    rows = changed(before, after)
    assert [(row["claim"], row["model"], row["why"]) for row in rows] == [
        ("one", "a", "threshold 0.5 → 0.3"),
        ("one", "b", "There is none."),
    ]
    assert (rows[0]["before"]["verdict"], rows[0]["after"]["verdict"]) == ("fails", "holds")
    assert claims_only_in(before, after) == {"new": ["new"], "gone": ["old"]}


def test_the_same_numbers_under_a_new_rule_are_said_to_be_so():
    (row,) = changed({"a": {"one": judged("fails", 0.4)}}, {"a": {"one": judged("partly", 0.4)}})
    assert row["why"] == "the same numbers under a new rule"
