"""What the home page opens with: what holds, with the first model that shows it, in words made from its numbers."""

from typing import Any

import pytest
from generators.site.teasers import MOST, Teaser, hero, teasers

from generators.base.text import number
from generators.checkpoint.registry import Model, load_registry
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.site.staging import Staging
from generators.site.view import ModelPage, model_page
from generators.site.words import environment
from tests.conftest import ROOT, without_figures

TEASING = [finding for finding in FINDINGS if finding.facts.teaser is not None]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModelPage]:
    """Return the pages of models whose results git keeps."""
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


def words(one: Teaser) -> str:
    said = template(one.section.finding.name).teaser(one.page.title, one.metrics)
    return " ".join(str(said).split())


@pytest.mark.parametrize("finding", TEASING, ids=lambda finding: finding.name)
def test_every_claim_is_the_findings_own_and_has_a_headline_of_its_own(finding):
    assert finding.facts.teaser in {rule.id for rule in finding.rules}
    headlines = [str(template(one.name).headline()) for one in TEASING]
    assert headlines.count(str(template(finding.name).headline())) == 1


def test_it_opens_with_three_findings_each_in_a_model_that_shows_it(kept):
    found = teasers(list(kept.values()))
    assert [(one.claim, one.page.name) for one in found] == [
        ("winding", "gpt2"),
        ("ln2-one-channel", "gpt2"),
        ("clump", "all-minilm-l6-v2"),
    ]
    assert len(found) == MOST
    assert all(one.page.claims[one.claim].verdict == "holds" for one in found)
    assert "1,024 positions" in words(found[0])
    assert "turns 2.8 times in its strongest plane, over 1,020 positions" in words(found[0])
    winding = found[0].page.claims["winding"]
    assert f"Winding score {winding.value:.3g} (turns × share of variance × steadiness)" in words(found[0])
    assert words(found[0]).endswith(f"; it must reach {number(winding.threshold)}.")
    assert "once every" not in words(found[0]), "its pace differs along the curve"
    assert "channel 138 has the largest gain" in words(found[1])
    assert "9 of 12 layers" in words(found[1])
    assert "993 of the 994 tokens named “unused”" in words(found[2])
    assert "suggests that the other 762 were hardly trained" in words(found[2])
    assert " ".join(str(template("helix").together(list(kept.values()))).split()) == (
        "Positions wind in 3 of 3 models tested; in 1 of 3 the curve also lies in three dimensions, a helix "
        "(GPT-2 124M)"
    )
    assert (found[1].lesson.holding, found[1].lesson.partly) == (2, 1)


def test_what_holds_nowhere_opens_nothing(kept):
    assert [one.claim for one in teasers([kept["openai-gpt"]])] == ["winding"]
    assert teasers([]) == []


def test_the_words_of_a_claim_are_made_from_its_numbers(kept):
    page = kept["all-minilm-l6-v2"]
    metrics = next(s.record.metrics for s in page.sections if s.finding.name == "position_use")
    groups = next(row for row in metrics["damages"] if (row["kind"], row["amount"]) == ("groups", 10))
    said = " ".join(str(template("position_use").teaser(page.title, metrics)).split())
    assert said == (
        f"When positions are known only to the nearest ten tokens, {page.title} loses {100 * groups['share']:.0f} % "
        "of what all its positions after the first are worth to it."
    )


def test_a_report_opens_with_the_first_teaser_whether_it_holds_or_not(kept):
    pages = list(kept.values())
    page, picture = hero(pages)
    assert (page.name, picture.name) == ("gpt2", TEASING[0].signature)
    assert hero([]) is None
