"""Every page as a reader meets it: wide and narrow, light and dark, with and without scripts."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from generators.base.verdicts import SYMBOLS, WEAK
from generators.findings import FINDINGS
from tests.site.conftest import NOISE, Visit, opened
from tests.site.links import Links, is_moved

pytestmark = pytest.mark.browser

WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
PARTS = 6  # of all pages, each for any process
ONLY_VIOLATIONS = {"resultTypes": ["violations"]}  # what passes isn't gathered, which takes as long as the rules
WCAG = {**ONLY_VIOLATIONS, "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}


# Rows of a table are made alike, and axe takes most of its time for those of the longest: some of each are looked at.
# What is laid out as it comes near is laid out; where nothing is, its parts lie on what is below.
SHORT_TABLES = """
    document.querySelectorAll('tbody tr:nth-child(n + 7)').forEach(row => row.remove());
    document.querySelectorAll('.atlas-scroll').forEach(each => { each.style.contentVisibility = 'visible' });
"""
COLORS = ["color-contrast", "link-in-text-block"]  # axe's rules about them
ONLY_COLORS = {**ONLY_VIOLATIONS, "runOnly": {"type": "rule", "values": COLORS}}
NO_COLORS = {**WCAG, "rules": {rule: {"enabled": False} for rule in COLORS}}
# Pages of one kind have the same colors, and those of a series' models the same parts: two of each are looked at.
COLORS_KNOWN = re.compile(r"findings/(?!helix|stream)\w|models/(?!all-minilm|stdlib-rotary)\w")
PARTS_KNOWN = re.compile(r"models/stdlib-(?!gpt2|rotary)")


def addresses(site: Path) -> list[str]:
    pages = (path for path in site.rglob("index.html") if not is_moved(path))
    return sorted(path.relative_to(site).as_posix().removesuffix("index.html") for path in pages)


def test_what_has_moved_leads_to_where_it_is(built_site: Path) -> None:
    moved = [path for path in built_site.rglob("index.html") if is_moved(path)]
    assert len(moved) == len(FINDINGS) + 2
    for path in moved:
        (link,) = Links(path).hrefs
        target, anchor = urldefrag(link)
        assert f'content="0; url={link}"' in path.read_text()
        assert not anchor or anchor in Links((path.parent / target).resolve()).ids, path


def until(page: Page, condition: str, arg: Any = None) -> None:
    """Wait until a condition holds in a page.

    Playwright's own waiting evaluates text inside the page, which the page's policy forbids.
    """
    for _ in range(600):
        if page.evaluate(condition, arg):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"It never came to {condition}")


def load_pictures(page: Page) -> None:
    until(page, "!document.querySelector('#compare') || document.querySelector('.compare-pair')")
    until(
        page, "[...document.images].every(i => { i.loading = 'eager'; return i.complete || !i.checkVisibility(); })"
    )


def violations(page: Page, within: str | None = None, options: dict[str, Any] = WCAG) -> list[tuple[str, list[str]]]:
    found = Axe().run(page, context=within, options=options).response["violations"]
    return [(v["id"], [node["html"][:120] for node in v["nodes"][:3]]) for v in found]


def broken_pictures(page: Page) -> list[str]:
    load_pictures(page)
    return page.eval_on_selector_all(
        "img", "all => all.filter(i => i.checkVisibility() && !i.naturalWidth).map(i => i.src)"
    )


@pytest.mark.parametrize("part", [pytest.param(i, marks=pytest.mark.xdist_group(f"pages {i}")) for i in range(PARTS)])
def test_every_page_is_sound(browser: Browser, address: str, built_site: Path, part: int) -> None:
    for path in addresses(built_site)[part::PARTS]:
        page, wrong = opened(browser, address + path, viewport=WIDE, color_scheme="light")
        assert page.locator("img:not([alt])").count() == 0
        fits_both(page)
        if not PARTS_KNOWN.match(path):
            colors = not COLORS_KNOWN.match(path)
            assert broken_pictures(page) == [], path
            page.evaluate(SHORT_TABLES)
            assert violations(page, options=WCAG if colors else NO_COLORS) == [], path
            page.emulate_media(color_scheme="dark")
            until(page, "document.body.dataset.mdColorScheme === 'slate'")
            assert broken_pictures(page) == [], path
            assert not colors or violations(page, options=ONLY_COLORS) == [], path
        page.wait_for_load_state("networkidle")  # leaving sooner ends what is still asked for
        assert wrong == [], path
        page.context.close()


def fits_both(page: Page) -> None:
    for viewport in (PHONE, WIDE):
        page.set_viewport_size(viewport)
        widths = page.evaluate("[...document.querySelectorAll('html, .md-main')].map(part => part.scrollWidth)")
        assert max(widths) <= viewport["width"], f"{page.url} scrolls sideways, or is cut there"


def test_every_link_leads_somewhere(address: str, built_site: Path) -> None:
    pages = {address + path: Links(built_site / path / "index.html") for path in addresses(built_site)}
    links = {(source, urljoin(source, href)) for source, page in pages.items() for href in page.hrefs + page.loaded}
    assert len(links) > 500
    for source, link in links:
        target, anchor = urldefrag(link)
        target = target.split("?")[0]
        if not target.startswith(address):
            assert target.startswith(("https://", "data:")), (source, link)
        elif target in pages:
            assert not anchor or unquote(anchor) in pages[target].ids, (source, link)
        else:
            assert (built_site / unquote(urlparse(target).path.lstrip("/"))).is_file(), (source, link)


def test_without_scripts_every_number_and_picture_is_there(visit: Visit, address: str, built_site: Path) -> None:
    for name in ("gpt2", "all-minilm-l6-v2", NOISE):
        findings = json.loads((built_site / "data" / name / "findings.json").read_text())
        page = visit(f"{address}models/{name}/", java_script_enabled=False)
        text = re.sub(r"\s+", " ", page.content())
        for claim in findings["claims"]:
            place = page.locator(f"#claim-{claim['id']}")
            assert place.count() == 1
            said = WEAK if claim.get("weak") else SYMBOLS[claim["verdict"]]
            assert claim["verdict"] == "untested" or place.inner_text().startswith(said)
        assert text.count("<figure") >= 5


def test_a_matrix_cell_leads_to_its_section(visit: Visit, address: str) -> None:
    page = visit(f"{address}matrix/", viewport=WIDE, sound=False)
    page.locator("table.claims-grid tr", has_text="GPT-2 124M").locator("td.cell a").first.click()
    page.wait_for_url("**/models/gpt2/#claim-three-components")
    claim = page.locator("#claim-three-components")
    claim.wait_for()
    until(page, "document.querySelector('#claim-three-components').getBoundingClientRect().top < innerHeight")


def test_noise_is_not_praised(visit: Visit, address: str) -> None:
    page = visit(f"{address}models/{NOISE}/", sound=False)
    assert page.locator(".claims .verdict--holds, .cell--holds").count() == 0
    for figure in page.locator("figure img").all():
        assert "a line that winds" not in (figure.get_attribute("alt") or "")


def test_scrolling_tables_can_be_reached_by_keyboard(visit: Visit, address: str) -> None:
    page = visit(f"{address}models/gpt2/", viewport=PHONE, sound=False)
    for region in page.locator(".atlas-scroll").all():
        assert region.get_attribute("tabindex") == "0"
        assert region.get_attribute("aria-label")


def test_every_page_has_a_preview_and_shows_no_front_matter_or_what_only_scripts_use(built_site: Path) -> None:
    for path in addresses(built_site):
        text = (built_site / path / "index.html").read_text()
        assert all(f'property="og:{name}"' in text for name in ("title", "description", "image")), path
        assert not [unwanted for unwanted in ("<p>title: ", "table-tools") if unwanted in text], path
