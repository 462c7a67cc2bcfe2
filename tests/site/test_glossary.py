"""The glossary: every word is linked once, where it is text, and says what it means to mouse, keyboard, and touch."""

import re
from urllib.parse import urlparse

import pytest
from playwright.sync_api import expect

from generators.site.glossary import glossary, with_terms
from tests.site.conftest import Visit
from tests.site.test_browser import WIDE
from tests.site.test_compare import PHONE

LINK = re.compile(r'<a class="term" href="([^"]*)" data-says="[^"]*">([^<]*)</a>')


def linked(page: str) -> list[tuple[str, str]]:
    return LINK.findall(with_terms(page, "../glossary/"))


def test_the_first_use_of_a_word_leads_to_the_glossary():
    assert linked("<p>A channel, and channels again. L0H7 and L1H2.</p><p>Channel</p>") == [
        ("../glossary/#channel", "channel"),
        ("../glossary/#head", "L0H7"),
    ]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        *((text, None) for text in ("Residual streams", "a sub-channel", "channel-wise", "europe", "a&energy;b")),
        *((word, word) for word in ("RoPE", "MLPs")),
        ("the residual stream holds", "residual stream"),
        ("the stream holds", "stream"),
    ],
)
def test_whole_words_are_found_the_longest_first(text, word):
    assert [found for _, found in linked(f"<p>{text}</p>")] == ([word] if word else [])


@pytest.mark.parametrize("tag", ["a", "code", "h2", "figure", "table", "pre", "script", "button"])
def test_other_links_names_and_headings_are_left_alone(tag):
    page = f'<div><{tag} title="a channel > b">channel</{tag}></div>'
    assert with_terms(f"<li>{page}</li>", "g/") == f"<li>{page}</li>"
    assert with_terms(page, "g/") == page
    assert linked(f"<li>{page} <em>channel</em></li>") == [("../glossary/#channel", "channel")]


def test_nothing_but_links_is_added():
    page = '<p>It\'s a channel &amp; <br> more &lt;b&gt; <img alt="x > y"> of P.</p>\n<ul><li>no gain</li></ul>'
    assert LINK.sub(r"\2", with_terms(page, "g/")) == page


def test_terms_are_distinguished_and_have_places_of_their_own():
    terms = glossary()
    assert len({term.id for term in terms}) == len(terms) >= 30
    spellings = [spelling.lower() for term in terms for spelling in term.spellings]
    assert len(set(spellings)) == len(spellings)
    assert all(term.says.endswith(".") for term in terms)


@pytest.mark.browser
def test_every_word_is_met_on_some_page(built_site) -> None:
    pages = [path.read_text() for path in built_site.rglob("index.html") if path.parent.name != "glossary"]
    unused = [term.term for term in glossary() if not any(f'glossary/#{term.id}"' in page for page in pages)]
    assert unused in ([], ["rotary"])  # of which only models speak that turn queries and keys
    page = (built_site / "glossary" / "index.html").read_text()
    assert [term.id for term in glossary() if f'id="{term.id}"' not in page] == []


@pytest.mark.browser
def test_a_word_says_what_it_means_by_mouse_and_by_keyboard(visit: Visit, address: str) -> None:
    page = visit(f"{address}questions/shape/", viewport=WIDE)
    word, tip = page.locator("a.term").first, page.get_by_role("tooltip")
    word.hover()
    expect(tip).to_have_text(word.get_attribute("data-says"))
    expect(word).to_have_attribute("aria-describedby", "glossary-tip")
    page.mouse.move(0, 0)
    expect(tip).to_have_count(0)
    word.focus()
    expect(tip).to_have_count(1)
    page.keyboard.press("Escape")
    expect(tip).to_have_count(0)
    word.click()
    page.wait_for_url("**/glossary/#*")
    expect(page.locator(f"[id='{urlparse(page.url).fragment}']")).to_be_in_viewport()


@pytest.mark.browser
def test_on_a_phone_a_word_leads_to_the_glossary(visit: Visit, address: str) -> None:
    page = visit(f"{address}questions/shape/", viewport=PHONE, has_touch=True)
    page.wait_for_load_state("networkidle")  # what is fetched when the page is left is a request that failed
    page.locator("a.term").first.tap()
    page.wait_for_url("**/glossary/#*")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
