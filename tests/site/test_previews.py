"""What a page says of itself where its link is shown, and the picture of it, drawn once."""

import re
from html import unescape
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from generators.checkpoint.registry import FolderSource, Model
from generators.compute.results import Store
from generators.drawing import card as cards
from generators.site.previews import OTHERS, PREVIEWS, model_preview, read_previews, write_previews
from generators.site.staging import Staging
from generators.site.view import ModelPage, model_page
from tests.site.made_up_series import made_up, same

ADDRESS = "https://example.org/atlas/"
SETTINGS = "site_name: Atlas\nsite_description: What holds.\ndocs_dir: src\nsite_dir: site\ntheme: mkdocs\n"
TITLE = 'A "title" & <b>more</b>'
META = re.compile(r'<meta (?:property|name)="((?:og|twitter):[\w:]+)" content="([^"]*)">')


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[ModelPage], Staging]:
    place = tmp_path_factory.mktemp("previews")
    store, staging = Store(place / "results"), Staging(place / "pages", place / "cache")
    pages = []
    for name in ("one", "two"):
        made_up(store, name, {"helix": same})
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


def test_every_model_has_its_figure_as_picture_and_all_other_pages_that_of_the_first(drawn):
    (one, _), staging = drawn
    there = {path.relative_to(staging.folder).as_posix() for path in staging.folder.rglob("*.png")}
    assert there == {"previews/models/one.png", "previews/models/two.png"}
    found = read_previews(staging.folder)
    assert {page: said["image"] for page, said in found.items()} == {
        "models/one": "previews/models/one.png",
        "models/two": "previews/models/two.png",
        OTHERS: "previews/models/one.png",
    }
    signature = next(section.signature for section in one.sections if section.signature)
    assert found[OTHERS]["alt"] == f"Model one. {signature.title}. {signature.words.alt}"


def test_a_picture_is_drawn_again_only_where_its_figure_is_another(drawn, monkeypatch, tmp_path):
    (one, _), staging = drawn
    asked = []
    monkeypatch.setattr(cards, "png", lambda figure: asked.append(figure) or b"drawn")
    model_preview(one, staging.again())
    assert asked == []
    otherwise = Staging(tmp_path, staging.cache.folder)
    otherwise.write(next(section.signature for section in one.sections if section.signature).light, b"<svg/>")
    model_preview(one, otherwise)
    assert len(asked) == 1


def built(project: Path, staging: Staging, address: str | None) -> dict[str, str]:
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
    assert home["og:image"] == model["og:image"], "that of the first model"
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
