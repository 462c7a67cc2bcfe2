"""Light and dark, chosen by the atlas's own script: pages are styled once; what is put off comes when asked for."""

import re

import pytest
from playwright.sync_api import Browser, Page

from tests.site.conftest import Visit

NARROW = {"width": 360, "height": 740}


def scheme(page: Page) -> str | None:
    return page.evaluate("document.body.getAttribute('data-md-color-scheme')")


def shown(page: Page) -> list[str]:
    return page.eval_on_selector_all(
        ".md-header__option label", "all => all.filter(one => !one.hidden).map(one => one.title)"
    )


@pytest.mark.parametrize(("system", "first", "other"), [("light", "default", "slate"), ("dark", "slate", "default")])
def test_a_choice_is_kept_and_else_the_system_is_followed(visit: Visit, address: str, system, first, other):
    page = visit(address, color_scheme=system, sound=False)
    assert scheme(page) == first
    page.emulate_media(color_scheme="light" if system == "dark" else "dark")
    page.wait_for_function("([it]) => document.body.getAttribute('data-md-color-scheme') === it", arg=[other])
    page.emulate_media(color_scheme=system)
    page.wait_for_function("([it]) => document.body.getAttribute('data-md-color-scheme') === it", arg=[first])
    (title,) = shown(page)
    page.get_by_title(title).click()
    assert scheme(page) == other
    assert shown(page) != [title]
    page.goto(f"{address}glossary/")
    assert scheme(page) == other
    dark = page.evaluate("document.documentElement.style.colorScheme")
    assert dark == ("dark" if other == "slate" else "")


def test_colours_are_chosen_by_keys_and_without_a_place_to_keep_them(browser: Browser, address: str):
    context = browser.new_context(color_scheme="light")
    context.add_init_script("Storage.prototype.getItem = Storage.prototype.setItem = () => { throw new Error('no') }")
    page = context.new_page()
    page.goto(address)
    page.locator(".md-header__option input").first.focus()
    page.keyboard.press("Enter")
    assert scheme(page) == "slate"
    context.close()


def test_a_page_is_not_styled_anew_for_what_it_was_made_with(browser: Browser, address: str):
    context = browser.new_context(color_scheme="light")
    context.add_init_script("""
        window.seen = [];
        new MutationObserver((all) => window.seen.push(...all.map((one) => one.attributeName)))
            .observe(document, { attributes: true, subtree: true, attributeFilter: ["data-md-color-switching"] });
    """)
    page = context.new_page()
    page.goto(f"{address}glossary/")
    page.wait_for_timeout(500)
    assert "data-md-color-switching" not in page.evaluate("window.seen")
    assert not page.evaluate("document.documentElement.hasAttribute('style')")
    assert page.evaluate("document.querySelector('meta[name=color-scheme]')") is None
    context.close()


def test_the_menu_of_a_narrow_screen_is_there_when_it_is_opened(visit: Visit, address: str):
    page = visit(address, viewport=NARROW, sound=False)
    link = page.locator(".md-sidebar--primary a.md-nav__link[href$='models/']").first
    assert not link.evaluate("node => node.checkVisibility({contentVisibilityAuto: true})")
    page.locator("label.md-header__button[for='__drawer']").click()
    link.wait_for(state="visible")
    assert link.evaluate("node => node.checkVisibility({contentVisibilityAuto: true})")


def test_a_table_fades_on_the_side_where_there_is_more(visit: Visit, address: str):
    page = visit(f"{address}glossary/", viewport=NARROW, sound=False)
    page.evaluate("""document.querySelector("article").insertAdjacentHTML("afterbegin",
        "<div class='atlas-scroll' id='probe'><div style='width: 900px; height: 20px'></div></div>" +
        "<div class='atlas-scroll' id='fits'><div style='width: 90px; height: 20px'></div></div>")""")

    def fades(which: str, left: float) -> tuple[bool, bool]:
        said = page.evaluate(
            """([id, left]) => new Promise(done => {
                const box = document.getElementById(id);
                box.scrollLeft = left * (box.scrollWidth - box.clientWidth);
                requestAnimationFrame(() => requestAnimationFrame(() => done(getComputedStyle(box).maskPosition)));
            })""",
            [which, left],
        )
        start, end = (float(part.split("px")[0]) for part in re.split(r", ", said))
        return start > -1, end < -1

    assert fades("probe", 0) == (False, True)
    assert fades("probe", 0.5) == (True, True)
    assert fades("probe", 1) == (True, False)
    assert fades("fits", 0) == (False, False)
