"""Words about findings: captions from templates, texts for those who can't see, thresholds."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from generators.findings.measured import Measurements
from generators.site import words
from generators.site.words import caption, claim_strip, environment, rules, threshold_in_words
from tests.toy_findings import positive

TEMPLATE = """\
{% macro caption_a_curve(metrics, arrays) %}
How to read
    <em>it</em>: {{ metrics.name }}
has {{ arrays.points | length }} points.
{% endmacro %}
{% macro alt_a_curve(metrics, arrays) %}It's {{ metrics.name }},
  {{ "%.1f" | format(arrays.points.max()) }} at most.{% endmacro %}
{% macro caption_wrong(metrics, arrays) %}{{ metrics.no_such_number }}{% endmacro %}
{% macro alt_wrong(metrics, arrays) %}{% endmacro %}
"""
HOSTILE = "<b onclick=\"x\">& 'y'"
MEASURED = Measurements({"name": HOSTILE}, {}, {"points": np.arange(7.0)})


@pytest.fixture(autouse=True)
def _template(monkeypatch: pytest.MonkeyPatch) -> None:
    module = environment().from_string(TEMPLATE).make_module({"root": "../../"})
    monkeypatch.setattr(words, "_words", lambda finding: module)


def test_a_caption_is_one_line_of_markup_in_which_data_are_text():
    found = caption("toy", "a-curve", MEASURED).how_to_read
    assert isinstance(found, Markup)
    assert found == f"How to read <em>it</em>: {Markup.escape(HOSTILE)} has 7 points."
    assert environment().from_string("{{ words }}").render(words=found) == found


def test_what_a_picture_shows_is_one_line_of_text_that_a_page_escapes_once():
    found = caption("toy", "a-curve", MEASURED).alt
    assert not isinstance(found, Markup)
    assert found == f"It's {HOSTILE}, 6.0 at most."
    page = environment().from_string('<img alt="{{ alt }}">').render(alt=found)
    assert page == f'<img alt="{Markup.escape(found)}">'
    assert "&amp;amp;" not in page


def test_a_number_that_is_not_there_or_a_figure_without_words_is_an_error_and_no_gap():
    with pytest.raises(UndefinedError, match="no_such_number"):
        caption("toy", "wrong", MEASURED)
    with pytest.raises(AttributeError, match="caption_another_curve"):
        caption("toy", "another-curve", MEASURED)


def test_templates_know_every_rule_and_refuse_others():
    template = environment().from_string("{{ rule(id).statement }}")
    for rule in rules():
        said = template.render(id=rule.id).replace("\N{NO-BREAK SPACE}", " ")  # as numbers are set
        assert said == Markup.escape(rule.statement).replace("\N{NO-BREAK SPACE}", " ")
    with pytest.raises(KeyError, match="no-such-rule"):
        template.render(id="no-such-rule")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "at least 0.5"),
        ({"partly": 0.25}, "at least 0.5 (partly: 0.25)"),
        ({"sense": "at most", "holds": -0.5, "partly": -0.25}, "at most −0.5 (partly: −0.25)"),
        ({"also": "with a gap"}, "at least 0.5, with a gap"),
        ({"partly": 0.25, "also": "with a gap"}, "at least 0.5 (partly: 0.25), with a gap"),
        ({"holds": None, "holds_as": "twice chance"}, "at least twice chance"),
    ],
)
def test_thresholds_in_words(changed, said):
    assert threshold_in_words(replace(positive(0.5), **changed)) == said


@pytest.mark.parametrize(
    ("value", "limit", "verdict", "green", "said"),
    [
        *((0.9, None, "holds", True, ""), (0.9, 0.4, "holds", True, ""), (0.4, None, "fails", True, "")),
        (0.9, None, "fails", False, "Not met: a gap."),
        (0.6, 0.7, "partly", True, "Not met: above the 99th percentile of chance, 0.7."),
    ],
)
def test_a_strip_is_green_only_where_the_claim_would_hold(value, limit, verdict, green, said, monkeypatch):
    monkeypatch.setattr(words, "rules", lambda: [replace(positive(0.5), also="and with a gap")])
    chance = None if limit is None else SimpleNamespace(median=0.1, limit=limit)
    numbers = {"value": value, "interval": None, "interval_kind": None, "threshold": 0.5, "unit": ""}
    drawn = claim_strip(SimpleNamespace(id="positive", verdict=verdict, chance=chance, **numbers), [0.0, 1.0])
    starts = re.findall(r'class="strip-holds" x="([\d.]+)"', drawn)
    assert starts == ([f"{10 + 260 * max(0.5, limit or 0):.1f}"] if green else [])
    assert (said in drawn) and (said or "Not met" not in drawn)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *((None, ""), (0.0, "0"), (0.5, "0.5"), (-0.8786, "−0.879")),
        *((1755.0, "1755"), (-150.6, "−151"), (-1e-7, "−1e-07")),
    ],
)
def test_effects_in_cells_are_brief_and_have_a_minus(value, said):
    assert environment().from_string("{{ value | brief }}").render(value=value) == said


FRONTS = ('a "b": c', "x\n---\ny: z", "\U0001f600 — ü", "{{ 7 }}", "- a", "yes", "<b>&amp;", "#% c", "2026-01-01")


@pytest.mark.parametrize("text", FRONTS)
def test_front_matter_says_what_it_was_given(text):
    from mkdocs.utils.meta import get_data

    template = environment().from_string(
        '{{ {"title": t, "description": "Of " ~ t, "updated": none} | front_matter }}\n\n# A'
    )
    body, found = get_data(template.render(t=text))
    assert found == {"title": text, "description": f"Of {text}"}
    assert body.strip() == "# A"
