"""Interactive figures as a reader uses them: by mouse, keyboard, finger, in the dark, in print, without scripts."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, Route, expect

from generators.drawing.svg import svg
from tests.drawing.test_svg import INK, INK_DARK, drawn
from tests.site.conftest import Visit
from tests.site.test_browser import PHONE, SHORT_TABLES, WIDE, until, violations

pytestmark = pytest.mark.browser

MOST_FIRST_LOAD = 650_000  # bytes of a model page before anybody scrolls, compressed
MOST_SCRIPTS = 60_000  # bytes of the site's own scripts, compressed: they come with every page
NO_CANVAS = "HTMLCanvasElement.prototype.getContext = () => null"
PICKED = "window.picked = []; document.addEventListener('atlas:pick', event => picked.push(event.detail))"
HOME = [0.636, 0.636, 0.437]  # where the eye of a curve is at first


def model_page(visit: Visit, address: str, name: str = "gpt2", **context: object) -> Page:
    return visit(f"{address}models/{name}/", **{"viewport": WIDE, **context})


def alive(page: Page, data: str) -> Locator:
    figure = page.locator(f'figure[data-interactive$="{data}.json"]')
    figure.scroll_into_view_if_needed()
    page.locator(f'figure.is-live[data-interactive$="{data}.json"] canvas[width]').wait_for()
    return figure


def figure_of(visit: Visit, address: str, data: str, name: str = "gpt2", **context: object) -> tuple[Page, Locator]:
    page = model_page(visit, address, name, **context)
    return page, alive(page, data)


def of(figure: Locator, what: str) -> Any:
    return figure.evaluate(f"figure => {{ const drawn = figure.atlas; return {what}; }}")


def points(figure: Locator) -> int:
    return of(figure, "drawn.scene().lines[0].points[0].length")


def eye(figure: Locator) -> list[float]:
    """Return from where the curve was drawn last, not from where it was asked to be."""
    return [float(value) for value in (figure.locator(".figure-plot").get_attribute("data-eye") or "").split()]


def box_of(figure: Locator) -> dict[str, float]:
    box = figure.locator(".figure-plot").bounding_box()
    assert box
    return box


def ink_of(figure: Locator) -> str:
    found = re.search(r'<text [^>]*fill="(#\w+)"', of(figure, "drawn.svg('')"))
    assert found
    return found[1]


def canvas_of(figure: Locator) -> str:
    return figure.locator("canvas").evaluate("canvas => canvas.toDataURL()")


SMALL = {"width": 640, "height": 480}


def moved(page: Page, figure: Locator, before: list[float]) -> bool:
    for _ in range(40):
        if max(abs(a - b) for a, b in zip(eye(figure), before, strict=True)) > 0.02:
            return True
        page.wait_for_timeout(100)
    return False


def test_scripts_are_small(built_site: Path) -> None:
    for page in ("", "compare/", "models/gpt2/", "questions/shape/"):
        named = re.findall(r'<script src="[^"]*assets/([\w-]+\.js)"', (built_site / page / "index.html").read_text())
        assert named == ["site.js", *(["compare.js"] if page == "compare/" else [])]
        assert sum(len(gzip.compress((built_site / "assets" / name).read_bytes())) for name in named) <= MOST_SCRIPTS


def test_the_curve_turns_by_keyboard_and_comes_back(visit: Visit, address: str) -> None:
    page, figure = figure_of(visit, address, "helix")
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
    page.wait_for_timeout(200)
    assert sum(v * v for v in eye(figure)) < before
    page.keyboard.press("Home")
    page.wait_for_timeout(500)
    assert eye(figure) == pytest.approx(HOME, abs=1e-2)
    assert "arrow keys" in (plot.get_attribute("aria-label") or "")


def test_the_curve_turns_by_mouse_and_by_button(visit: Visit, address: str) -> None:
    page, figure = figure_of(visit, address, "helix")
    box = box_of(figure)
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


def test_pointing_at_the_curve_names_the_position(visit: Visit, address: str) -> None:
    page, figure = figure_of(visit, address, "helix")
    box = box_of(figure)
    told = figure.locator(".figure-tip")
    for step in range(60):  # somewhere on a line through the middle there is a position
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * (0.2 + step / 100))
        if told.is_visible():
            break
    assert re.match(r"position \d+", told.inner_text())


def test_positions_are_gone_through_by_keys_and_opened(visit: Visit, address: str) -> None:
    page, figure = figure_of(visit, address, "helix")
    page.evaluate(PICKED)
    figure.locator(".figure-plot").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("window.picked") == [], "nothing is told yet"
    for key in "nnnp":
        page.keyboard.press(key)
    assert figure.locator("output.found").inner_text() == "position 2."
    assert figure.locator(".figure-tip").inner_text() == "position 2"
    page.keyboard.press("Enter")
    assert page.evaluate("window.picked") == [{"kind": "position", "index": 2}]


def test_rows_and_colours_can_be_chosen(visit: Visit, address: str) -> None:
    page, figure = figure_of(visit, address, "helix")
    assert points(figure) == 1023
    figure.get_by_label("Rows").select_option(label="positions 100 to 1023")
    page.wait_for_timeout(500)
    assert points(figure) == 924
    figure.get_by_label("Color").select_option(label="norm")
    page.wait_for_timeout(500)
    norms = data_of(page, "helix", "gpt2")["colourings"][1]
    assert norms["name"] == "norm"
    assert of(figure, "drawn.scene().of") == norms["values"][100:]
    assert of(figure, "drawn.scene().bar.title") == "norm"
    assert len(figure.get_by_label("Color").locator("option").all()) == 3, "it winds, so its angle is a colour too"


def test_a_search_finds_tokens_and_says_where_there_are_none(visit: Visit, address: str) -> None:
    _, figure = figure_of(visit, address, "outlier-norms", "all-minilm-l6-v2")
    field = figure.get_by_label("Find a token")
    field.fill("[unused")
    said = figure.locator("output.found")
    expect(said).not_to_be_empty()
    numbers = re.match(r"(\d+) of the (\d+) tokens drawn \(a sample of the vocabulary of 30522\)", said.inner_text())
    assert numbers
    assert int(numbers[1]) > 900
    assert of(figure, "drawn.found().length") == int(numbers[1])
    field.fill("no such token <b>")
    expect(said).to_have_text(re.compile("^None"))
    field.fill("")
    expect(said).to_be_empty()


def test_pointing_at_a_token_names_it_literally(visit: Visit, address: str) -> None:
    hostile = {"ids": [1], "x": [1.0], "y": [1.0], "names": ["<b>x</b> & %{y} <script>"], "name": "g", "colour": 0}

    def answer(route: Route) -> None:
        data = json.loads((route.fetch()).text())
        route.fulfill(json={**data, "groups": [hostile]})

    page = model_page(visit, address, "all-minilm-l6-v2")
    page.route("**/outlier-norms.json", answer)
    figure = alive(page, "outlier-norms")
    place, box = of(figure, "drawn.at(drawn.tokens[0])"), box_of(figure)
    page.mouse.move(box["x"] + place[0], box["y"] + place[1])
    told = figure.locator(".figure-tip")
    told.wait_for()
    assert "<b>x</b> & %{y} <script>" in (told.text_content() or "")
    assert "&lt;b&gt;x&lt;/b&gt;" in of(figure, "(drawn.restore({ find: 'x' }), drawn.svg('<i>'))")


def test_figures_follow_a_change_to_the_dark(visit: Visit, address: str) -> None:
    page, figure = figure_of(visit, address, "helix", color_scheme="light")
    style = data_of(page, "helix", "gpt2")["style"]
    assert ink_of(figure) == style["ink"]
    before = canvas_of(figure)
    page.locator("label.md-header__button[title='Switch to dark mode']").click()
    until(page, "document.body.dataset.mdColorScheme === 'slate'")
    page.wait_for_timeout(200)
    assert ink_of(figure) == style["ink_dark"]
    assert canvas_of(figure) != before, "what is seen changes, too"


def test_the_curve_that_opens_home_turns_unless_motion_is_unwanted(visit: Visit, address: str) -> None:
    for motion, turns in (("no-preference", True), ("reduce", False)):
        # every frame is drawn by the processor
        page = visit(address, viewport=SMALL, reduced_motion=motion)
        figure = alive(page, "helix")
        assert moved(page, figure, eye(figure)) == turns
        expect(figure.get_by_role("button", name="Stop turning" if turns else "Turn", exact=True)).to_be_visible()


def test_in_print_there_are_the_pictures(visit: Visit, address: str) -> None:
    page, figure = figure_of(visit, address, "helix")
    expect(figure.locator(".tone--light")).to_be_hidden()
    page.emulate_media(media="print")
    expect(figure.locator(".tone--light")).to_be_visible()
    expect(figure.locator(".figure-plot")).to_be_hidden()


@pytest.mark.parametrize("lost", ["canvas", "site.js", "helix.json"])
def test_where_something_can_not_be_had_the_picture_stays(browser: Browser, address: str, lost: str) -> None:
    page = browser.new_context(viewport=WIDE).new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    if lost == "canvas":
        page.add_init_script(NO_CANVAS)
    else:
        page.route(f"**/{lost}", lambda route: route.abort())
    page.goto(f"{address}models/gpt2/")
    figure = page.locator('figure[data-interactive$="helix.json"]')
    if lost == "helix.json":
        with page.expect_console_message(lambda message: "A picture stays a picture" in message.text):
            figure.scroll_into_view_if_needed()
    else:
        figure.scroll_into_view_if_needed()
        page.wait_for_load_state("networkidle")
    expect(figure.locator(".tone--light")).to_be_visible()
    assert figure.locator(".figure-plot").count() == 0
    assert lost == "canvas" or problems == []
    page.context.close()


def test_on_a_touch_screen_a_finger_scrolls_until_it_is_told_to_turn(visit: Visit, address: str) -> None:
    page, figure = figure_of(visit, address, "helix", viewport=PHONE, has_touch=True, is_mobile=True)
    plot = figure.locator(".figure-plot")
    assert plot.evaluate("plot => getComputedStyle(plot).pointerEvents") == "none"
    figure.get_by_role("button", name="Turn with a finger").tap()
    assert plot.evaluate("plot => getComputedStyle(plot).pointerEvents") == "auto"
    figure.get_by_role("button", name="Done: scroll the page again").tap()
    assert plot.evaluate("plot => getComputedStyle(plot).pointerEvents") == "none"
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_model_page_is_light_before_anybody_scrolls(browser: Browser, address: str, built_site: Path) -> None:
    models = json.loads((built_site / "data/models.json").read_text())
    for name in (model for model in models if not model["only_in_series"]):  # pages of the others are made alike
        for viewport in (WIDE, PHONE):
            context = browser.new_context(viewport=viewport)
            page = context.new_page()
            sizes: dict[str, int] = {}
            page.on("response", lambda r, sizes=sizes: sizes.update({r.url: len(gzip.compress(r.body()))}))
            page.goto(f"{address}models/{name['name']}/", wait_until="networkidle")
            assert sum(sizes.values()) <= MOST_FIRST_LOAD, (name, max(sizes.items(), key=lambda item: item[1]))
            context.close()


# Layers with a slider


def data_of(page: Page, figure: str, model: str = "all-minilm-l6-v2") -> dict:
    return json.loads(page.evaluate(f"fetch('../../data/{model}/{figure}.json').then(r => r.text())"))


def wait_for(page: Page, figure: Locator, what: str, expected: object) -> None:
    same = f"const drawn = figure.atlas; return JSON.stringify({what}) === JSON.stringify(expected);"
    until(page, f"([figure, expected]) => {{ {same} }}", arg=[figure.element_handle(), expected])


def test_layers_are_gone_through_with_a_slider(visit: Visit, address: str) -> None:
    page, figure = figure_of(visit, address, "stream-curves", "all-minilm-l6-v2")
    data = data_of(page, "stream-curves")
    slider = figure.get_by_role("slider", name="Layer")
    facts = figure.locator(".figure-facts")
    assert dict(data["rows"][data["start"]]["numbers"])["EV3 of the curve"] in facts.inner_text()
    figure.locator(".figure-plot").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)
    turned = eye(figure)
    slider.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    wait_for(page, figure, "drawn.scene().lines[0].points[0].slice(0, 3)", data["rows"][2]["points"][0][:3])
    assert figure.locator(".slider-value").inner_text() == "into layer 2"
    numbers = dict(data["rows"][2]["numbers"])
    for number in numbers.values():
        assert number in facts.inner_text()
    said = slider.get_attribute("aria-valuetext") or ""
    assert said.startswith("into layer 2, ")
    assert numbers["variance between positions"] in said
    assert eye(figure) == pytest.approx(turned, abs=1e-2), "the next layer is seen from where the last was"
    page.keyboard.press("End")
    assert figure.locator(".slider-value").inner_text() == "what comes out"


# Damage, point by point


def test_damage_says_its_value_and_interval(visit: Visit, address: str) -> None:
    page, figure = figure_of(visit, address, "position-damage", "all-minilm-l6-v2")
    plot = figure.locator(".figure-plot")
    told = figure.locator("output.found")
    plot.focus()
    page.keyboard.press("ArrowRight")
    expected = r"averaged in groups of 2: damage [\d.]+ \(95 % interval [\d.]+ to [\d.]+\)\."
    assert re.fullmatch(expected, told.inner_text())
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    assert told.inner_text().startswith("averaged in groups of 100:"), "it stays at the last"
    page.keyboard.press("ArrowDown")
    assert told.inner_text().startswith("smoothed by a Gaussian of 16:")
    assert "arrow keys" in (plot.get_attribute("aria-label") or "")
    dot, box = of(figure, "drawn.marks()[0]"), box_of(figure)
    page.mouse.move(box["x"] + dot["x"], box["y"] + dot["y"])
    figure.locator(".figure-tip").wait_for()
    assert "95 % interval" in figure.locator(".figure-tip").inner_text()


# Heads, one by one


def test_a_head_that_is_chosen_shows_where_it_looks(visit: Visit, address: str) -> None:
    page, figure = figure_of(visit, address, "heads-on-text", "all-minilm-l6-v2")
    data = data_of(page, "heads-on-text")
    plot, chosen = figure.locator(".figure-plot"), figure.get_by_role("combobox", name="Head")
    assert [line["name"] for line in data["lines"]] == ["on text"]
    first = int(chosen.input_value())
    weights = [weight for row in data["grids"][0]["values"] for weight in row]
    assert data["grids"][0]["name"] == "on text"
    assert weights[first] == max(weights), "the head that looks most at the previous token comes first"
    chosen.select_option(label="L1H11")
    lines = "drawn.lines().map(line => line.weights)"
    wait_for(page, figure, lines, [line["weights"][23] for line in data["lines"]])
    assert figure.locator("output.found").inner_text().startswith("L1H11 gives the previous token: on text 0.")
    plot.focus()
    page.keyboard.press("ArrowRight")
    assert chosen.input_value() == "23", "there is no head beyond the last"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert chosen.input_value() == str(2 * 12 + 10)
    wait_for(page, figure, lines, [line["weights"][34] for line in data["lines"]])
    grid, whole = of(figure, "drawn.grid()"), box_of(figure)
    page.evaluate(PICKED)
    across, down = grid["right"] - grid["left"], grid["bottom"] - grid["top"]
    page.mouse.click(whole["x"] + grid["left"] + across * 2.5 / 12, whole["y"] + grid["top"] + down * 0.5 / 6)
    assert page.evaluate("window.picked") == [{"kind": "head", "index": 2, "layer": 0, "head": 2}]
    wait_for(page, figure, lines, [line["weights"][2] for line in data["lines"]])
    assert chosen.input_value() == "2"


def test_the_grid_of_heads_can_be_coloured_otherwise(visit: Visit, address: str) -> None:
    page, figure = figure_of(visit, address, "heads-on-text", "all-minilm-l6-v2")
    data = data_of(page, "heads-on-text")
    colour = figure.get_by_label("Color")
    names = [grid["name"] for grid in data["grids"]]
    assert colour.locator("option").all_inner_texts() == names
    colour.select_option(label=names[-1])
    wait_for(page, figure, "drawn.chosen().grid", len(names) - 1)
    assert names[-1] in of(figure, "drawn.csv().map(row => row[2]).join()")


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_of_runs_fit_and_axe_finds_nothing(
    visit: Visit, address: str, scheme: str, viewport: dict[str, int]
) -> None:
    page = model_page(visit, address, "all-minilm-l6-v2", color_scheme=scheme, viewport=viewport)
    for data in ("position-damage", "heads-on-text", "stream-curves", "helix", "outlier-norms"):
        figure = alive(page, data)
        ink = data_of(page, "helix")["style"]
        assert ink_of(figure) == ink["ink" if scheme == "light" else "ink_dark"]
    page.get_by_label("Find a token").first.fill("the")
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    page.evaluate(SHORT_TABLES)
    assert violations(page) == []


def test_an_img_shows_it_on_light_and_by_its_address_on_dark(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "one.svg").write_bytes(svg(drawn()))
    (tmp_path / "page.html").write_text(
        '<body style="margin:0"><img src="one.svg"><img src="one.svg#dark"><canvas></canvas>', "utf-8"
    )
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme, viewport={"width": 800, "height": 400})
        page.goto((tmp_path / "page.html").as_uri(), wait_until="load")
        shots = []
        for index in range(2):
            file = tmp_path / f"{index}.png"
            page.locator("img").nth(index).screenshot(path=file)
            with Image.open(file) as picture:
                shots.append({colour: n for n, colour in picture.convert("RGB").getcolors(1 << 20)})
        page.close()
        (light, dark) = shots
        assert max(light, key=light.get) == (255, 255, 255)
        assert max(dark, key=dark.get) == (30, 32, 41)
        assert light.get(INK, 0) > 100 and INK_DARK not in light
        assert dark.get(INK_DARK, 0) > 100 and INK not in dark
