"""Verdicts that changed are listed by claim and model, with the numbers of both sides."""

from typing import Any

from tests.changed import changed, claims_only_in


def judged(verdict: str, value: float | None) -> dict[str, Any]:
    return {
        "finding": "some",
        "statement": "It is.",
        "verdict": verdict,
        "value": value,
        "threshold": 0.5,
        "limit": None,
    }


def test_what_changed_is_listed_with_the_numbers_of_both_sides():
    before = {
        "a": {"one": judged("fails", 0.4), "two": judged("holds", 0.6), "old": judged("holds", 1)},
        "gone": {"one": judged("fails", 0.4)},
    }
    after = {"a": {"one": judged("holds", 0.7), "two": judged("holds", 0.9), "new": judged("holds", 1)}}
    (row,) = changed(before, after)
    assert (row["claim"], row["model"]) == ("one", "a")
    assert [(row[side]["verdict"], row[side]["value"]) for side in ("before", "after")] == [
        ("fails", 0.4),
        ("holds", 0.7),
    ]
    assert claims_only_in(before, after) == {"new": ["new"], "gone": ["old"]}
