"""How much a reader sees at once: visible words by kind of page, screens of a model's page, and what captions say."""

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser

from tests.site.conftest import NOISE

pytestmark = pytest.mark.browser

MOST_WORDS = {"models": 1500, "questions": 1700, "series": 1500}
MOST_FIGURES, MOST_FOLDS = 22, 20  # of a model's page; what a figure has folded is no fold of its own
SCREEN = {"width": 1440, "height": 900}
MOST_SCREENS, MOST_SHEETS = 8, 10  # of a model's page
MEASURED_WHOLE = ("stdlib-gpt2", "all-minilm-l6-v2")  # two models in which nearly everything is measured
UNSEEN = "script, style, template, nav, svg, math, noscript, select, [hidden], [aria-hidden=true], .headerlink"
WORD = re.compile(r"\w")


def visible_words(html: str) -> int:
    """Return how many words of a page's article are seen when it opens: of what is folded, its summary alone."""
    article = BeautifulSoup(html, "html.parser").article
    for unseen in article.select(f"{UNSEEN}, .visually-hidden"):
        unseen.decompose()
    for folded in article.select("details:not([open])"):
        for child in [child for child in folded.children if child.name != "summary"]:
            child.extract()
    return sum(bool(WORD.search(word)) for word in article.get_text(" ").split())


def pages(site: Path, kind: str) -> list[Path]:
    return sorted((site / kind).glob("*/index.html"))


@pytest.mark.parametrize("kind", MOST_WORDS)
def test_no_page_has_more_words_than_its_kind_may_have(built_site: Path, kind: str) -> None:
    found = {page.parent.name: visible_words(page.read_text("utf-8")) for page in pages(built_site, kind)}
    assert found
    assert {name: words for name, words in found.items() if words > MOST_WORDS[kind]} == {}


def test_no_models_page_has_more_figures_and_folds_than_it_may(built_site: Path) -> None:
    for page in pages(built_site, "models"):
        text = page.read_text("utf-8")
        folds = len(re.findall(r'<details(?! class="(?:which|figure-menu)")', text))
        assert (text.count("<figure") <= MOST_FIGURES, folds <= MOST_FOLDS) == (True, True), page.parent.name


@pytest.mark.parametrize("name", ["stdlib-gpt2", "gpt2"])
def test_a_models_page_is_at_most_eight_screens_and_ten_sheets(browser: Browser, address: str, name: str) -> None:
    page = browser.new_context(viewport=SCREEN, reduced_motion="reduce").new_page()
    page.goto(f"{address}models/{name}/", wait_until="networkidle")
    page.evaluate(
        "Promise.all([...document.images].filter(image => image.checkVisibility())"
        ".map(image => { image.loading = 'eager'; return image.decode(); }))"
    )
    assert page.evaluate("document.documentElement.scrollHeight") <= MOST_SCREENS * SCREEN["height"]
    printed = page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) <= MOST_SHEETS
    page.locator("details.more-of > summary").first.click()
    page.wait_for_selector("details.more-of[data-asked]")
    page.emulate_media(media="print")
    seen = page.locator("details.more-of").evaluate_all("all => all.map(one => one.checkVisibility())")
    assert [seen[0], any(seen[1:])] == [True, False], "what the reader opened is printed, and nothing else"
    page.context.close()


def captions(site: Path, model: str) -> dict[str, str]:
    text = (site / "models" / model / "index.html").read_text("utf-8")
    found = re.findall(
        r'<figure class="[^"]+" id="figure-([\w-]+)".*?<figcaption>(.*?)</figcaption>', text, re.DOTALL
    )
    return {name: re.split(r'<(?:details|span) class="(?:which|how-to-read)"', said)[0] for name, said in found}


def test_no_caption_could_stand_under_another_models_figure(built_site: Path) -> None:
    said = [
        {name: re.sub(r"<[^>]+>|Figure \d+", "", words) for name, words in captions(built_site, model).items()}
        for model in MEASURED_WHOLE
    ]
    shared = said[0].keys() & said[1].keys()
    assert len(shared) > len(said[1]) / 2
    assert sorted(name for name in shared if said[0][name] == said[1][name]) == []


def test_every_caption_says_what_is_seen_before_how_to_read_it(built_site: Path) -> None:
    for model in (*MEASURED_WHOLE, NOISE):
        for name, words in captions(built_site, model).items():
            title, _, shown = words.partition("</strong>")
            assert title and len(shown.split()) > 3, (model, name)
