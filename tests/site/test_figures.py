"""Interactive figures as a reader uses them: by mouse, keyboard, finger, in the dark, in print, without scripts."""

import gzip
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, Route

from tests.site.test_browser import PHONE, WCAG, WIDE, opened

pytestmark = pytest.mark.browser

MOST_DATA = 300_000  # bytes of a figure's numbers, compressed
MOST_FIRST_LOAD = 600_000  # bytes of a model page before anybody scrolls, compressed
NO_WEBGL = """
const get = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
  return kind.startsWith("webgl") ? null : get.call(this, kind, ...rest);
};
"""


@contextmanager
def model_page(browser: Browser, address: str, name: str = "gpt2", **context: object) -> Iterator[Page]:
    page, wrong = opened(browser, f"{address}models/{name}/", **{"viewport": WIDE, **context})
    yield page
    assert wrong == []
    page.context.close()


def alive(page: Page, data: str) -> Locator:
    """Scroll to the figure of some data and wait until it is interactive."""
    figure = page.locator(f'figure[data-interactive$="{data}.json"]')
    figure.scroll_into_view_if_needed()
    page.locator(f'figure.is-live[data-interactive$="{data}.json"]').wait_for()
    return figure


def points(figure: Locator) -> int:
    return figure.locator(".figure-plot").evaluate("plot => plot.data[0].x.length")


def eye(figure: Locator) -> list[float]:
    """Return where the camera really is, not where it was asked to go."""
    return figure.locator(".figure-plot").evaluate(
        "plot => { const { x, y, z } = plot._fullLayout.scene._scene.getCamera().eye; return [x, y, z]; }"
    )


def moved(page: Page, figure: Locator, before: list[float]) -> bool:
    for _ in range(40):
        if max(abs(a - b) for a, b in zip(eye(figure), before, strict=True)) > 0.02:
            return True
        page.wait_for_timeout(100)
    return False


def test_nothing_is_fetched_before_it_is_needed(browser: Browser, address: str) -> None:
    with model_page(browser, address) as page:
        fetched: list[str] = []
        page.wait_for_load_state("networkidle")
        page.on("request", lambda request: fetched.append(request.url))
        page.reload(wait_until="networkidle")
        assert not [url for url in fetched if "plotly" in url or url.endswith("helix.json")]
        alive(page, "helix")
        assert [url for url in fetched if url.endswith("assets/plotly.min.js")]


def test_the_curve_turns_by_keyboard_and_comes_back(browser: Browser, address: str) -> None:
    with model_page(browser, address) as page:
        figure = alive(page, "helix")
        plot = figure.locator(".figure-plot")
        start = eye(figure)
        plot.focus()
        page.keyboard.press("ArrowRight")
        assert moved(page, figure, start)
        turned = eye(figure)
        assert turned[2] == pytest.approx(start[2], abs=1e-3), "turning does not tilt"
        page.keyboard.press("ArrowUp")
        assert moved(page, figure, turned)
        assert eye(figure)[2] > turned[2]
        before = sum(v * v for v in eye(figure))
        page.keyboard.press("+")
        page.wait_for_timeout(500)
        assert sum(v * v for v in eye(figure)) < before
        page.keyboard.press("Home")
        page.wait_for_timeout(500)
        assert eye(figure) == pytest.approx([1.45, 1.45, 1], abs=1e-2)
        assert "arrow keys" in (plot.get_attribute("aria-label") or "")


def test_the_curve_turns_by_mouse_and_by_button(browser: Browser, address: str) -> None:
    with model_page(browser, address) as page:
        figure = alive(page, "helix")
        box = figure.locator(".figure-plot").bounding_box()
        assert box
        start = eye(figure)
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2 + 150, box["y"] + box["height"] / 2, steps=5)
        page.mouse.up()
        assert moved(page, figure, start)
        dragged = eye(figure)
        button = figure.get_by_role("button", name="Turn", exact=True)
        button.click()
        assert moved(page, figure, dragged)
        stop = figure.get_by_role("button", name="Stop turning")
        assert stop.get_attribute("aria-pressed") == "true"
        stop.click()
        page.wait_for_timeout(300)
        stopped = eye(figure)
        page.wait_for_timeout(500)
        assert eye(figure) == pytest.approx(stopped, abs=1e-3)


def test_pointing_at_the_curve_names_the_position(browser: Browser, address: str) -> None:
    with model_page(browser, address) as page:
        figure = alive(page, "helix")
        plot = figure.locator(".figure-plot")
        box = plot.bounding_box()
        assert box
        told = figure.locator(".hovertext")
        for step in range(60):  # somewhere on a line through the middle there is a position
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * (0.2 + step / 100))
            page.wait_for_timeout(40)
            if told.count():
                break
        assert re.match(r"position \d+", told.first.text_content() or "")


