"""A claim that noise can pass is no claim: a few draws of every null of `make nulls`, and the figures kept in git."""

import json
from collections import Counter
from functools import cache

import pytest

from generators.findings import FINDINGS
from generators.site import quality_reports
from tests import nulls
from tests.running_nulls import EXCHANGES, RUNNING

SEEDS = (1000, 1001)  # none that `make nulls` uses
CLAIMS = {rule.id for finding in FINDINGS for rule in finding.rules}


@cache
def verdicts(null: nulls.Null, seed: int) -> list[tuple[str, str]]:
    return list(nulls.verdicts(null, seed))


@pytest.mark.parametrize("null", nulls.ALL_NULLS, ids=lambda null: null.name)
def test_nothing_is_found_where_there_is_nothing(null):
    counts = Counter(pair for seed in SEEDS for pair in verdicts(null, seed))
    held = {claim: count for (claim, verdict), count in counts.items() if verdict == "holds"}
    excused = {claim for claim, why in nulls.excused().items() if null.name in why}
    assert counts
    assert {claim: count for claim, count in held.items() if claim not in excused and count > 1} == {}


def test_every_claim_about_weights_is_tried_on_some_null():
    tried = {claim for null in nulls.NULLS for claim, _ in verdicts(null, SEEDS[0])}
    about_weights = {rule.id for f in FINDINGS if nulls.RUN not in f.needs for rule in f.rules}
    assert about_weights <= tried


def test_claims_in_use_are_tried():
    """On a trained one those of findings that have an exchange; on stand-ins those that neither can test."""
    before, exchanged, stand_in = ({claim for claim, _ in verdicts(null, SEEDS[0])} for null in nulls.RUNNING_NULLS)
    assert before == {rule.id for f in RUNNING for rule in f.rules}
    assert exchanged == {rule.id for f in RUNNING for rule in f.rules if f.name in EXCHANGES}
    assert stand_in < before


def test_claims_of_stand_ins_are_tested():
    stand_in = nulls.RUNNING_NULLS[2]
    assert [pair for seed in SEEDS for pair in verdicts(stand_in, seed) if pair[1] == "untested"] == []


def test_the_figures_kept_in_git_are_within_a_hundredth():
    stored = quality_reports.read(nulls.RESULTS.parent, "nulls")
    assert stored.draws >= 200
    for null, claims in stored.nulls.items():
        for claim, held in claims.items():
            excused = null in nulls.excused().get(claim, {})
            assert excused or held.holds <= nulls.most(max(stored.draws, held.tested)), (null, claim, held)
    running = [stored.nulls[null.name] for null in nulls.RUNNING_NULLS]
    for claim in (rule.id for finding in RUNNING for rule in finding.rules):
        tested = max(claims[claim].tested for claims in running if claim in claims)
        assert tested >= 0.95 * stored.draws, f"{claim} is tested in few draws of every null"


def test_allowed_number_of_draws():
    """A rule that lets through exactly 1 % is above 1 % in half of all counts; the more draws, the less so."""
    assert nulls.most(200) == 2
    assert nulls.most(1000) == 18
    assert nulls.most(100_000) / 100_000 < 1.1 * nulls.SHARE


def test_what_is_excused_is_there():
    names = {null.name for null in nulls.ALL_NULLS}
    for claim, why in nulls.excused().items():
        assert claim in CLAIMS
        assert set(why) <= names


@pytest.mark.parametrize("only", [["gains", "helix"], ["gains,helix"], ["gains", "helix,gains"]])
def test_findings_are_chosen_one_by_one_or_as_a_list(only):
    assert nulls.chosen(only) == ("gains", "helix")


@pytest.mark.parametrize("name", ["no-such", "blurred"])
def test_what_claims_nothing_can_not_be_chosen(name):
    with pytest.raises(SystemExit, match=f"with claims: {name}"):
        nulls.chosen([name])


def test_one_finding_is_counted_anew_and_the_others_stay(tmp_path, monkeypatch, capsys):
    there = json.loads(nulls.RESULTS.read_text("utf-8"))
    monkeypatch.setattr(nulls, "RESULTS", tmp_path / "nulls.json")
    nulls.RESULTS.write_text(json.dumps(there))
    counted = {null.name: {"clump": {"holds": 0, "tested": 1}} for null in nulls.ALL_NULLS}
    monkeypatch.setattr(nulls, "table", lambda draws, jobs, stored, only: counted if only == ("outliers",) else {})
    monkeypatch.setattr("sys.argv", ["nulls", "--only", "outliers"])
    nulls.main()
    now = json.loads(nulls.RESULTS.read_text("utf-8"))
    assert now["renewed"]["outliers"] == nulls.commit()
    assert now["not_opposite"] == nulls.excused(), "what is excused is said of today's nulls"
    assert set(now["nulls"]) == {*there["nulls"], *counted}
    for null, claims in now["nulls"].items():
        assert claims == there["nulls"].get(null, {}) | counted.get(null, {})


def test_a_claim_over_all_nulls_in_one_line():
    held = {"a": {"x": {"holds": 0, "tested": 9}}, "b": {"x": {"holds": 2, "tested": 9}}}
    held |= {"c": {"x": {"holds": 2, "tested": 8}}, "d": {"x": {"holds": 9, "tested": 9}}, "e": {}}
    held |= {"f": {"x": {"holds": 0, "tested": 0}}}
    content = {
        "date": "1",
        "commit": "2",
        "draws": 9,
        "sizes": {},
        "nulls": held,
        "not_opposite": {"x": {"d": "why"}},
    }
    one = quality_reports.NullDraws.model_validate(content).of("x")
    assert (one.tested, one.most.holds) == (3, 2)
    assert [(null, stored.holds, why) for null, stored, why in one.excused] == [("d", 9, "why")]
    nothing = quality_reports.NullDraws.model_validate({**content, "nulls": {"a": held["a"]}}).of("x")
    assert (nothing.tested, nothing.most) == (1, None)
