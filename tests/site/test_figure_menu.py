"""What a reader takes away from a figure: its picture, its numbers, a citation, an address that restores it."""

import csv
import io
import re
from pathlib import Path
from urllib.parse import urlparse
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Locator, Page, expect

from generators.site import citing
from tests.site.conftest import Visit
from tests.site.test_browser import WIDE, violations
from tests.site.test_figures import alive, data_of, eye, of

pytestmark = pytest.mark.browser

MODEL = "all-minilm-l6-v2"


def menu_of(page: Page, name: str) -> tuple[Locator, Locator]:
    figure = alive(page, name)
    menu = figure.locator("details.figure-menu")
    menu.locator("summary").click()
    return figure, menu


def saved(page: Page, menu: Locator, kind: str) -> tuple[str, bytes]:
    with page.expect_download() as waiting:
        menu.get_by_role("button", name=kind, exact=True).click()
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()


@pytest.mark.parametrize("name", ["helix", "outlier-norms", "position-damage", "heads-on-text"])
def test_a_figure_is_saved_as_pictures_and_numbers(visit: Visit, address: str, name: str) -> None:
    page = visit(f"{address}models/{MODEL}/", viewport=WIDE)
    figure, menu = menu_of(page, name)
    file, svg = saved(page, menu, "SVG")
    assert file == f"{MODEL}-{name}.svg"
    drawn = ElementTree.fromstring(svg)
    assert len(list(drawn.iter())) > 50
    assert figure.locator("figcaption strong").inner_text() in (drawn[0].text or "")
    file, png = saved(page, menu, "PNG")
    assert file == f"{MODEL}-{name}.png"
    assert png.startswith(b"\x89PNG")
    file, numbers = saved(page, menu, "CSV")
    assert file == f"{MODEL}-{name}.csv"
    head, *rows = csv.reader(io.StringIO(numbers.decode()))
    assert rows
    assert all(len(row) == len(head) for row in rows)
    if name == "helix":
        shown = data_of(page, "helix")["rows"][0]
        assert [float(row[1]) for row in rows] == shown["points"][0]


def copied(menu: Locator, what: str) -> str:
    menu.get_by_role("button", name=what).click()
    menu.locator("output", has_text=re.compile(".")).wait_for()
    return menu.get_by_label("What was copied").input_value()


def test_an_address_restores_how_a_curve_is_seen(visit: Visit, address: str) -> None:
    page = visit(f"{address}models/{MODEL}/", viewport=WIDE)
    figure, menu = menu_of(page, "helix")
    figure.get_by_label("Rows").select_option(index=1)
    figure.get_by_label("Color").select_option(label="norm")
    figure.locator(".figure-plot").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "+"):
        page.keyboard.press(key)
    page.wait_for_timeout(200)
    seen = eye(figure)
    url = copied(menu, "Copy address")
    assert urlparse(url).fragment == "figure-helix"
    citation = copied(menu, "Copy citation")
    assert url in citation
    assert MODEL in citation
    assert figure.locator("figcaption strong").inner_text().rstrip(".") in citation
    page.goto("about:blank")
    page.goto(url)
    page.locator("#figure-helix.is-live").wait_for()
    page.wait_for_timeout(300)
    figure = page.locator("#figure-helix")
    assert figure.get_by_label("Color").locator("option:checked").inner_text() == "norm"
    assert figure.get_by_label("Rows").input_value() == "1"
    assert eye(figure) == pytest.approx(seen, abs=0.02)


def test_a_picture_is_taken_away_and_cited_by_its_number(visit: Visit, address: str) -> None:
    page = visit(f"{address}models/{MODEL}/", viewport=WIDE)
    figure = page.locator("figure.atlas-figure:not([data-interactive])").first
    figure.scroll_into_view_if_needed()
    menu = figure.locator("details.figure-menu")
    menu.locator("summary").click()
    expect(menu.get_by_label("Citation")).to_have_value(re.compile(re.escape(citing.in_words())))
    name, number = figure.get_attribute("id") or "", figure.locator(".figure-number").inner_text()
    with page.expect_download() as waiting:
        menu.get_by_role("link", name="SVG").click()
    assert waiting.value.suggested_filename == f"{MODEL}-{name.removeprefix('figure-')}.svg"
    assert saved(page, menu, "PNG")[1].startswith(b"\x89PNG")
    assert menu.get_by_role("button", name="CSV").count() == 0
    citation = copied(menu, "Copy citation")
    entry = copied(menu, "Copy BibTeX")
    assert entry.startswith("@misc{helix_atlas_")
    assert entry.count("{") == entry.count("}")
    assert [one for one in ("title  =", "author =", f"{number}, ``", f"#{name}") if one not in entry] == []
    title = figure.locator("figcaption strong").inner_text().rstrip(".")
    assert citation.startswith(citing.in_words())
    assert re.search(rf"{number}, “{re.escape(title)}”, .+, results of 20\d\d-\d\d-\d\d\. ", citation)
    assert f" {address}models/{MODEL}/#{name} (seen " in citation


