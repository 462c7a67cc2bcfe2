"""The words of findings: what their YAML files must have, and how a sentence is made of one."""

import math
import re

import pytest
import yaml
from jinja2 import UndefinedError

from generators.checkpoint.registry import load_registry
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.findings.judging import claim
from generators.findings.wording import ClaimWords, Words, sentence
from tests.conftest import ROOT
from tests.toy_findings import toy

FOLDER = ROOT / "generators" / "findings"
every_finding = pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.name)


@every_finding
def test_no_word_is_there_twice(finding):
    """YAML takes the second of two entries of one name, without a word."""
    nodes = [yaml.compose((FOLDER / finding.name / f"{finding.name}.yml").read_text("utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value]
            assert len(set(keys)) == len(keys)
            nodes += [value for _, value in node.value]


@every_finding
def test_reasons_are_those_that_rules_give(finding):
    if finding.rules:
        text = (FOLDER / finding.name / "claims.py").read_text("utf-8")
        given = set(re.findall(r'Untested\("([\w-]+)"', text))
        assert given <= set(finding.words.untested)
        assert all(f'"{name}"' in text for name in finding.words.untested)


def test_rules_without_words_and_words_without_a_rule_are_errors(monkeypatch):
    with pytest.raises(ValueError, match="judges no-such-claim, which has no words"):
        claim("no-such-claim")(next(f for f in FINDINGS if f.rules).measure)
    said = Words("Toy", 1, 1, claims={"nobodys": ClaimWords("short", "It is so.", "the number", "So.")})
    monkeypatch.setattr("tests.toy_findings.Words", lambda **_: said)
    with pytest.raises(ValueError, match="claims that no rule judges: nobodys"):
        toy("toy")


@pytest.mark.parametrize(("template", "said"), [
    ("It is so.", "It is so."),
    ("{{ x }} of {{ n }} and {{ y }}", "0.5 of 3 and 2"),
    ("{{ x | share }}\n{% if n %}\n  or {{ n | many('head') }}{% endif %}.", "50\N{NO-BREAK SPACE}% or 3 heads."),
    ("{{ [row] | map('as_head') | listed }}{{ '; no' if not n }}", "L1H2"),
    ("{{ [1, 2, 3] | first_few(2) }}, {{ x | form('+.2f') }}", "1, 2 and 1 more, +0.50"),
])  # fmt: skip
def test_a_sentence_is_made_of_numbers(template, said):
    numbers = {"x": 0.5, "y": 2.0, "n": 3, "row": {"layer": 1, "head": 2}}
    assert sentence(template, numbers) == said
    with pytest.raises(UndefinedError, match="'nowhere' is undefined"):
        sentence(template + "{{ nowhere }}", numbers)


def test_quoted_figures_are_linked_and_of_models_that_have_no_results():
    ours = set(Store(ROOT / "results").names())
    titles = {model.title for model in load_registry(ROOT / "models.yml").models if model.name in ours}
    quoted = [each for finding in FINDINGS for rule in finding.rules for each in rule.quoted]
    assert len(quoted) >= 4
    assert all(each.url.startswith("https://") and math.isfinite(each.value) for each in quoted)
    assert titles.isdisjoint(each.model for each in quoted)
