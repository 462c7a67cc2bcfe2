"""The compare page as a reader uses it, and the matrix of the home page."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from generators.base.text import PARTS
from generators.findings import FINDINGS
from generators.site.questions import GROUPS, group_of
from tests.site.conftest import NOISE, SERIES_MEMBERS, Visit
from tests.site.test_browser import PHONE, WIDE, until

pytestmark = pytest.mark.browser


def offered(site: Path) -> set[str]:
    pages = [path.read_text() for kind in ("models", "series") for path in (site / kind).glob("*/index.html")]
    return {name for page in pages for name in re.findall(r'href="[^"]*compare/\?a=([\w.-]+)"', page)}


def test_only_models_that_the_page_knows_lead_to_it(built_site: Path) -> None:
    models = json.loads((built_site / "data/models.json").read_text())
    assert offered(built_site) == {model["name"] for model in models}
    assert {model["name"] for model in models if model["only_in_series"]} >= {*SERIES_MEMBERS}


def test_members_of_series_are_compared_and_marked_as_such(visit: Visit, address: str) -> None:
    one, other = SERIES_MEMBERS
    page = compared(visit, address, f"?a={one}&b={other}")
    first = page.locator("select[name=a]")
    assert first.input_value() == one
    assert first.locator("optgroup[label='Series members'] option", has_text="(series)").count() >= 2


def compared(visit: Visit, address: str, query: str = "", **context: object) -> Page:
    page = visit(f"{address}compare/{query}", **{"viewport": WIDE, **context})
    page.locator("table.compare-claims").first.wait_for()
    return page


def claims(site: Path, name: str) -> dict[str, dict]:
    findings = json.loads((site / "data" / name / "findings.json").read_text())
    return {claim["id"]: claim for claim in findings["claims"]}


def row(page: Page, statement: str) -> list[str]:
    return page.locator("table.compare-claims tr", has_text=statement).first.locator("td").all_text_contents()


def test_two_models_stand_side_by_side_with_their_differences(visit: Visit, address: str, built_site: Path) -> None:
    page = compared(visit, address, "?a=gpt2&b=all-minilm-l6-v2")
    one, other = claims(built_site, "gpt2"), claims(built_site, "all-minilm-l6-v2")
    rows = page.locator("table.compare-claims tbody tr:has(th[scope=row])")
    assert rows.count() == len(one)
    for claim_id, claim in one.items():
        first, second, difference = row(page, claim["statement"])
        for judged, seen in ((claim, first), (other[claim_id], second)):
            assert ("present, weak" if judged.get("weak") else judged["verdict"]) in seen
        values = claim["value"], other[claim_id]["value"]
        if None in values or claim["unit"] in ("layers", "rank of the channel", "tokens", "channels"):
            assert difference == "–"
        else:
            points = difference.endswith(" points")
            assert points == bool(PARTS.match(claim["unit"]))
            shown = float(difference.removesuffix(" points").replace("−", "-").replace("+", ""))
            assert shown == pytest.approx((values[1] - values[0]) * (100 if points else 1), rel=1e-3, abs=1e-12)
    assert page.locator(".compare-claims tbody td a[href*='models/gpt2/#claim-']").count() > 0
    both = [(c["verdict"], other[claim_id]["verdict"]) for claim_id, c in one.items()]
    both = [pair for pair in both if "untested" not in pair]
    differing = sum(a != b for a, b in both)
    said = f"The verdicts differ in {differing} of the {len(both)} claims tested in both"
    assert said in page.locator("#compare-result").inner_text()
    assert page.locator(".compare-claims").first.locator("th[scope=row]").count() == differing
    rest = page.locator(".compare-rest")
    assert rest.locator("th[scope=row]").count() == len(one) - differing
    expect(rest.locator("th[scope=row]").first).to_be_hidden()
    rest.locator("summary").click()
    expect(rest.locator("th[scope=row]").first).to_be_visible()


def test_the_choice_is_kept_in_the_address_and_comes_back(visit: Visit, address: str) -> None:
    page = compared(visit, address)
    page.get_by_label("Second").select_option(NOISE)
    page.wait_for_url(f"**/compare/?a=*&b={NOISE}")
    page.locator("th[scope=col]", has_text=NOISE).first.wait_for()
    page.get_by_role("button", name="Swap").click()
    page.wait_for_url(f"**/compare/?a={NOISE}&b=*")
    until(page, "n => document.querySelector('.compare-claims th:nth-child(2)')?.textContent === n", arg=NOISE)
    page.go_back()
    page.wait_for_url(f"**/compare/?a=*&b={NOISE}")
    until(page, "n => document.querySelector('.compare-claims th:nth-child(3)')?.textContent === n", arg=NOISE)
    page.wait_for_load_state("networkidle")
    page.reload()
    page.locator("th[scope=col]", has_text=NOISE).first.wait_for()
    assert page.get_by_label("Second").input_value() == NOISE


def test_both_curves_turn_in_one_frame(visit: Visit, address: str) -> None:
    page = compared(visit, address, "?a=gpt2&b=all-minilm-l6-v2")
    plot = page.locator(".compare-helices .figure-plot")
    plot.scroll_into_view_if_needed()
    until(page, "document.querySelector('.compare-helices')?.atlas?.scene().lines.length === 2")
    until(page, "document.querySelector('.compare-helices .figure-plot').dataset.eye")
    before = plot.get_attribute("data-eye")
    plot.focus()
    page.keyboard.press("ArrowRight")
    until(page, "before => document.querySelector('.compare-helices .figure-plot').dataset.eye !== before", before)
    assert page.locator(".compare-pair").count() >= 3
    assert page.locator(".compare-pair img").first.get_attribute("alt")


def test_an_unknown_model_is_named_as_such(visit: Visit, address: str) -> None:
    page = visit(f"{address}compare/?a=<b>nobody</b>&b=gpt2", viewport=WIDE, sound=False)
    page.get_by_text("There is no model called “<b>nobody</b>”; choose two from the lists.").wait_for()
    assert page.locator("form.compare-form [name=b]").input_value() == "gpt2"  # which is right stays


def test_without_scripts_the_compare_page_says_where_to_look(visit: Visit, address: str) -> None:
    page = visit(f"{address}compare/", java_script_enabled=False, sound=False)
    expect(page.get_by_text("Choosing two models needs JavaScript.")).to_be_visible()
    expect(page.locator("form.compare-form")).to_be_hidden()


def heads(page: Page) -> list[str]:
    # Text of what isn't laid out yet is known all the same.
    claims = page.locator("table.claims-grid thead th.claim:not([hidden])")
    return [text.strip() for text in claims.all_text_contents()]


def shown(page: Page) -> int:
    return page.locator("table.claims-grid tr:not([hidden]) > td.cell:not([hidden], .is-faded)").count()


def count(site: Path, verdict: str, names: list[str]) -> int:
    found = [claims(site, name) for name in names]
    return sum(claim["verdict"] == verdict for one in found for claim in one.values())


def published(site: Path) -> list[str]:
    models = json.loads((site / "data/models.json").read_text())
    return [model["name"] for model in models if not model["only_in_series"]]


def test_every_claim_is_in_view_at_1280_pixels_and_on_a_phone(visit: Visit, address: str) -> None:
    rules = [rule.short for finding in FINDINGS for rule in finding.rules]
    for viewport in ({"width": 1280, "height": 800}, PHONE):
        page = visit(f"{address}matrix/", viewport=viewport, sound=False)
        until(page, "document.querySelector('.claims-matrix[data-enhanced]')")
        assert sorted(heads(page)) == sorted(rules)
        beyond = page.eval_on_selector_all(
            ".claims-matrix .atlas-scroll", "all => all.map(one => one.scrollWidth - one.clientWidth)"
        )
        assert beyond == [0] * len(GROUPS), viewport
        first, other = (page.locator("table.claims-grid tbody tr:visible th").nth(i).bounding_box() for i in (0, 1))
        assert (first["y"] < other["y"]) == (viewport != PHONE), "rows are models on a wide screen alone"


def test_the_matrix_is_filtered_and_the_address_says_how(visit: Visit, address: str, built_site: Path) -> None:
    page = visit(f"{address}matrix/", viewport=WIDE)
    until(page, "document.querySelector('.claims-matrix[data-enhanced]')")
    everything = heads(page)
    page.get_by_role("button", name="Fails").click()
    assert shown(page) == count(built_site, "fails", published(built_site))
    assert page.url.endswith("?show=fails")
    page.get_by_role("button", name="Holds in GPT-2 124M").click()
    assert len(heads(page)) == count(built_site, "holds", ["gpt2"])
    page.get_by_label("Claims about").select_option(label="Gains")
    assert heads(page) == ["ln1 dials down", "ln2 channel", "ln2 mutes"]
    assert page.url.endswith("?show=first&about=Gains")
    page.reload()
    until(page, "document.querySelector('.claims-matrix[data-enhanced]')")
    assert heads(page) == ["ln1 dials down", "ln2 channel", "ln2 mutes"]
    page.get_by_role("button", name="Holds in GPT-2 124M").click()
    page.get_by_label("Claims about").select_option(label="all tokens")
    of_tokens = [rule.short for finding in FINDINGS if group_of(finding) == "Tokens" for rule in finding.rules]
    assert heads(page) == of_tokens
    page.get_by_label("Claims about").select_option(label="everything")
    assert heads(page) == everything


def test_close_calls_are_found(visit: Visit, address: str, built_site: Path) -> None:
    page = visit(f"{address}matrix/?show=close", viewport=WIDE, sound=False)
    until(page, "document.querySelector('.claims-matrix[data-enhanced]')")
    close = sum(claim["close"] for name in published(built_site) for claim in claims(built_site, name).values())
    assert shown(page) == close > 0


def test_a_cell_says_its_value_and_its_sentence(visit: Visit, address: str, built_site: Path) -> None:
    page = visit(f"{address}matrix/", viewport=WIDE, sound=False)
    claim = claims(built_site, "gpt2")["three-components"]
    cell = page.locator('table.claims-grid a[href$="models/gpt2/#claim-three-components"]')
    assert (cell.get_attribute("title") or "").startswith(claim["verdict"]), "without a script, too"
    cell.focus()
    tip = page.locator(".matrix-tip")
    assert claim["verdict"] in tip.inner_text()
    assert tip.locator("strong").inner_text() == "GPT-2 124M, 3-D curve"
    page.keyboard.press("Escape")
    assert tip.count() == 0
    cell.hover()
    tip.wait_for()


def test_without_scripts_the_whole_matrix_stays(visit: Visit, address: str) -> None:
    page = visit(f"{address}matrix/", viewport=WIDE, java_script_enabled=False)
    assert len(heads(page)) == sum(len(finding.rules) for finding in FINDINGS)