def test_a_large_picture_has_its_caption_and_its_menu_and_closes_again(visit: Visit, address: str) -> None:
    page = visit(f"{address}models/{MODEL}/", viewport=WIDE)
    figure = page.locator("figure.atlas-figure:not([data-interactive])").first
    link, dialog = figure.locator("a.tone:visible"), page.get_by_role("dialog", name="Picture", exact=True)
    link.click()
    assert dialog.locator("img").get_attribute("alt") == link.locator("img").get_attribute("alt")
    said = [place.inner_text().split() for place in (dialog.locator("p"), figure.locator("figcaption"))]
    assert said[0] == said[1]
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    link.focus()
    page.keyboard.press("Enter")
    dialog.locator(".figure-menu > summary").click()
    assert (figure.get_attribute("data-cite") or "?") in copied(dialog, "Copy citation")
    dialog.get_by_role("button", name="Close").click()
    dialog.wait_for(state="detached")


def test_without_scripts_a_menu_holds_the_picture(visit: Visit, address: str) -> None:
    page = visit(f"{address}models/{MODEL}/", viewport=WIDE, java_script_enabled=False)
    menu = page.locator("#figure-helix details.figure-menu")
    menu.locator("summary").click()
    menu.get_by_role("link", name="SVG").wait_for()
    found = menu.get_by_role("link", name="SVG").get_attribute("href")
    assert page.request.get(f"{page.url}{found}").ok


def test_an_address_from_home_leads_to_the_page_of_the_model(visit: Visit, address: str) -> None:
    page = visit(address, viewport=WIDE)
    figure, menu = menu_of(page, "helix")
    model = (figure.get_attribute("data-interactive") or "").split("/")[-2]
    assert copied(menu, "Copy address").startswith(f"{address}models/{model}/?figure=helix&view=")


def test_both_curves_of_a_comparison_are_taken_away(visit: Visit, address: str) -> None:
    page = visit(f"{address}compare/?a=gpt2&b={MODEL}", viewport=WIDE)
    figure = page.locator(".compare-helices")
    figure.locator(".figure-menu > summary").click()
    url = copied(figure, "Copy address")
    assert url.startswith(f"{address}compare/?a=gpt2&b={MODEL}&figure=both-curves&view=")
    _, numbers = saved(page, figure, "CSV")
    models = {row[0] for row in csv.reader(io.StringIO(numbers.decode()))}
    assert len(models) == 3, "two models and the head"


def test_an_address_restores_layer_head_search_and_point(visit: Visit, address: str) -> None:
    page = visit(f"{address}models/{MODEL}/", viewport=WIDE)
    urls = {}
    figure, menu = menu_of(page, "stream-curves")
    figure.get_by_role("slider").fill("4")
    urls["stream-curves"] = copied(menu, "Copy address"), "drawn.state().rows", 4
    figure, menu = menu_of(page, "heads-on-text")
    figure.get_by_role("combobox", name="Head").select_option(label="L1H11")
    urls["heads-on-text"] = copied(menu, "Copy address"), "drawn.state().head", "L1H11"
    figure, menu = menu_of(page, "outlier-norms")
    figure.get_by_label("Find a token").fill("[unused9: ")
    figure.get_by_label("Find a token").fill("[unused99")
    page.wait_for_timeout(300)
    urls["outlier-norms"] = copied(menu, "Copy address"), "drawn.found().length", of(figure, "drawn.found().length")
    figure, menu = menu_of(page, "position-damage")
    figure.locator(".figure-plot").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    urls["position-damage"] = copied(menu, "Copy address"), "drawn.state().point", 1
    for name, (url, what, expected) in urls.items():
        page.goto("about:blank")
        page.goto(url)
        assert of(alive(page, name), what) == expected, url


@pytest.mark.parametrize("view", ["", "turn:x+zoom:-", "rows:99+colour:-1", "%F0+:+find:%25F0", "turn:1e999"])
def test_a_view_that_makes_no_sense_shows_the_figure(visit: Visit, address: str, view: str) -> None:
    page = visit(f"{address}models/{MODEL}/?figure=helix&view={view}#figure-helix", viewport=WIDE)
    figure = alive(page, "helix")
    page.wait_for_timeout(200)
    assert all(abs(value) < 10 for value in eye(figure))
    assert len(eye(figure)) == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_an_open_menu_which_escape_closes(visit: Visit, address: str, scheme: str) -> None:
    page = visit(f"{address}models/{MODEL}/", viewport=WIDE, color_scheme=scheme)
    _, menu = menu_of(page, "helix")
    copied(menu, "Copy citation")
    assert violations(page, ".figure-menu[open]") == []
    menu.get_by_role("button", name="CSV").focus()
    page.keyboard.press("Escape")
    assert menu.get_attribute("open") is None
    assert menu.locator("summary").evaluate("summary => summary === document.activeElement")
