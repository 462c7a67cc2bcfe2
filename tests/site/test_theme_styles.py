"""The theme's styles in a built site: pages are styled once, and what is put off comes when it is asked for."""

import re

from generators.site.theme_styles import STYLES, lighten, without_switching

RULE = "[data-md-color-switching] *,[data-md-color-switching] :after{transition-duration:0s!important}"
NARROW = {"width": 360, "height": 740}


def test_the_rule_about_every_element_is_taken_out_and_no_other(tmp_path):
    other = "[data-md-color-scheme=slate]{--hue:225}"
    assert without_switching(f"a{{}}{RULE}{other}") == f"a{{}}{other}"
    folder = tmp_path / STYLES
    folder.mkdir(parents=True)
    (folder / "palette.css").write_text(RULE + other)
    (folder / "main.css").write_text(other)
    lighten(tmp_path)
    assert (folder / "palette.css").read_text() == (folder / "main.css").read_text() == other


def test_no_style_of_the_site_asks_while_colours_are_chosen(built_site):
    styles = {path.name: path.read_text("utf-8") for path in (built_site / STYLES).glob("*.css")}
    assert any(name.startswith("palette") for name in styles), "the theme is another"
    assert not [name for name, text in styles.items() if "data-md-color-switching" in text]


def test_the_menu_of_a_narrow_screen_is_there_when_it_is_opened(browser, address):
    page = browser.new_page(viewport=NARROW)
    page.goto(address)
    link = page.locator(".md-sidebar--primary a.md-nav__link[href$='/models/']").first
    assert not link.evaluate("node => node.checkVisibility({contentVisibilityAuto: true})")
    page.locator("label.md-header__button[for='__drawer']").click()
    link.wait_for(state="visible")
    assert link.evaluate("node => node.checkVisibility({contentVisibilityAuto: true})")
    page.close()


def test_a_table_fades_on_the_side_where_there_is_more(browser, address):
    page = browser.new_page(viewport=NARROW)
    page.goto(f"{address}glossary/")
    page.evaluate("""document.querySelector("article").insertAdjacentHTML("afterbegin",
        "<div class='atlas-scroll' id='probe'><div style='width: 900px; height: 20px'></div></div>" +
        "<div class='atlas-scroll' id='fits'><div style='width: 90px; height: 20px'></div></div>")""")

    def fades(which: str, left: float) -> tuple[bool, bool]:
        """Return whether the left and the right side are masked with the content scrolled to a share of its way."""
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
    page.close()
