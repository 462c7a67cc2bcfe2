"""A site is built whole or not at all: what MkDocs warns of is an error in a sentence, and the old site stays."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from generators.base.errors import AtlasError
from generators.site.build import Workshop, run_mkdocs
from generators.site.navigation import NAVIGATION
from tests.conftest import ROOT
from tests.site.test_plugin import write

PAGES = {
    "index.md": "# Home\n\n[Rooms](rooms/index.md), [ours](ours.md)\n",
    "rooms/index.md": "# Rooms\n\n[Home](../index.md#home)\n",
    "data/numbers.json": "{}",
}
A_SENTENCE = r"\AMkDocs could not build the site: [^\n]+[^\n.!]\. The old site stays\.\Z"
MENU = ["index.md", {"Rooms": "rooms/index.md"}, {"Ours": "ours.md"}]


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.delenv("SITE_URL", raising=False)
    source, pages = tmp_path / "src", tmp_path / "pages"
    write(source, {"ours.md": "# Ours\n"})
    shutil.copytree(ROOT / "site_src" / "assets", source / "assets")
    write(pages, {**PAGES, NAVIGATION: json.dumps(MENU)})
    return Workshop(source, ROOT / "mkdocs.yml", pages, tmp_path / "cache", tmp_path / "site")


@pytest.fixture
def old_site(workshop: Workshop) -> dict[str, str]:
    files = {"index.html": "the old page", "old/index.html": "no longer made"}
    write(workshop.site, files)
    return files


def files_of(site: Path) -> dict[str, str]:
    return {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*") if path.is_file()}


def test_a_site_takes_the_place_of_the_old_one_without_a_word(workshop, old_site, capfd):
    run_mkdocs(workshop)
    found = {path.relative_to(workshop.site).as_posix() for path in workshop.site.rglob("*") if path.is_file()}
    assert {"index.html", "rooms/index.html", "ours/index.html", "data/numbers.json"} <= found
    assert {"assets/site.css", "assets/site.js", "search/search_index.json", "404.html"} <= found
    assert "old/index.html" not in found
    assert "navigation.instant" not in (workshop.site / "index.html").read_text(), "a page of many links takes long"
    assert tuple(capfd.readouterr()) == ("", "")
    assert [path.name for path in workshop.site.parent.glob(".site*")] == []


@pytest.mark.parametrize(
    ("place", "change", "warning"),
    [
        ("pages", {"rooms/index.md": "# Rooms\n\n[lost](nowhere.md)\n"}, "'nowhere.md'"),
        ("pages", {"rooms/index.md": "# Rooms\n\n[lost](../index.md#nowhere)\n"}, "'../index.md#nowhere'"),
        ("pages", {NAVIGATION: json.dumps([*MENU, "nowhere.md"])}, "'nowhere.md'"),
        ("source", {"ours.md": "# Ours\n\n![lost](nowhere.svg)\n"}, "'nowhere.svg'"),
    ],
    ids=["link", "anchor", "menu", "picture"],
)
def test_a_warning_is_an_error_in_a_sentence_and_the_old_site_stays(
    workshop, old_site, capfd, place, change, warning
):
    write(getattr(workshop, place), change)
    with pytest.raises(AtlasError, match=A_SENTENCE):
        run_mkdocs(workshop)
    assert files_of(workshop.site) == old_site
    printed = capfd.readouterr().err
    assert warning in printed, "what is wrong is named"
    assert "Traceback" not in printed


def test_after_a_failure_the_next_site_is_whole(workshop, old_site):
    write(workshop.pages, {"rooms/lost.md": "[lost](nowhere.md)\n"})
    with pytest.raises(AtlasError):
        run_mkdocs(workshop)
    (workshop.pages / "rooms/lost.md").unlink()
    run_mkdocs(workshop)
    assert not (workshop.site / "rooms/lost").exists()
    assert (workshop.site / "rooms/index.html").is_file()


@pytest.mark.parametrize("content", [None, "site_name: [", "plugins: [no-such-plugin]\nsite_name: x\n"])
def test_settings_that_cannot_be_used_are_a_sentence_too(workshop, old_site, tmp_path, content):
    settings = tmp_path / "mkdocs.yml"
    if content is not None:
        settings.write_text(content)
    with pytest.raises(AtlasError, match=A_SENTENCE):
        run_mkdocs(replace(workshop, settings=settings))
    assert files_of(workshop.site) == old_site


def test_a_place_that_cannot_be_written_is_a_sentence(workshop, tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(AtlasError, match=r"The site can't be written to .*taken/site: .*"):
        run_mkdocs(replace(workshop, site=tmp_path / "taken" / "site"))


def test_a_site_for_the_disk_needs_no_server(workshop):
    write(workshop.pages, {"index.md": "# Home\n\n[Rooms](rooms/index.md)\n", NAVIGATION: json.dumps(MENU[:2])})
    run_mkdocs(workshop, from_disk=True)
    home = (workshop.site / "index.html").read_text()
    assert 'href="rooms/index.html"' in home
    assert "navigation.instant" not in home
    assert "search_index" not in home
    for served in ("ours", "search", "404.html", "sitemap.xml", "sitemap.xml.gz"):
        assert not (workshop.site / served).exists(), served
    assert (workshop.site / "data/numbers.json").is_file()
