"""What is planted strongly is found, what is planted weakly isn't, and nothing in between turns back."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.findings.inputs import RUN
from generators.findings.plantings import controls_of
from generators.site import quality_reports
from tests import nulls, planted
from tests.planted import ORDER, PLANTINGS, RESULTS
from tests.toy_findings import positive, toy


@pytest.mark.parametrize(("finding", "planting"), PLANTINGS, ids=[planting.claim for _, planting in PLANTINGS])
def test_both_ends_of_a_scale_are_distinguished(finding, planting):
    assert planted.verdict(finding, planting, planting.strengths[0], seed=100) == "holds"
    assert planted.verdict(finding, planting, planting.strengths[-1], seed=100) in ("fails", "untested")


def unplanted(findings: Iterable[Finding[Any]]) -> list[tuple[str, str]]:
    """Return the claims about weights that nothing is planted for, and plantings for claims that there aren't."""
    rules = {(f.name, rule.id) for f in findings if RUN not in f.needs for rule in f.rules}
    return sorted(rules ^ {(f.name, one.claim) for f in findings for one in controls_of(f.name).plantings})


def test_every_claim_about_weights_is_planted():
    assert unplanted(FINDINGS) == []
    toys = [toy("new", rules=(positive(),)), toy("runs", needs=(RUN,), rules=(positive(),))]
    assert unplanted([*FINDINGS, *toys]) == [("new", "positive")]


def test_one_finding_is_measured_anew_and_the_others_stay(tmp_path, monkeypatch, capsys):
    there = json.loads(RESULTS.read_text("utf-8"))
    first, second = there["plantings"][:2]
    known = [pair for pair in PLANTINGS if pair[1].claim in (first["claim"], "clump")]
    monkeypatch.setattr(planted, "PLANTINGS", [*known, PLANTINGS[1]])
    monkeypatch.setattr(planted, "RESULTS", tmp_path / "planted.json")
    planted.RESULTS.write_text(json.dumps({**there, "plantings": [first, second]}))
    monkeypatch.setattr(planted, "worst", lambda finding, planting, strength: "partly")
    monkeypatch.setattr("sys.argv", ["planted", "--only", "outliers"])
    planted.main()
    now = json.loads(planted.RESULTS.read_text("utf-8"))
    assert [now["date"], now["commit"], now["renewed"]] == [
        there["date"],
        there["commit"],
        {**there.get("renewed", {}), "outliers": nulls.commit()},
    ]
    clump = now["plantings"].pop(1)
    assert now["plantings"] == [first, second]
    assert (clump["claim"], {one["verdict"] for one in clump["scale"]}) == ("clump", {"partly"})


def test_the_scales_kept_in_git_are_those_and_never_turn_back():
    stored = quality_reports.read(RESULTS.parent, "planted")
    claims = {one.claim for one in stored.plantings}
    known = {finding.name for finding, planting in PLANTINGS if planting.claim in claims}
    expected = [  # a finding that is new has no scales yet: all of its claims are absent, or none is
        (planting.claim, planting.what, [*map(float, planting.strengths)])
        for finding, planting in PLANTINGS
        if finding.name in known
    ]
    assert [(one.claim, one.what, [step.strength for step in one.scale]) for one in stored.plantings] == expected
    for one in stored.plantings:
        ranks = [ORDER.index(step.verdict) for step in one.scale]
        assert ranks == sorted(ranks, reverse=True), one.claim
        assert one.scale[0].verdict == "holds"
        assert one.scale[-1].verdict != "holds"
