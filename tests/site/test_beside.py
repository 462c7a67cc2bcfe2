"""Weights and behaviour side by side on a model's page: rows where both sides are known, nothing otherwise."""

import re
from pathlib import Path
from typing import Any

import pytest

from generators.base.text import share
from generators.compute.judged import judged_model
from generators.compute.results import Store
from generators.site.pictures import interactive_figures
from generators.site.view import ModelPage
from generators.site.words import environment

STORE = Store(Path(__file__).parents[2] / "results")
MODEL = "all-minilm-l6-v2"


def page() -> ModelPage:
    judged = judged_model(STORE, MODEL)
    assert judged is not None
    return ModelPage(judged.published(), MODEL, None, None, [], [])


def beside(shown: ModelPage) -> str:
    template = environment().from_string('{% import "beside.md.j2" as both with context %}{{ both.beside(page) }}')
    return template.render(page=shown)


def rows(shown: ModelPage) -> list[str]:
    return re.findall("<dt>(.*?)</dt>", beside(shown))


def test_each_row_tells_both_sides_and_where_they_are_from():
    shown, text = page(), beside(page())
    assert rows(shown) == ["The previous token", "Three components"]
    for finding in ("attention", "heads", "helix", "position_use"):
        assert f'href="#{finding}"' in text
    three = next(
        row for row in shown.measured["position_use"]["damages"] if row["kind"] == "components" and row["amount"] == 3
    )
    assert (
        f"costs {share(three['share'])} as much as removing all positions but the first (95\u00a0% interval" in text
    )
    assert f"hold {share(shown.measured['helix']['explained_variance_3d']['no_first'])} of the variance" in text


@pytest.mark.parametrize(
    ("lost", "left"),
    [
        (["attention"], ["Three components"]),
        (["heads"], ["Three components"]),
        (["helix"], ["The previous token"]),
        (["position_use"], ["The previous token"]),
        (["three-components-enough"], ["The previous token"]),
        (["heads", "position_use"], []),
    ],
)
def test_a_row_needs_both_sides_and_a_claim_that_can_be_tested(lost, left):
    shown = page()
    for name in lost:
        del (shown.measured if name in shown.measured else shown.claims)[name]
    assert rows(shown) == left
    assert bool(beside(shown).strip()) == bool(left)


def undertrained(prompted: dict[str, float | None] | None) -> dict[str, Any]:
    return {
        "candidates": 610,
        "unspeakable": 600,
        "controls": 500,
        "controls_unspeakable": 7,
        "prompted": prompted,
    }


@pytest.mark.parametrize("clump", [True, False])
@pytest.mark.parametrize(
    "prompted",
    [
        None,
        {"frequent": 0.9, "candidates": 0.1, "controls": 0.5},
    ],
)
def test_tokens_that_look_untrained_stand_beside_the_prompts(clump, prompted):
    shown = page()
    shown.measured["undertrained"] = undertrained(prompted)
    if not clump:
        shown.measured["outliers"] = {**shown.measured["outliers"], "clump": None}
    assert rows(shown)[-1] == "Tokens that look untrained"
    text = beside(shown)
    assert ("no tokens cluster" in text) != clump
    assert "600 of these candidates never reach a probability of 1\u00a0%; the same is true of 7 of 500 " in text
    asked = prompted is not None and prompted["candidates"] is not None
    assert ("brings back 10\u00a0% of the candidates, 50\u00a0% of equally rare controls and 90" in text) == asked


def test_heads_on_text_take_in_the_kernels_of_the_weights():
    judged = judged_model(STORE, MODEL)
    assert judged is not None
    figures = interactive_figures(judged.findings)
    names = [line.name for line in figures["heads-on-text"].lines]
    assert names == ["on text", "by positions alone", "with tokens on them"]
    alone = interactive_figures(each for each in judged.findings if each.finding.name != "attention")
    assert [line.name for line in alone["heads-on-text"].lines] == ["on text"]
