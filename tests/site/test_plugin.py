"""The plugin of MkDocs: generated files join the hand-written ones, with their menu, and links fit a disk."""

import json
import re
from html import escape
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from generators.site import citing
from generators.site.navigation import NAVIGATION
from generators.site.plugin import GeneratedPages, with_links_to_files, with_theme_mended

SETTINGS = "site_name: Atlas\ndocs_dir: src\nsite_dir: site\ntheme: mkdocs\nplugins: [atlas-pages]\n"
MENU = [{"Start": "index.md"}, {"Rooms": ["rooms/index.md", {"A kitchen": "rooms/kitchen.md"}]}, {"Ours": "ours.md"}]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    write(project, {"mkdocs.yml": SETTINGS, "src/ours.md": "# Ours\n\n[A kitchen](rooms/kitchen.md)\n"})
    write(project / "src", {"assets/own.css": "p {}"})
    monkeypatch.chdir(tmp_path)
    return project


@pytest.fixture
def generated(project: Path) -> Path:
    rooms = {"rooms/index.md": "# Rooms\n", "rooms/kitchen.md": "# Kitchen\n"}
    pages = {"index.md": "# Start\n\n[Ours](ours.md)\n", **rooms}
    data = {"data/numbers.json": "{}", "figures/a.svg": "<svg/>", NAVIGATION: json.dumps(MENU)}
    write(project / ".pages", {**pages, **data})
    return project / ".pages"


def built(project: Path) -> set[str]:
    build(load_config(str(project / "mkdocs.yml"), strict=True))
    site = project / "site"
    return {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}


def test_generated_files_join_the_hand_written_ones_with_their_menu(project, generated):
    found = built(project)
    assert {"index.html", "rooms/index.html", "rooms/kitchen/index.html", "ours/index.html"} <= found
    assert {"data/numbers.json", "figures/a.svg", "assets/own.css"} <= found
    assert not [name for name in found if NAVIGATION in name], "the menu is no page"
    assert '<a href="../rooms/kitchen/">' in (project / "site/ours/index.html").read_text()
    assert '<a href="ours/">' in (project / "site/index.html").read_text()
    assert sorted(path.name for path in (project / "src").rglob("*.*")) == ["ours.md", "own.css"]
    page = (project / "site/index.html").read_text()
    places = [page.index(title) for title in (">Start<", ">Rooms<", ">A kitchen<", ">Ours<")]
    assert places == sorted(places)
    for page in (project / "site").rglob("index.html"):
        assert f'<meta name="atlas-citation" content="{escape(citing.in_words())}">' in page.read_text()


def test_pages_are_as_old_as_the_results_on_them(project, generated):
    write(project, {"mkdocs.yml": f"site_url: https://example.org/\n{SETTINGS}"})
    for name, day in (("kitchen", "2024-02-29"), ("bath", "2023-01-01")):
        write(generated, {f"rooms/{name}.md": f"---\nupdated: '{day}'\n---\n# {name}\n"})
    built(project)
    dated = re.findall(r"<loc>(.*)</loc>\s*<lastmod>(.*)</lastmod>", (project / "site/sitemap.xml").read_text())
    days = {address.removeprefix("https://example.org/"): day for address, day in dated}
    assert days["rooms/kitchen/"] == days["ours/"] == "2024-02-29"  # a page without results: as the latest
    assert days["rooms/bath/"] == "2023-01-01"


def test_without_generated_files_the_hand_written_ones_are_the_site(project):
    (project / "src/ours.md").write_text("# Ours\n")
    assert "ours/index.html" in built(project)


def test_where_both_are_there_the_generated_file_is_shown(project, generated, recwarn):
    write(project / "src", {"rooms/kitchen.md": "# An older kitchen\n", "data/numbers.json": "[]"})
    built(project)
    assert "<h1>Kitchen" in re.sub(r' id="\w+"', "", (project / "site/rooms/kitchen/index.html").read_text())
    assert (project / "site/data/numbers.json").read_text() == "{}"
    assert not [warning for warning in recwarn if "append" in str(warning.message)]


def test_on_a_disk_there_are_no_pages_about_the_atlas_itself(project):
    settings = SETTINGS.replace("[atlas-pages]", "[{atlas-pages: {from_disk: true}}]")
    write(project, {"mkdocs.yml": settings, "src/notebooks/one.py": "1\n", "src/index.md": "# The atlas\n"})
    pages = {"index.md": "# Report\n\n[Kitchen](kitchen.md)\n", "kitchen.md": "# Kitchen\n", "data/a.json": "{}"}
    write(project / ".pages", {**pages, NAVIGATION: json.dumps(["index.md", "kitchen.md"])})
    found = built(project)
    assert {"index.html", "kitchen/index.html", "data/a.json", "assets/own.css"} <= found
    assert not [name for name in found if name.startswith(("ours", "notebooks"))]
    assert '<a href="kitchen/index.html">' in (project / "site/index.html").read_text()


@pytest.mark.parametrize(
    ("link", "on_disk"),
    [
        ("models/gpt2/", "models/gpt2/index.html"),
        ("models/gpt2.5/#claim-circle", "models/gpt2.5/index.html#claim-circle"),
        ("v1.5/", "v1.5/index.html"),
        ("..", "../index.html"),
        ("../../", "../../index.html"),
        ("../..#top", "../../index.html#top"),
        (".", "./index.html"),
        ("../compare/?a=gpt2", "../compare/index.html?a=gpt2"),
        ("./?q=a/b/", "./index.html?q=a/b/"),
        *((same, same) for same in ("#claim/of/", "?a=b/", "", "..a", "figures/gpt2/helix.svg", "/absolute/")),
        *((same, same) for same in ("https://example.org/a/", "mailto:a@b/", "//example.org/")),
    ],
)
def test_links_to_folders_lead_to_the_file_in_them(link, on_disk):
    html = f'<a class="x" href="{link}" title="../">models/</a>'
    assert with_links_to_files(html) == f'<a class="x" href="{on_disk}" title="../">models/</a>'


def test_the_search_of_the_theme_gets_a_name():
    theme = '<div class="md-search" data-md-component="search" role="dialog"><label class="md-search__overlay">'
    assert with_theme_mended(theme).count('role="dialog" aria-label="Search">') == 1
    assert with_theme_mended("<div role='dialog'>") == "<div role='dialog'>"


def test_what_a_page_says_of_itself_is_no_markup():
    class Page:
        meta = {"description": '"><meta http-equiv="refresh" content="0;url=https://example.org">'}  # noqa: RUF012

    GeneratedPages().on_page_context({}, page=Page)
    assert not set('<>"') & set(Page.meta["description"])