def test_rows_and_colours_can_be_chosen(browser: Browser, address: str) -> None:
    with model_page(browser, address) as page:
        figure = alive(page, "helix")
        assert points(figure) == 1023
        figure.get_by_label("Rows").select_option(label="positions 100 to 1023")
        page.wait_for_timeout(500)
        assert points(figure) == 924
        figure.get_by_label("Colour").select_option(label="norm")
        page.wait_for_timeout(500)
        shown = figure.locator(".figure-plot").evaluate("plot => plot.data[0].marker.color.slice(0, 3)")
        assert shown[0] != 100
        assert len(figure.get_by_label("Colour").locator("option").all()) == 3, (
            "it winds, so its angle is a colour too"
        )


def test_a_search_finds_tokens_and_says_where_there_are_none(browser: Browser, address: str) -> None:
    with model_page(browser, address, "all-minilm-l6-v2") as page:
        figure = alive(page, "outlier-norms")
        field = figure.get_by_label("Find a token")
        field.fill("[unused")
        said = figure.locator("output.found")
        page.wait_for_function("document.querySelector('output.found')?.textContent !== ''")
        numbers = re.match(
            r"(\d+) of the (\d+) tokens drawn \(a sample of the vocabulary of 30522\)", said.inner_text()
        )
        assert numbers
        assert int(numbers[1]) > 900
        ringed = figure.locator(".figure-plot").evaluate("plot => plot.data.at(-1).x.length")
        assert ringed == int(numbers[1])
        field.fill("no such token <b>")
        page.wait_for_function("document.querySelector('output.found').textContent.startsWith('None')")
        field.fill("")
        page.wait_for_function("document.querySelector('output.found').textContent === ''")


def test_pointing_at_a_token_names_it_literally(browser: Browser, address: str) -> None:
    hostile = {"ids": [1], "x": [1.0], "y": [1.0], "names": ["<b>x</b> & %{y} <script>"], "name": "g", "colour": 0}

    def answer(route: Route) -> None:
        data = json.loads((route.fetch()).text())
        route.fulfill(json={**data, "groups": [hostile]})

    with model_page(browser, address, "all-minilm-l6-v2") as page:
        page.route("**/outlier-norms.json", answer)
        figure = alive(page, "outlier-norms")
        plot = figure.locator(".figure-plot")
        box = plot.locator(".points path").first.bounding_box()
        assert box
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        told = figure.locator(".hovertext").first
        told.wait_for()
        assert "<b>x</b> & %{y} <script>" in (told.text_content() or "")


def test_figures_work_after_instant_navigation_and_back(browser: Browser, address: str) -> None:
    page, wrong = opened(browser, f"{address}findings/helix/", viewport=WIDE)
    page.evaluate("window.sameDocument = true")
    page.get_by_role("link", name="All figures and tables of GPT-2 124M").click()
    page.wait_for_url("**/models/gpt2/#helix")
    figure = alive(page, "helix")
    assert page.evaluate("window.sameDocument === true"), "the page was reloaded"
    assert points(figure) == 1023
    page.go_back()
    page.wait_for_url("**/findings/helix/")
    page.get_by_role("heading", name="What was observed").wait_for()
    page.go_forward()
    page.wait_for_url("**/models/gpt2/#helix")
    assert points(alive(page, "helix")) == 1023
    assert wrong == []
    page.context.close()


def test_figures_follow_a_change_to_the_dark(browser: Browser, address: str) -> None:
    with model_page(browser, address, color_scheme="light") as page:
        figure = alive(page, "helix")
        plot = figure.locator(".figure-plot")
        style = json.loads(page.evaluate("fetch('../../data/gpt2/helix.json').then(r => r.text())"))["style"]
        assert plot.evaluate("plot => plot.layout.font.color") == style["ink"]
        page.locator("label.md-header__button[title='Switch to dark mode']").click()
        page.wait_for_function(
            "ink => document.querySelector('.figure-plot').layout.font.color === ink", arg=style["ink_dark"]
        )


def test_the_curve_on_the_home_page_turns_unless_motion_is_unwanted(browser: Browser, address: str) -> None:
    for motion, turns in (("no-preference", True), ("reduce", False)):
        page, wrong = opened(browser, address, viewport=WIDE, reduced_motion=motion)
        figure = alive(page, "helix")
        assert moved(page, figure, eye(figure)) == turns
        assert figure.get_by_role("button", name="Stop turning" if turns else "Turn", exact=True).is_visible()
        assert wrong == []
        page.context.close()


