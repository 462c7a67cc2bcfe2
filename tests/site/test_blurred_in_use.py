"""Blurred positions begin with what blurring does to the running model, as “Use of positions” measured it."""

import re
from dataclasses import replace

import pytest

from generators.compute.judged import judged_model
from generators.compute.results import Store
from generators.site.view import ModelPage
from generators.site.words import environment
from tests.conftest import ROOT

MODEL = "all-minilm-l6-v2"
MACROS = '{% import "findings/blurred.md.j2" as words with context %}'


def page() -> ModelPage:
    judged = judged_model(Store(ROOT / "results"), MODEL)
    assert judged is not None
    return ModelPage(judged.published(), "MiniLM", None, None, [], [])


def rendered(call: str, **context: object) -> str:
    text = environment().from_string(f"{MACROS}{{{{ {call} }}}}").render(root="../", **context)
    return " ".join(re.sub("<[^>]*>", "", text).split())


def test_a_section_begins_with_the_cost_of_groups_of_ten():
    shown = page()
    row = next(r for r in shown.measured["position_use"]["damages"] if (r["kind"], r["amount"]) == ("groups", 10))
    assert f"MiniLM pays {100 * row['damage']:.1f} % of what it costs to have no positions" in rendered(
        "words.first(page)", page=shown
    )
    assert f"cost MiniLM {100 * row['damage']:.1f} % of" in rendered("words.first_of_all([page])", page=shown)


@pytest.mark.parametrize("count", [6, 7])
def test_of_many_models_the_ends_are_told(count):
    pages = [replace(page(), title=f"Model {i}") for i in range(count)]
    said = rendered("words.first_of_all(pages)", pages=pages)
    assert ("Model 3" in said) == (count == 6)
    assert (f"{count} models from" in said) == (count == 7)


def test_where_use_is_not_known_nothing_is_said_of_it():
    shown = page()
    del shown.measured["position_use"]
    assert rendered("words.first(page)", page=shown) == ""
    said = rendered("words.first_of_all([page])", page=shown)
    assert "%" not in said
    assert "is measured under Use of positions." in said
