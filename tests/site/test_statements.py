"""The list of what the sources say: every answer is there, and the page leads to it."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from generators.findings import FINDINGS
from generators.site import statements as module
from generators.site.questions import address_of
from generators.site.statements import AnsweredBy, Statement, counts, statements
from generators.site.words import environment

SOURCES = statements(series={"stdlib-family": "One recipe, one thing changed"})
EVERY = [one for source in SOURCES for one in source.statements]


def test_all_five_texts_are_there_and_no_statement_twice():
    assert [len(source.statements) > 5 for source in SOURCES] == [True] * 5
    assert len({one.says for one in EVERY}) == len(EVERY)
    assert sum(counts(SOURCES).values()) == len(EVERY)
    for one in EVERY:  # a reason unless answered, answers unless absent
        assert (one.status == "answered") == (one.why is None), one.says
        assert (one.status == "absent") == (not one.answers), one.says


def test_answers_are_claims_and_findings_that_exist():
    findings = {address_of(finding) for finding in FINDINGS}
    rules = {address_of(finding, rule.id) for finding in FINDINGS for rule in finding.rules}
    addresses = {answer.address for one in EVERY for answer in one.answers}
    assert addresses <= findings | rules | {"series/stdlib-family/"}
    without = {answer.address for source in statements() for one in source.statements for answer in one.answers}
    assert without <= findings | rules, "a series without a page is not linked"


@pytest.mark.parametrize(("verdict", "truth"), [("holds", "true"), ("fails", "false"), ("untested", None)])
def test_a_statement_is_as_true_as_the_claim_that_says_the_same(verdict, truth):
    first = SimpleNamespace(claim=SimpleNamespace(verdict=verdict))
    same = AnsweredBy("C", "c", SimpleNamespace(first=first))
    assert Statement("S.", "answered", (same,), None, same=same).truth == truth
    assert Statement("S.", "answered", (same,), None).truth is None


def test_the_page_has_every_statement_its_status_and_its_links():
    page = environment().get_template("statements.md.j2").render(root="../", sources=SOURCES, tally=counts(SOURCES))
    rows = re.findall(r'<tr><th scope="row">(.*?)</th><td>(.*?)</td>', page)
    assert len(rows) == len(EVERY)
    assert [where for _, where in rows] == [one.where for one in EVERY]
    assert 'href="../questions/shape/#rule-winding"' in page
    assert f"make {len(EVERY)} statements" in page


def test_a_statement_counts_once_where_it_is_answered():
    said = module.Statement("S.", "answered", (module.AnsweredBy("T", "a/", in_first=True),), None)
    assert said.where == "in its model"
    assert replace(said, of_others=True).where == "elsewhere"
    assert replace(said, answers=(module.AnsweredBy("T", "a/"),)).where == "elsewhere"
    assert replace(said, answers=(module.AnsweredBy("T", "a/", somewhere=False),)).where == "open"
    assert replace(said, status="absent", answers=()).where == "open"
