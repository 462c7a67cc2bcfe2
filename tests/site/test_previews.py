"""What a page says of itself where its link is shown, and the picture of it: true, and drawn once."""

import re
from html import unescape
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from generators.checkpoint.registry import FolderSource, Model
from generators.compute.results import Store
from generators.drawing import card as cards
from generators.site.previews import (
    PREVIEWS,
    model_card,
    model_preview,
    preview_of,
    question_card,
    read_previews,
    site_card,
    write_previews,
)
from generators.site.questions import questions
from generators.site.staging import Staging
from generators.site.view import ModelPage, model_page
from tests.site.made_up_series import made_up, same, winding

SHAPE = questions()[0]
ADDRESS = "https://example.org/atlas/"
SETTINGS = "site_name: Atlas\nsite_description: What holds.\ndocs_dir: src\nsite_dir: site\ntheme: mkdocs\n"
TITLE = 'A "title" & <b>more</b>'
META = re.compile(r'<meta (?:property|name)="((?:og|twitter):[\w:]+)" content="([^"]*)">')


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[ModelPage], Staging]:
    """Return the pages of two models of made-up results, the second of which winds less, and where they are drawn."""
    place = tmp_path_factory.mktemp("previews")
    store, staging = Store(place / "results"), Staging(place / "pages", place / "cache")
    pages = []
    for name, turns in (("one", same), ("two", winding(0.125))):
        made_up(store, name, {"helix": turns})
        model = Model(name=name, title=f"Model {name}", sources=(FolderSource(folder=place),))
        page = model_page(model, store, staging, lambda _: None)
        assert page is not None
        for path, picture in model_preview(page, staging).items():
            staging.write(path, picture)
        pages.append(page)
    write_previews(pages, staging)
    return pages, staging


def tags_of(html: str) -> dict[str, str]:
    return {name: unescape(content) for name, content in META.findall(html)}


def test_every_model_and_question_has_a_picture_and_all_other_pages_one(drawn):
    _, staging = drawn
    there = {path.relative_to(staging.folder).as_posix() for path in staging.folder.rglob("*.png")}
    asked = {f"previews/questions/{one.name}.png" for one in questions()}
    assert there == {"previews/models/one.png", "previews/models/two.png", "previews/atlas.png", *asked}
    assert all((staging.folder / path).stat().st_size < 60_000 for path in there)
    for page, image in (
        ("models/one", "models/one"),
        ("questions/shape", "questions/shape"),
        ("models/index", "atlas"),
        ("about", "atlas"),
    ):
        assert preview_of(page, read_previews(staging.folder)).image == f"previews/{image}.png"


def test_what_is_counted_is_what_was_judged(drawn):
    (one, two), _ = drawn
    for page in (one, two):
        counts = model_card(page).counts
        assert sum(counts.values()) == len(page.findings.claims)
        for kind, count in counts.items():
            assert count == sum(claim.verdict == kind for claim in page.findings.claims)
    assert model_card(one).counts != model_card(two).counts
    assert model_card(one).above == "Helix Atlas: 12 layers, 768 channels, openai-gpt, decoder"
    assert model_card(one).words == "The position curve in three dimensions."
    of_shape = question_card(SHAPE, [one, two]).counts
    assert of_shape["holds"] >= 1
    assert sum(of_shape.values()) == 2 * sum(len(finding.rules) for finding in SHAPE.findings)
    assert sum(site_card([one, two]).counts.values()) == 2 * len(one.findings.claims)


def test_the_text_for_those_who_cannot_see_it_says_the_same(drawn):
    (one, _), staging = drawn
    counts = model_card(one).counts
    reported = preview_of("models/one", read_previews(staging.folder)).alt
    assert reported.startswith(f"Model one: {len(one.findings.claims)} claims, {counts['holds']} hold, ")


def test_what_is_unchanged_is_not_drawn_again(drawn, monkeypatch):
    (one, two), staging = drawn
    asked = []
    monkeypatch.setattr(cards, "png", lambda card, _: asked.append(card.title) or b"drawn")
    apart = staging.again()
    model_preview(one, apart)
    write_previews([one, two], apart)
    assert asked == []
    write_previews([one, one], Staging(staging.folder.parent / "other", staging.cache.folder))
    assert "Shape of positions" in asked and "The first token" not in asked, "only what has other counts"


def test_a_figure_that_is_drawn_otherwise_makes_another_picture(drawn, monkeypatch, tmp_path):
    (one, _), staging = drawn
    asked = []
    monkeypatch.setattr(cards, "png", lambda card, _: asked.append(card.title) or b"drawn")
    otherwise = Staging(tmp_path, staging.cache.folder)
    otherwise.write(next(section.signature for section in one.sections if section.signature).light, b"<svg/>")
    model_preview(one, otherwise)
    assert asked == ["Model one"]


def built(project: Path, staging: Staging, address: str | None) -> dict[str, str]:
    """Build a site of three pages beside what is drawn; return their HTML."""
    model = f"---\ntitle: '{TITLE}'\ndescription: 'One & all'\n---\n# One\n"
    pages = {"index.md": "# Start\n", "models/one.md": model}
    for name, text in pages.items():
        (project / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (project / "src" / name).write_text(text)
    where = f"site_url: {address}\n" if address else ""
    plugins = f"plugins: [{{atlas-pages: {{folder: '{staging.folder}'}}}}]\n"
    (project / "mkdocs.yml").write_text(SETTINGS + where + plugins)
    build(load_config(str(project / "mkdocs.yml")))
    return {
        path.parent.relative_to(project / "site").as_posix(): path.read_text()
        for path in (project / "site").rglob("index.html")
    }


def test_every_page_says_what_it_is_where_its_link_is_shown(drawn, tmp_path):
    _, staging = drawn
    site = built(tmp_path, staging, ADDRESS)
    assert set(site) == {".", "models/one"}
    model, home = tags_of(site["models/one"]), tags_of(site["."])
    assert model["og:title"] == 'A "title" & more', "as in the page's own title, markup is left out"
    assert model["og:description"] == "One & all"
    assert model["og:url"] == f"{ADDRESS}models/one/"
    assert model["og:image"] == f"{ADDRESS}previews/models/one.png"
    assert model["twitter:card"] == "summary_large_image"
    assert (model["og:image:width"], model["og:image:height"]) == ("1200", "630")
    assert home["og:description"] == "What holds."
    assert home["og:image"] == f"{ADDRESS}previews/atlas.png"
    assert not (tmp_path / "site" / PREVIEWS).exists(), "what waits for the plugin is no file of the site"
    for html in site.values():
        assert (tmp_path / "site" / tags_of(html)["og:image"].removeprefix(ADDRESS)).is_file()
        assert html.index("og:image") < html.index("</head>")


def test_where_the_address_is_not_known_none_is_made_up(drawn, tmp_path):
    _, staging = drawn
    found = tags_of(built(tmp_path, staging, None)["models/one"])
    assert "og:url" not in found
    assert found["og:image"] == "../../previews/models/one.png"


def test_without_previews_nothing_is_said(tmp_path):
    site = built(tmp_path, Staging(tmp_path / "none", tmp_path / "cache"), ADDRESS)
    assert not any(tags_of(html) for html in site.values())
    assert PREVIEWS not in {path.name for path in (tmp_path / "site").rglob("*")}
