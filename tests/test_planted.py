"""What is planted strongly is found, what is planted weakly isn't, and nothing in between turns back."""

import json

import pytest

from generators.base.errors import InputError
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from generators.site import quality_reports
from tests import planted
from tests.planted import ORDER, PLANTINGS, RESULTS


@pytest.mark.parametrize("planting", PLANTINGS, ids=lambda planting: planting.claim)
def test_both_ends_of_a_scale_are_told_apart(planting):
    assert planted.verdict(planting, planting.strengths[0], seed=100) == "holds"
    assert planted.verdict(planting, planting.strengths[-1], seed=100) in ("fails", "untested")


def test_every_claim_about_weights_is_planted():
    rules = {rule.id for finding in FINDINGS if RUN not in finding.needs for rule in finding.rules}
    assert {planting.claim for planting in PLANTINGS} == rules


if RESULTS.is_file():  # until `make planted` has been run to its end

    def test_the_scales_kept_in_git_are_those_and_never_turn_back():
        kept = quality_reports.read(RESULTS.parent, "planted")
        assert kept is not None
        expected = [(planting.claim, planting.what, [*map(float, planting.strengths)]) for planting in PLANTINGS]
        assert [(one.claim, one.what, [step.strength for step in one.scale]) for one in kept.plantings] == expected
        for one in kept.plantings:
            ranks = [ORDER.index(step.verdict) for step in one.scale]
            assert ranks == sorted(ranks, reverse=True), one.claim
            assert one.scale[0].verdict == "holds"
            assert one.scale[-1].verdict != "holds"


def test_damaged_scales_are_a_sentence(tmp_path):
    (tmp_path / "planted.json").write_text(json.dumps({"date": "1"}))
    with pytest.raises(InputError, match="make planted"):
        quality_reports.read(tmp_path, "planted")
