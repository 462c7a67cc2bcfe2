"""How the atlas and its figures are cited: as CITATION.cff has it, by number, title, model, date and address."""

from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from markupsafe import Markup

from generators.site import citing
from generators.site.pictures import Picture
from generators.site.view import ModelPage, Section
from generators.site.words import Caption, environment
from tests.conftest import ROOT

ADDRESS = "https://example.org/atlas/"


def test_the_atlas_is_cited_as_its_citation_file_says():
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    [author] = said["authors"]
    words = citing.in_words()
    assert (said["title"], said["date-released"]) == (citing.TITLE, citing.RELEASED)
    for part in (author["name"], said["title"], f"version {said['version']}", said["date-released"][:4]):
        assert part in words


@pytest.mark.parametrize("known", [None, ADDRESS])
def test_bibtex_has_the_address_where_it_is_known(known):
    made = citing.bibtex(known)
    assert made.startswith("@misc{helix_atlas,\n")
    assert made.count("{") == made.count("}")
    assert (f"url    = {{{ADDRESS}}}" in made) == (known is not None)
    assert "author = {{Helix Atlas contributors}}," in made


def picture(name: str) -> Picture:
    return Picture(name, name.title(), Caption(Markup("Read it."), "Seen."), f"figures/m/{name}.svg", "", 640, 400)


def section(names: str, signature: str | None, status: str = "computed") -> Any:
    finding: Any = SimpleNamespace(name=names, signature=signature, question=1)
    record: Any = SimpleNamespace(status=status, computed_on="2026-11-20")
    return Section(finding, record, [], [picture(name) for name in names.split()])


def page() -> ModelPage:
    published: Any = SimpleNamespace(model=SimpleNamespace(name="m"), claims=[])
    sections = [
        section("a", "a"),
        section("x", None, "not_applicable"),
        section("d", "d", "failed"),
        section("c b", "b"),
    ]
    return ModelPage(published, "Model <M>", None, None, sections, [])


def test_figures_count_in_the_order_of_the_page():
    found = page().figures
    assert list(found) == ["a", "b"], "what failed is not shown, and one figure of each finding"
    assert found["b"] == "Figure 2, “B”, Model <M>, results of 2026-11-20"


@pytest.mark.parametrize("numbered", [True, False])
def test_a_static_figure_says_how_it_is_cited_and_leads_to_its_file(numbered):
    template = environment().from_string(
        '{% import "macros.j2" as m with context %}{{ m.picture(p, "../", page, numbered=numbered) }}'
    )
    html = template.render(page=page(), p=picture("b"), numbered=numbered)
    assert 'id="figure-b" data-cite="Figure 2, “B”, Model &lt;M&gt;, results of 2026-11-20"' in html
    assert '<a class="md-button" href="../figures/m/b.svg" download="m-b.svg">SVG</a>' in html
    assert "<summary" in html
    assert (
        '<figcaption><a class="figure-number" href="#figure-b">Figure 2</a>. <strong>B.</strong>' in html
    ) == numbered
