"""The page of all models in two numbers, as a reader uses it."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.site.conftest import Visit
from tests.site.test_browser import PHONE, WIDE, until, violations

pytestmark = pytest.mark.browser

DRAWN = "() => document.querySelector('.alike-figure')?.atlas.size.width > 0"


def shown(visit: Visit, address: str, query: str = "", **context: object) -> Page:
    page = visit(f"{address}alike/{query}", **{"viewport": WIDE, **context})
    until(page, DRAWN)
    return page


def marks(page: Page) -> list[str]:
    return page.evaluate("() => document.querySelector('.alike-figure').atlas.models.map(({name}) => name)")


def test_two_numbers_are_chosen_and_travel_in_the_address(visit: Visit, address: str, built_site: Path) -> None:
    numbers = json.loads((built_site / "data" / "alike.json").read_text())
    size = next(one for one in numbers["axes"] if one["id"] == "size-channels")
    lacking = next(one for one in numbers["axes"] if None in one["values"] and one["finding"])
    page = shown(visit, address)
    assert page.get_by_role("combobox", name="Across").input_value() == numbers["start"][0]
    page.get_by_role("combobox", name="Across").select_option("size-channels")
    page.get_by_role("combobox", name="Up").select_option(lacking["id"])
    until(page, DRAWN)
    assert page.evaluate("location.search") == f"?x=size-channels&y={lacking['id']}"
    having = [m for m, value in zip(numbers["models"], lacking["values"], strict=True) if value is not None]
    assert marks(page) == [model["name"] for model in having]
    table = page.locator("#alike-numbers")
    assert table.locator("tbody tr").count() == len(having)
    without = [m["title"] for m in numbers["models"] if m not in having]
    assert table.locator("p").inner_text() == f"Without a number for {lacking['label']}: {', '.join(without)}."
    first = numbers["models"].index(having[0])
    assert f"{size['values'][first]:g}" in table.locator("tbody tr").first.inner_text()
    page.get_by_role("button", name="Swap").click()
    assert page.evaluate("location.search") == f"?x={lacking['id']}&y=size-channels"
    page.go_back()
    until(page, "() => document.querySelector('#alike select[name=x]').value === 'size-channels'")


def test_keys_go_from_model_to_model_and_the_view_is_taken_away(visit: Visit, address: str) -> None:
    page = shown(visit, address, "?x=winding&y=few-channels")
    plot = page.locator(".figure-plot--alike")
    plot.focus()
    page.keyboard.press("ArrowRight")
    title = page.evaluate("() => document.querySelector('.alike-figure').atlas.models[0].title")
    said = page.locator(".alike-figure .found").first
    assert said.inner_text().startswith(f"{title}: ")
    page.locator(".figure-menu summary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    rows = download.value.path().read_text().splitlines()
    assert len(rows) == len(marks(page)) + 1  # a heading
    page.get_by_role("button", name="Copy address").click()
    copied = page.locator(".figure-menu textarea").input_value()
    plot.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/models/**")
    other = visit(copied.replace("x=winding&y=few-channels&", ""), viewport=WIDE)
    until(other, DRAWN)
    assert other.get_by_role("combobox", name="Across").input_value() == "winding"


def test_a_number_that_is_not_there_is_said(visit: Visit, address: str) -> None:
    page = visit(f"{address}alike/?x=nothing&y=winding", viewport=WIDE)
    until(page, "() => document.querySelector('#alike-status').textContent.includes('“nothing”')")
    assert page.locator(".alike-figure").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_is_accessible_with_its_menu_open(visit: Visit, address: str, scheme: str) -> None:
    narrow = {**PHONE, "width": 360}
    page = shown(visit, address, viewport=narrow, color_scheme=scheme, sound=False)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator(".figure-plot--alike").focus()
    page.keyboard.press("ArrowDown")
    page.locator(".figure-menu summary").click()
    assert violations(page) == []


def test_without_scripts_the_table_of_the_first_pair_stands(visit: Visit, address: str) -> None:
    page = visit(f"{address}alike/", viewport=WIDE, java_script_enabled=False, sound=False)
    expect(page.locator("#alike-plain")).to_be_visible()
    expect(page.locator("#alike")).to_be_hidden()
    assert page.locator("#alike-numbers tbody tr").count() > 1
