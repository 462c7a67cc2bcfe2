"""A series' page as a reader uses it: the curve goes from model to model, and without scripts all are there."""

import json

import pytest
from playwright.sync_api import expect

from tests.site.conftest import SERIES_MEMBERS, Visit
from tests.site.test_browser import PHONE, WIDE, until

pytestmark = pytest.mark.browser

PAGE = "series/stdlib-family/"


def test_models_of_a_series_are_gone_through_with_a_slider(visit: Visit, address: str) -> None:
    page = visit(f"{address}{PAGE}", viewport=WIDE)
    data = json.loads(page.evaluate("fetch('../../data/series/stdlib-family/curve.json').then(r => r.text())"))
    figure = page.locator('figure[data-interactive$="series/stdlib-family/curve.json"]')
    figure.scroll_into_view_if_needed()
    slider = figure.get_by_role("slider", name="Change")
    slider.wait_for()
    assert len(data["rows"]) >= len(SERIES_MEMBERS)
    for place in (0, 1):
        rows = data["rows"][place]
        assert figure.locator(".slider-value").inner_text() == rows["name"]
        until(
            page,
            "([figure, x]) =>"
            " JSON.stringify(figure.atlas.scene().lines[0].points[0].slice(0, 3)) === JSON.stringify(x)",
            [figure.element_handle(), rows["points"][0][:3]],
        )
        slider.focus()
        page.keyboard.press("ArrowRight")
    axis = figure.evaluate("figure => figure.atlas.scene().axes[0]")
    assert axis == "axis 1", "turned onto one another, they are no principal components"


def test_without_scripts_every_curve_is_there_and_nothing_is_too_wide(visit: Visit, address: str) -> None:
    page = visit(f"{address}{PAGE}", viewport=PHONE, java_script_enabled=False, sound=False)
    picture = page.locator('figure[data-interactive$="curve.json"] .tone--light img').first
    assert "learned positions, learned positions of rank three" in (picture.get_attribute("alt") or "")
    picture.scroll_into_view_if_needed()
    expect(picture).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