def test_in_print_there_are_the_pictures(browser: Browser, address: str) -> None:
    with model_page(browser, address) as page:
        figure = alive(page, "helix")
        assert not figure.locator(".tone--light").is_visible()
        page.emulate_media(media="print")
        assert figure.locator(".tone--light").is_visible()
        assert not figure.locator(".figure-plot").is_visible()


def test_without_webgl_the_picture_stays(browser: Browser, address: str) -> None:
    page = browser.new_context(viewport=WIDE).new_page()
    page.add_init_script(NO_WEBGL)
    page.goto(f"{address}models/gpt2/")
    figure = page.locator('figure[data-interactive$="helix.json"]')
    figure.scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    assert figure.locator(".tone--light").is_visible()
    assert figure.locator(".figure-plot").count() == 0
    page.context.close()


@pytest.mark.parametrize("lost", ["**/plotly.min.js", "**/helix.json"])
def test_where_something_can_not_be_had_the_picture_stays(browser: Browser, address: str, lost: str) -> None:
    page = browser.new_context(viewport=WIDE).new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.route(lost, lambda route: route.abort())
    page.goto(f"{address}models/gpt2/")
    figure = page.locator('figure[data-interactive$="helix.json"]')
    with page.expect_console_message(lambda message: "A picture stays a picture" in message.text):
        figure.scroll_into_view_if_needed()
    assert figure.locator(".tone--light").is_visible()
    assert figure.locator(".figure-plot").count() == 0
    assert problems == []
    page.context.close()


def test_on_a_touch_screen_a_finger_scrolls_until_it_is_told_to_turn(browser: Browser, address: str) -> None:
    with model_page(browser, address, viewport=PHONE, has_touch=True, is_mobile=True) as page:
        figure = alive(page, "helix")
        plot = figure.locator(".figure-plot")
        assert plot.evaluate("plot => getComputedStyle(plot).pointerEvents") == "none"
        figure.get_by_role("button", name="Turn with a finger").tap()
        assert plot.evaluate("plot => getComputedStyle(plot).pointerEvents") == "auto"
        figure.get_by_role("button", name="Done: scroll the page again").tap()
        assert plot.evaluate("plot => getComputedStyle(plot).pointerEvents") == "none"
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_picture_opens_large_and_closes_again(browser: Browser, address: str) -> None:
    with model_page(browser, address) as page:
        link = page.locator("figure:not([data-interactive]) a.tone--light").first
        link.scroll_into_view_if_needed()
        link.click()
        dialog = page.get_by_role("dialog", name="Picture", exact=True)
        assert dialog.locator("img").get_attribute("alt") == link.locator("img").get_attribute("alt")
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
        link.focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Close").click()
        dialog.wait_for(state="detached")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_live_figures(browser: Browser, address: str, scheme: str) -> None:
    with model_page(browser, address, "all-minilm-l6-v2", color_scheme=scheme) as page:
        for data in ("helix", "outlier-norms"):
            alive(page, data)
        page.get_by_label("Find a token").first.fill("the")
        found = Axe().run(page, options=WCAG).response["violations"]
        assert [(v["id"], [node["html"][:120] for node in v["nodes"][:3]]) for v in found] == []


def test_a_model_page_is_light_before_anybody_scrolls(browser: Browser, address: str, built_site: Path) -> None:
    for name in json.loads((built_site / "data/models.json").read_text()):
        for viewport in (WIDE, PHONE):
            context = browser.new_context(viewport=viewport)
            page = context.new_page()
            sizes: dict[str, int] = {}
            page.on("response", lambda r, sizes=sizes: sizes.update({r.url: len(gzip.compress(r.body()))}))
            page.goto(f"{address}models/{name['name']}/", wait_until="networkidle")
            assert sum(sizes.values()) <= MOST_FIRST_LOAD, (
                name,
                sorted(sizes.items(), key=lambda item: -item[1])[:5],
            )
            context.close()


def test_the_numbers_of_a_figure_are_few(built_site: Path) -> None:
    pages = json.loads((built_site / "data/models.json").read_text())
    found = [path for page in pages for path in (built_site / "data" / page["name"]).glob("*.json")]
    interactive = [path for path in found if path.name != "findings.json"]
    assert interactive
    for path in interactive:
        assert len(gzip.compress(path.read_bytes())) <= MOST_DATA, path
