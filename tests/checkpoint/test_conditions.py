"""Models as people have them are read as transformers reads them, or refused; `make oracle` asks them all."""

import json

import pytest

from tests.checkpoint.oracle.conditions import FAMILIES, RESULTS, RIGHT, combinations

EVERY = 10  # of the combinations, one is asked here


def test_all_combinations_came_out_right():
    report = json.loads(RESULTS.read_text("utf-8"))
    assert report["families"] == list(FAMILIES)
    assert set(report["counts"]) == set(RIGHT)
    assert sum(report["counts"].values()) == len(list(combinations())) >= 500
    assert set(report["conditions"]) == {condition for _, condition, _ in combinations()}


@pytest.mark.oracle
@pytest.mark.parametrize("family, condition, ask", list(combinations())[::EVERY])
def test_what_is_read_is_what_transformers_opens(family, condition, ask):
    assert ask() in RIGHT
