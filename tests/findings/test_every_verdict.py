"""Every claim meets each verdict that its rule says it can give, as its value passes its limits."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby, pairwise
from typing import Any

import pytest

from generators.compute.judged import read_metrics
from generators.compute.records import tables_of
from generators.compute.results import Store
from generators.findings import FINDINGS, judging
from generators.findings.contract import Finding
from generators.findings.growing import as_stored
from generators.findings.judging import Claim, NotMeasuredError, Rule, Untested, decide
from generators.findings.measured import Measurements
from tests import planted
from tests.conftest import ROOT
from tests.findings.test_contract import all_measured

MODELS = (
    "gpt2",
    "openai-gpt",
    "all-minilm-l6-v2",
    "stdlib-gpt2",
    "stdlib-none",
    "stdlib-rotary",
    "stdlib-sinusoidal",
)


def made_of(rule: Rule[Any], measurements: Measurements[Any]) -> Iterator[judging.Evidence]:
    with suppress(NotMeasuredError):
        found = rule.tested(measurements)
        if not isinstance(found, Untested):
            yield found


def in_results(finding: Finding[Any]) -> Iterator[Measurements[Any]]:
    for name in MODELS:
        stored, arrays = Store(ROOT / "results").load(name, finding.name) or (None, {})
        if stored is not None and stored.status == "computed":
            metrics, absent = read_metrics(finding.metrics, stored.metrics)
            yield as_stored(metrics, tables_of(stored), arrays, absent, "")


def in_its_test(finding: Finding[Any]) -> Iterator[Measurements[Any]]:
    """Yield the examples of a finding's own test, where scenes lack what its claims are about."""
    name = f"tests.findings.test_{finding.name}"
    yield from getattr(import_module(name), "examples", tuple)() if find_spec(name) else ()


def where_planted(finding: Finding[Any], rule: Rule[Any]) -> Iterator[Measurements[Any]]:
    for other, planting in planted.PLANTINGS:
        if (other, planting.claim) == (finding, rule.id):
            at = planted.scene(100)
            planting.plant(at, planting.strengths[0])
            yield finding.measure(planted.inputs(at))


def walked(rule: Rule[Any], found: judging.Evidence) -> list[Claim]:
    """Return a claim at values on, just before and just after every number that may decide it, and between these."""
    holds_at = rule.holds if found.holds_at is None else found.holds_at
    partly_at = rule.partly if found.partly_at is None else found.partly_at
    limits = [] if found.chance is None else [found.chance["median"], found.chance["limit"]]
    marks = sorted({mark for mark in (holds_at, partly_at, found.partly_limit, *limits) if mark is not None})
    steps = [mark + by for mark in marks for by in (-1e-9, 0, 1e-9)]
    steps += [*((a + b) / 2 for a, b in pairwise(marks)), marks[0] - 1, marks[-1] + 1]
    towards_holding = sorted(steps, reverse=rule.sense == "at most")
    return [decide("some", rule, replace(found, value=value)) for value in towards_holding]


def met(rule: Rule[Any], found: judging.Evidence) -> set[str]:
    """Return the verdicts that a claim comes to as its value walks; they come in order, and as it is printed."""
    verdicts: set[str] = set()
    for also in (True, False):
        claims = walked(rule, replace(found, extra_condition_met=also))
        order = [verdict for verdict, _ in groupby(claim.verdict for claim in claims)]
        assert order == [verdict for verdict in ("fails", "partly", "holds", "untested") if verdict in order]
        assert ("partly" in order) is (claims[0].partly_threshold is not None and order != ["untested"])
        assert ("holds" in order) is (also and "untested" not in order)
        assert len(order) > 1 or not any(claim.close for claim in claims), "no value would change the verdict"
        verdicts |= set(order)
    return verdicts - {"untested"}


def offered(rule: Rule[Any]) -> set[str]:
    some = rule.partly is not None or "partly" in rule.holds_as + rule.also
    return {"holds", "fails"} | ({"partly"} if some else set())


def sources(finding: Finding[Any], rule: Rule[Any]) -> Iterator[Iterator[Measurements[Any]]]:
    yield in_results(finding)
    yield iter(all_measured(finding))
    yield in_its_test(finding)
    yield where_planted(finding, rule)


@pytest.mark.parametrize("finding", [f for f in FINDINGS if f.rules], ids=lambda finding: finding.name)
def test_every_claim_meets_each_verdict_that_its_rule_offers(finding):
    for rule in finding.rules:
        found: set[str] = set()
        for source in sources(finding, rule):
            found |= {verdict for one in source for tested in made_of(rule, one) for verdict in met(rule, tested)}
            if found:
                break
        assert found == offered(rule), rule.id
