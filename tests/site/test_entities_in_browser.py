"""The panel on an entity: it opens by address, by links, by what figures say, and by the search; by keyboard too."""

import html
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from generators.site.entities import entity_files, write_like
from generators.site.staging import Staging
from generators.site.words import environment
from tests.site.conftest import Visit, served_section
from tests.site.test_browser import PHONE, WIDE, violations
from tests.site.test_entities import HOSTILE, IN_USE, PLANTED, page

pytestmark = pytest.mark.browser

SECTION = """{% import "entities.md.j2" as named with context %}<h1>Planted</h1>
<figure data-live="../../data/planted/kernels.json"><canvas></canvas></figure>
{{ named.section(page, entities) }}<h2 id="gains">Gains</h2><p style="height: 90rem">Far down.</p>"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("site"), page()) as address:
        yield address


def serving(site: Path, model: Any) -> AbstractContextManager[str]:
    files, named = entity_files(model)
    model.named = named
    write_like([model], Staging(site, site / "cache"))
    for path, content in files.items():
        Staging(site, site / "cache").write(path, content)
    return served_section(site, environment().from_string(SECTION).render(page=model, entities=named, root="../../"))


def named(page: Page, name: str) -> Locator:
    page.locator("details.which").evaluate("list => { list.open = true; }")
    return page.get_by_role("link", name=name, exact=True)


def panel(page: Page) -> Locator:
    return page.locator("dialog.entity-panel")


def reported(page: Page) -> str:
    expect(panel(page)).not_to_contain_text("Fetching")
    return panel(page).inner_text()


def row(page: Page, label: str) -> list[str]:
    return panel(page).get_by_role("row", name=label).locator("td").all_inner_texts()


def test_an_address_opens_the_panel_with_what_is_known(visit: Visit, planted: str) -> None:
    page = visit(f"{planted}?channel=1")
    expect(page.get_by_role("dialog", name="Channel 1 of Planted <b>")).to_be_visible()
    assert "The position channel" in reported(page)
    assert row(page, "standard deviation over positions (P)")[:2] == ["0.5", "1 of 3"]
    assert row(page, "mean over tokens (E)")[:2] == ["−2", "1 of 3"], "ranked by size, whichever the sign"
    drawing = panel(page).get_by_role("img", name="Gain in every layer")
    expect(drawing.locator("polyline")).to_have_count(2)
    panel(page).get_by_text("In numbers").click()
    numbers = panel(page).get_by_role("region", name="in numbers").locator("tbody tr")
    assert [line.split() for line in numbers.all_inner_texts()] == [["0", "2", "2"], ["1", "5", "5"]]
    assert panel(page).get_by_text("Use of channels: nothing is known").count() == 1


def test_a_head_shows_its_kernel_and_is_named_either_way(visit: Visit, planted: str) -> None:
    for asked in ("0.1", "L0H1", "l0h1"):
        page = visit(f"{planted}?head={asked}")
        expect(page.get_by_role("dialog", name="Head L0H1 of Planted")).to_be_visible()
        assert "A previous-token head by position alone (weight 90\u00a0%)." in reported(page)
        assert row(page, "weight on the previous token, by position alone")[:2] == ["0.9", "1 of 4"]


@pytest.mark.parametrize("asked", ["4", "%27%20b%27", "%20b", "␠b"])
def test_a_token_is_found_by_id_and_by_text(visit: Visit, planted: str, asked: str) -> None:
    page = visit(f"{planted}?token={asked}")
    expect(page.get_by_role("dialog", name="Token 4 ␠b of Planted")).to_be_visible()
    assert "In the cluster of 2 tokens" in reported(page)
    assert "the model predicts another token after it" in reported(page)
    assert row(page, "next token without layers")[0] == "7 c"
    panel(page).get_by_role("link", name="7", exact=True).click()
    expect(page.get_by_role("dialog", name="Token 7 c of Planted")).to_be_visible()
    assert "Without layers, the model repeats it." in reported(page)
    assert page.url == f"{planted}?token=7"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("channel=3", "There is no channel 3: Planted <b> has channels 0 to 2."),
        (f"channel={HOSTILE}", f"“{HOSTILE}” is no channel"),
        ("token='nothing'", "No token of Planted <b> whose name is stored here is spelled “nothing”."),
        ("token=6", "this token is in none of them"),
    ],
)
def test_of_what_is_not_known_a_sentence_says_so(visit: Visit, planted: str, asked: str, says: str) -> None:
    page = visit(f"{planted}?{asked}")
    assert says in reported(page)


def test_hostile_names_are_only_text(visit: Visit, planted: str) -> None:
    page = visit(f"{planted}?token=5")
    expect(panel(page).locator("h2 bdi code")).to_have_text(HOSTILE)
    assert panel(page).locator("script, b").count() == 0
    assert "It never occurs in the training text." in reported(page)


def test_what_can_not_be_fetched_is_said(browser: Browser, planted: str) -> None:
    page = browser.new_page()
    page.route("**/things.json", lambda route: route.abort())
    page.goto(f"{planted}?channel=1")
    assert "could not be fetched" in reported(page)
    page.close()


def test_by_keyboard_it_opens_turns_and_closes_and_gives_the_focus_back(visit: Visit, planted: str) -> None:
    page = visit(planted, viewport=WIDE)
    link = named(page, "Channel 1")
    link.focus()
    page.keyboard.press("Enter")
    expect(panel(page).locator("h2")).to_be_focused()
    assert page.url == f"{planted}?channel=1"
    reported(page)
    page.get_by_role("button", name="Next").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Channel 2 of Planted")).to_be_visible()
    assert page.url == f"{planted}?channel=2"
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    for _ in range(30):  # the focus stays within
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    page.keyboard.press("Escape")
    expect(panel(page)).to_have_count(0)
    page.wait_for_url(planted)
    expect(link).to_be_focused()


def test_the_back_button_closes_it_and_forward_opens_it(visit: Visit, planted: str) -> None:
    page = visit(planted)
    named(page, "Head L0H1").click()
    reported(page)
    page.go_back()
    expect(panel(page)).to_have_count(0)
    assert page.url == planted
    page.go_forward()
    expect(page.get_by_role("dialog", name="Head L0H1 of Planted")).to_be_visible()
    page.get_by_role("button", name="Close this panel").click()
    expect(panel(page)).to_have_count(0)
    page.wait_for_url(planted)


def test_a_link_in_it_to_a_finding_leads_there(visit: Visit, planted: str) -> None:
    page = visit(f"{planted}?channel=2", viewport=WIDE)
    reported(page)
    panel(page).get_by_role("link", name="Gains").first.click()
    expect(panel(page)).to_have_count(0)
    page.wait_for_url(f"{planted}#gains")
    expect(page.locator("#gains")).to_be_in_viewport()


@pytest.mark.parametrize(
    ("detail", "name"),
    [
        ({"kind": "head", "index": 3}, "Head L1H1 of Planted"),
        ({"kind": "head", "index": 0, "layer": 0, "head": 1}, "Head L0H1 of Planted"),
        ({"kind": "position", "index": 0}, "Position 0 of Planted"),
    ],
)
def test_what_a_figure_picks_opens_its_panel(visit: Visit, planted: str, detail: object, name: str) -> None:
    page = visit(planted)
    pick = "detail => {}.dispatchEvent(new CustomEvent('atlas:pick', {{ bubbles: true, detail }}))"
    page.evaluate(pick.format("document"), detail)
    expect(page.get_by_role("dialog", name=name)).to_be_visible()
    reported(page)
    page.keyboard.press("Escape")
    expect(panel(page)).to_have_count(0)
    page.evaluate(pick.format("document.querySelector('figure canvas')"), detail)
    expect(page.get_by_role("dialog", name=name)).to_be_visible()


def test_a_thing_is_looked_up_by_the_form(visit: Visit, planted: str) -> None:
    page = visit(planted)
    page.get_by_label("What").select_option("head")
    page.get_by_label("Which").fill("1.1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Head L1H1 of Planted")).to_be_visible()
    assert page.url == f"{planted}?head=1.1"


def test_without_scripts_links_lead_to_the_list_of_things(visit: Visit, planted: str) -> None:
    page = visit(planted, java_script_enabled=False, viewport=WIDE)
    expect(page.locator(".things-form")).to_be_hidden()
    named(page, "Channel 1").click()
    page.wait_for_url("**/?channel=1#things")
    page.get_by_text("Named by the findings above").click()
    expect(page.get_by_text("The position channel: P varies far more here")).to_be_visible()


def test_a_channel_is_told_in_short_from_its_numbers(visit: Visit, tmp_path: Path) -> None:
    with serving(tmp_path, page(PLANTED | IN_USE)) as address:
        page_ = visit(f"{address}?channel=2", sound=False)
        reported(page_)
        said = panel(page_).locator(".entity-short").inner_text()
        assert said.startswith("ln2 gives it the largest gain in 2 of 2 layers, 1.4 times the median channel's. ")
        assert "frequency have a rank correlation of −0.7 (rank 1 of 3); on text, " in said
        page_.goto(f"{address}?channel=0")
        reported(page_)
        assert panel(page_).locator(".entity-short").inner_text().startswith("ln2's gain on it is 0.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("asked", ["channel=99", "head=0.2", "token=2479", "token=99999999"])
def test_axe_finds_nothing_with_a_panel_open_and_it_fits(visit: Visit, address: str, scheme: str, asked: str) -> None:
    model = "stdlib-gpt2" if asked == "token=2479" else "all-minilm-l6-v2"
    page = visit(f"{address}models/{model}/?{asked}", color_scheme=scheme, viewport=PHONE)
    reported(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate("(d => d.scrollWidth <= d.clientWidth)(document.querySelector('dialog'))")
    assert violations(page, ".entity-panel") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_where_things_are_looked_up(visit: Visit, address: str, scheme: str) -> None:
    page = visit(f"{address}models/gpt2/#things", color_scheme=scheme, viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert violations(page, ".things") == []


@pytest.mark.parametrize(
    ("typed", "found", "leads"),
    [
        ("channel 138", "Channel 138 of GPT-2 124M", "/models/gpt2/?channel=138"),
        ("L0H2", "Head L0H2 of all-MiniLM-L6-v2", "/models/all-minilm-l6-v2/?head=0.2"),
    ],
)
def test_the_search_leads_to_the_panel(visit: Visit, address: str, typed: str, found: str, leads: str) -> None:
    page = visit(address, viewport=WIDE)
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").press_sequentially(typed)
    first = page.locator(".md-search-result__item").first
    expect(first).to_contain_text(found, timeout=30_000)
    expect(first).not_to_contain_text("Missing")
    first.locator("a").first.click()
    page.wait_for_url(f"**{leads}*")
    expect(page.get_by_role("dialog", name=found)).to_be_visible()
    reported(page)
    page.keyboard.press("Escape")
    expect(panel(page)).to_have_count(0)
    assert leads.partition("?")[2] not in page.url, "the words that were looked for may stay, the thing not"


def test_numbers_in_tables_of_a_model_lead_to_panels(built_site: Path) -> None:
    text = html.unescape((built_site / "models" / "gpt2" / "index.html").read_text())
    gains = json.loads((built_site / "data" / "gpt2" / "findings.json").read_text())["findings"]["gains"]
    assert gains["metrics"]["ln2_channel"]["channel"] == 138
    assert text.count('href="?channel=138#things"') >= 1
