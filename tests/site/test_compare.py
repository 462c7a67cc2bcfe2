"""The compare page as a reader uses it, and the matrix of the home page."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from tests.site.conftest import NOISE, SERIES_MEMBERS, Visit
from tests.site.test_browser import PHONE, WIDE, until

pytestmark = pytest.mark.browser


def offered(site: Path) -> set[str]:
    """Return the models that pages of models offer to compare with others."""
    pages = [path.read_text() for path in (site / "models").glob("*/index.html")]
    return {name for page in pages for name in re.findall(r'href="[^"]*compare/\?a=([\w.-]+)"', page)}


def test_only_models_that_the_page_knows_lead_to_it(built_site: Path) -> None:
    models = json.loads((built_site / "data/models.json").read_text())
    assert offered(built_site) == {model["name"] for model in models}
    assert {model["name"] for model in models if model["only_in_series"]} >= {*SERIES_MEMBERS}


def test_members_of_series_are_compared_and_marked_as_such(visit: Visit, address: str) -> None:
    one, other = SERIES_MEMBERS
    page = compared(visit, address, f"?a={one}&b={other}")
    first = page.get_by_label("First")
    assert first.input_value() == one
    assert first.locator("optgroup[label='Series members'] option", has_text="(series)").count() >= 2


def compared(visit: Visit, address: str, query: str = "", **context: object) -> Page:
    page = visit(f"{address}compare/{query}", **{"viewport": WIDE, **context})
    page.locator("table.compare-claims").wait_for()
    return page


def claims(site: Path, name: str) -> dict[str, dict]:
    findings = json.loads((site / "data" / name / "findings.json").read_text())
    return {claim["id"]: claim for claim in findings["claims"]}


def row(page: Page, statement: str) -> list[str]:
    return page.locator("table.compare-claims tr", has_text=statement).first.locator("td").all_inner_texts()


def test_two_models_stand_side_by_side_with_their_differences(visit: Visit, address: str, built_site: Path) -> None:
    page = compared(visit, address, "?a=gpt2&b=all-minilm-l6-v2")
    one, other = claims(built_site, "gpt2"), claims(built_site, "all-minilm-l6-v2")
    rows = page.locator("table.compare-claims tbody tr:has(th[scope=row])")
    assert rows.count() == len(one)
    for claim_id, claim in one.items():
        first, second, difference = row(page, claim["statement"])
        assert claim["verdict"] in first
        assert other[claim_id]["verdict"] in second
        values = claim["value"], other[claim_id]["value"]
        if None in values or claim["unit"] in ("layers", "rank of the channel", "tokens", "channels"):
            assert difference == "–"
        else:
            shown = float(difference.replace("−", "-").replace("+", ""))
            assert shown == pytest.approx(values[1] - values[0], rel=1e-3, abs=1e-12)
    both = [(c["verdict"], other[claim_id]["verdict"]) for claim_id, c in one.items()]
    both = [pair for pair in both if "untested" not in pair]
    differing = sum(a != b for a, b in both)
    said = f"The verdicts differ in {differing} of the {len(both)} claims tested in both"
    assert said in page.locator("#compare-result").inner_text()
    page.get_by_label("only verdicts that differ").check()
    until(page, "n => document.querySelectorAll('.compare-claims th[scope=row]').length === n", arg=differing)


def test_the_choice_is_kept_in_the_address_and_comes_back(visit: Visit, address: str) -> None:
    page = compared(visit, address, reloaded=True)
    page.get_by_label("Second").select_option(NOISE)
    page.wait_for_url(f"**/compare/?a=*&b={NOISE}")
    page.locator("th[scope=col]", has_text=NOISE).wait_for()
    page.get_by_role("button", name="Swap").click()
    page.wait_for_url(f"**/compare/?a={NOISE}&b=*")
    until(page, "n => document.querySelector('.compare-claims th:nth-child(2)')?.textContent === n", arg=NOISE)
    page.go_back()
    page.wait_for_url(f"**/compare/?a=*&b={NOISE}")
    until(page, "n => document.querySelector('.compare-claims th:nth-child(3)')?.textContent === n", arg=NOISE)
    page.wait_for_load_state("networkidle")
    page.reload()
    page.locator("th[scope=col]", has_text=NOISE).wait_for()
    assert page.get_by_label("Second").input_value() == NOISE


def test_both_curves_turn_in_one_frame(visit: Visit, address: str) -> None:
    page = compared(visit, address, "?a=gpt2&b=all-minilm-l6-v2")
    plot = page.locator(".compare-helices .figure-plot")
    plot.scroll_into_view_if_needed()
    until(page, "document.querySelector('.compare-helices')?.atlas?.scene().lines.length === 2")
    sizes = page.locator(".compare-helices").evaluate(
        "figure => figure.atlas.scene().lines.map(({ points }) =>"
        " points.flat().reduce((sum, value) => sum + value * value, 0) / points[0].length)"
    )
    assert sizes == pytest.approx([1, 1])
    until(page, "document.querySelector('.compare-helices .figure-plot').dataset.eye")
    before = plot.get_attribute("data-eye")
    plot.focus()
    page.keyboard.press("ArrowRight")
    until(page, "before => document.querySelector('.compare-helices .figure-plot').dataset.eye !== before", before)
    assert page.locator(".compare-pair").count() >= 3
    assert page.locator(".compare-pair img").first.get_attribute("alt")


def test_a_cell_leads_to_the_claim(visit: Visit, address: str) -> None:
    page = compared(visit, address, "?a=gpt2&b=all-minilm-l6-v2", sound=False)
    page.locator(".compare-claims tbody td a").first.click()
    page.wait_for_url("**/models/gpt2/#claim-three-components")
    page.go_back()
    page.locator("table.compare-claims").wait_for()
    assert "a=gpt2" in page.url


def test_an_unknown_model_is_named_as_such(visit: Visit, address: str) -> None:
    page = visit(f"{address}compare/?a=<b>nobody</b>&b=gpt2", viewport=WIDE, sound=False)
    page.get_by_text("There is no model called “<b>nobody</b>” here; choose two from the lists.").wait_for()
    assert page.locator("form.compare-form [name=b]").input_value() == "gpt2"  # which is right stays


def test_without_scripts_the_compare_page_says_where_to_look(visit: Visit, address: str) -> None:
    page = visit(f"{address}compare/", java_script_enabled=False, sound=False)
    assert page.get_by_text("Choosing two models needs a script.").is_visible()
    assert not page.locator("form.compare-form").is_visible()


def laid_out(page: Page, table: str) -> None:
    """Bring a table near, which is laid out then."""
    page.locator(table).scroll_into_view_if_needed()
    until(
        page, "table => document.querySelector(table).rows[0].checkVisibility({contentVisibilityAuto: true})", table
    )


def names(page: Page) -> list[str]:
    laid_out(page, "table.matrix--wide")
    return page.locator("table.matrix--wide tbody tr:visible th").all_inner_texts()


def test_the_matrix_sorts_and_comes_back(visit: Visit, address: str, built_site: Path) -> None:
    page = visit(address, viewport=WIDE)
    original = names(page)
    values = {
        model["title"]: claims(built_site, model["name"])["three-components"]
        for model in json.loads((built_site / "data/models.json").read_text())
    }
    ranked = ["holds", "partly", "fails", "untested"]
    expected = sorted(original, key=lambda t: (ranked.index(values[t]["verdict"]), -abs(values[t]["value"] or 0)))
    button = page.get_by_role("button", name="Sort by 3-D curve")
    button.click()
    assert names(page) == expected
    assert page.locator("th[aria-sort=ascending]", has_text="3-D curve").count() == 1
    button.focus()
    page.keyboard.press("Enter")
    assert names(page) == expected[::-1]
    button.click()
    assert names(page) == original


def test_the_matrix_filters_models_and_findings(visit: Visit, address: str) -> None:
    page = visit(address, viewport=WIDE, sound=False)
    everything = len(names(page))
    page.get_by_role("searchbox", name="Models").fill("minilm")
    assert names(page) == ["all-MiniLM-L6-v2"]
    page.get_by_role("searchbox", name="Models").fill("")
    assert len(names(page)) == everything
    page.get_by_label("Claims about").select_option(label="Gains")
    shown = page.locator("table.matrix--wide thead tr:last-child th:visible").all_inner_texts()
    assert [text.strip() for text in shown] == ["Model", "ln1 dials down", "ln2 channel"]
    assert page.locator("table.matrix--wide tbody tr:first-child td:visible").count() == 2
    assert page.locator("table.matrix--wide .groups th:visible").all_inner_texts() == ["In the weights"]
    page.get_by_label("Claims about").select_option(label="In use")
    assert page.locator("table.matrix--wide .groups th:visible").all_inner_texts() == ["In use"]
    in_use = sum(len(finding.rules) for finding in FINDINGS if RUN in finding.needs)
    assert page.locator("table.matrix--wide tbody tr:first-child td:visible").count() == in_use
    assert page.locator("table.matrix--wide .groups th:visible").get_attribute("colspan") == str(in_use)
    page.get_by_label("Claims about").select_option(label="everything")
    assert page.locator("table.matrix--wide tbody tr:first-child td:visible").count() > 20


@pytest.mark.parametrize("typed", ["gpt2", "GPT-2 124m", "gpt 2 124"])
def test_a_model_is_found_however_its_name_is_written(visit: Visit, address: str, typed: str) -> None:
    page = visit(address, viewport=WIDE, sound=False)
    page.get_by_role("searchbox", name="Models").fill(typed)
    assert "GPT-2 124M" in names(page)
    assert "GPT-1" not in names(page)


def test_the_address_says_how_the_matrix_is_seen(visit: Visit, address: str) -> None:
    page = visit(address, viewport=WIDE)
    page.get_by_role("searchbox", name="Models").fill("gpt")
    page.get_by_label("Claims about").select_option(label="Helix")
    page.get_by_role("button", name="Sort by winding").click()
    page.get_by_role("button", name="Sort by winding").click()
    assert page.url.endswith("?models=gpt&about=Helix&sort=winding&order=descending")
    seen, shown = names(page), page.locator("table.matrix--wide thead tr:last-child th:visible").count()
    assert shown == 8
    page.reload()
    page.locator("th[aria-sort=descending]", has_text="winding").wait_for()
    assert names(page) == seen
    assert page.locator("table.matrix--wide thead tr:last-child th:visible").count() == shown
    assert page.get_by_role("searchbox", name="Models").input_value() == "gpt"


def test_on_a_phone_the_matrix_stands_upright(visit: Visit, address: str) -> None:
    page = visit(address, viewport=PHONE, sound=False)
    assert not page.locator("table.matrix--wide").is_visible()
    tall = page.locator("table.matrix--tall")
    assert tall.is_visible()
    laid_out(page, "table.matrix--tall")
    assert tall.locator("tbody.group th").all_inner_texts() == ["In the weights", "In use"]
    tall.locator("td.cell a").first.click()
    page.wait_for_url("**/#claim-three-components")
