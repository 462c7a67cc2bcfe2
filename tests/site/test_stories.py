"""What the home page opens with: what holds, with the first model that shows it, in words made from its numbers."""

from typing import Any

import pytest

from generators.checkpoint.registry import Model, load_registry
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.site.staging import Staging
from generators.site.stories import MOST, Told, stories
from generators.site.view import ModelPage, model_page
from generators.site.words import environment
from tests.conftest import ROOT, without_figures

TELLING = [(finding, story) for finding in FINDINGS for story in finding.facts.stories]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModelPage]:
    folder = tmp_path_factory.mktemp("kept")
    staging, store = Staging(folder / "pages", folder / "cache"), Store(ROOT / "results")
    registry = load_registry(ROOT / "models.yml")
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)  # others look at figures
        for name in ("gpt2", "openai-gpt", "all-minilm-l6-v2"):
            page = model_page(_named(registry.models, name), store, staging, lambda line: None)
            assert page is not None
            found[name] = page
    return found


def _named(models: tuple[Model, ...], name: str) -> Model:
    return next(model for model in models if model.name == name)


def template(finding: str) -> Any:
    return environment().get_template(f"findings/{finding}.md.j2").make_module({"root": ""})


def words(one: Told) -> str:
    said = template(one.section.finding.name).story(one.claim, one.page.title, one.metrics)
    return " ".join(str(said).split())


def test_every_story_has_a_rank_and_a_headline_of_its_own():
    said = [str(template(finding.name).headline(story.claim, "It")) for finding, story in TELLING]
    ranks = [story.rank for _, story in TELLING]
    assert len(set(said)) == len(set(ranks)) == len(TELLING) >= MOST


def test_home_tells_stories_that_hold_each_in_a_model_that_shows_it(kept):
    found = stories(list(kept.values()))
    assert [(one.claim, one.page.name) for one in found[:1]] == [("winding", "gpt2")]
    assert len(found) == MOST
    assert all(one.page.claims[one.claim].verdict == "holds" for one in found)
    assert "1,024 positions" in words(found[0])
    assert "three dimensions hold 91 %" in words(found[0])
    assert "The curve turns 2.8 times" in words(found[0])
    assert " ".join(str(template("helix").together(list(kept.values()))).split()) == (
        "Learned positions form a winding curve in 3 of 3 models tested; in 1 of 3 (GPT-2 124M) the curve also "
        "lies in three dimensions, so it is a helix"
    )


def test_what_holds_nowhere_tells_nothing(kept):
    assert [one.claim for one in stories([kept["openai-gpt"]])][:1] == ["winding"]
    assert stories([]) == []
