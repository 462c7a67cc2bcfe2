"""A claim that noise can pass is no claim: a few draws of every null of `make nulls`, and the figures kept in git."""

from collections import Counter

import pytest

from generators.findings import FINDINGS
from generators.site import quality_reports
from tests import nulls

SEEDS = range(1000, 1003)  # none that `make nulls` uses
CLAIMS = {rule.id for finding in FINDINGS for rule in finding.rules}


@pytest.mark.parametrize("null", nulls.NULLS, ids=lambda null: null.name)
def test_nothing_is_found_where_there_is_nothing(null):
    counts = Counter(pair for seed in SEEDS for pair in nulls.verdicts(null, seed))
    held = {claim: count for (claim, verdict), count in counts.items() if verdict == "holds"}
    excused = {claim for claim, why in nulls.NOT_OPPOSITE.items() if null.name in why}
    assert counts
    assert {claim: count for claim, count in held.items() if claim not in excused and count > 1} == {}


def test_every_claim_about_weights_is_tried_on_some_null():
    tried = {claim for null in nulls.NULLS for claim, _ in nulls.verdicts(null, 0)}
    about_weights = {rule.id for f in FINDINGS if nulls.RUN not in f.needs for rule in f.rules}
    assert about_weights <= tried


if nulls.RESULTS.is_file():  # until `make nulls` has been run to its end

    def test_the_figures_kept_in_git_are_within_a_hundredth():
        kept = quality_reports.read(nulls.RESULTS.parent, "nulls")
        assert kept is not None
        assert kept.draws >= 200
        for null, claims in kept.nulls.items():
            for claim, held in claims.items():
                excused = null in nulls.NOT_OPPOSITE.get(claim, {})
                assert excused or held.holds <= max(nulls.SHARE * kept.draws, 0), (null, claim, held)


def test_what_is_excused_is_there():
    names = {null.name for null in nulls.NULLS}
    for claim, why in nulls.NOT_OPPOSITE.items():
        assert claim in CLAIMS
        assert set(why) <= names


@pytest.mark.parametrize("null", [nulls.NULLS[0], nulls.NULLS[6]], ids=lambda null: null.name)
def test_no_surrogate_is_drawn_where_no_number_of_the_curve_reaches_its_threshold(null, monkeypatch):
    quick = dict(nulls.verdicts(null, 7, [nulls.HELIX]))
    monkeypatch.setattr(nulls, "may_hold", lambda given: True)
    plain = dict(nulls.verdicts(null, 7, [nulls.HELIX]))
    assert set(quick) == set(plain)
    for verdict in ("holds", "untested"):
        assert {claim for claim in quick if quick[claim] == verdict} == {c for c in plain if plain[c] == verdict}


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
    assert (one.tested, one.nulls, one.most.holds) == (3, ("b", "c"), 2)
    assert [(null, kept.holds, why) for null, kept, why in one.excused] == [("d", 9, "why")]
    nothing = quality_reports.NullDraws.model_validate({**content, "nulls": {"a": held["a"]}}).of("x")
    assert (nothing.tested, nothing.most) == (1, None)
