"""Tables as a reader uses them: sorted by any column, filtered by words, by mouse, by keyboard, without scripts."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.site.conftest import Visit, site_script
from tests.site.test_browser import PHONE, WIDE, violations

pytestmark = pytest.mark.browser

COLUMNS = ("token_id", "readable", "norm", "layer", "contained_in")
SHALOM = "שלום"
ROWS = (
    (7, "the", 0.12341, "blocks.10", ["other", "then"]),
    (3, "Ġcat", 0.12344, "blocks.9", []),
    (12, SHALOM, 0.12342, "blocks.2", [SHALOM, "abc"]),
    (100, "<b>&amp;</b>", -0.5, "blocks.2", ["x"]),
    (20, "nine", None, "blocks.1", ["y"]),
    (5, "⟨0A⟩", 1e-07, "blocks.2", ["z"]),
    (6, "İ", 3.0, None, ["w"]),
    (8, "eight", 10.0, "blocks.1", ["v"]),
    (9, "'\"`*_[x](y)", -1e-07, "blocks.3", ["u"]),
)
ALL = [row[0] for row in ROWS]


def cell(value: Any) -> str:
    if value is None:
        return '<td class="n" data-value=""></td>'
    if isinstance(value, (int, float)):
        return f'<td class="n" data-value="{value}">{value:.3g}</td>'.replace(">-", ">−")
    tokens = value if isinstance(value, list) else [value]
    return f"<td>{' '.join(f'<bdi><code>{escape(one)}</code></bdi>' for one in tokens)}</td>"


def rendered(rows: Sequence[Sequence[Any]] = ROWS) -> str:
    heads = "".join(f'<th scope="col">{name.replace("_", " ")}</th>' for name in COLUMNS)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    table = f"<caption>Planted &lt;rows&gt;</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="atlas-scroll" tabindex="0"><table class="plain">{table}</table></div>'


@pytest.fixture
def bare(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    yield page
    page.close()


def with_table(page: Page, rows: Sequence[Sequence[Any]] = ROWS) -> Page:
    page.set_content(rendered(rows))
    page.add_script_tag(content=site_script())
    return page


@pytest.fixture
def planted(bare: Page) -> Page:
    return with_table(bare)


def ids(place: Page | Locator) -> list[int]:
    return [int(text) for text in place.locator("tbody tr:not([hidden]) > td:first-child").all_text_contents()]


def header(place: Page | Locator, name: str) -> Locator:
    return place.locator("th").filter(has_text=name)


def turned(page: Page, name: str) -> tuple[list[int], str | None]:
    header(page, name).get_by_role("button").click()
    return ids(page), header(page, name).get_attribute("aria-sort")


# Sorting


@pytest.mark.parametrize(("name", "up", "down"), [
    ("norm", [100, 9, 5, 7, 12, 3, 6, 8, 20], [8, 6, 3, 12, 7, 5, 9, 100, 20]),
    ("token id", sorted(ALL), sorted(ALL, reverse=True)),
    ("layer", [20, 8, 12, 100, 5, 9, 3, 7, 6], [7, 3, 9, 12, 100, 5, 20, 8, 6]),
])  # fmt: skip
def test_a_column_is_sorted_up_then_down_then_not(planted: Page, name: str, up: list[int], down: list[int]) -> None:
    assert turned(planted, name) == (up, "ascending")
    assert turned(planted, name) == (down, "descending")
    assert turned(planted, name) == (ALL, None)


def test_sorting_by_a_second_column_orders_ties_by_the_first(planted: Page) -> None:
    turned(planted, "token id")
    assert turned(planted, "layer")[0] == [8, 20, 5, 12, 100, 9, 3, 7, 6]
    assert header(planted, "token id").get_attribute("aria-sort") is None
    turned(planted, "layer")
    assert turned(planted, "layer")[0] == ALL


def test_sorting_keeps_the_filter(planted: Page) -> None:
    planted.get_by_role("searchbox").fill("blocks.2")
    assert turned(planted, "norm")[0] == [100, 5, 12]


# Filtering


@pytest.mark.parametrize(("typed", "left"), [
    ("THE", [7]),
    ("cat", [3]),
    ("blocks.2", [12, 100, 5]),
    ("x blocks", [100, 9]),
    ("  ", ALL),
    (SHALOM, [12]),
    ("-0.5", [100]),
    ("<b>&amp;", [100]),
    ("nothing of the sort", []),
])  # fmt: skip
def test_a_filter_leaves_rows_with_all_its_words(planted: Page, typed: str, left: list[int]) -> None:
    planted.get_by_role("searchbox", name="Filter rows of the table: Planted <rows>").fill(typed)
    assert ids(planted) == left
    reported = planted.get_by_role("status")
    assert reported.inner_text() == (f"{len(left)} of 9 rows" if typed.strip() else "9 rows")
    assert reported.get_attribute("aria-live") == "polite"
    planted.get_by_role("searchbox").fill("")
    assert ids(planted) == ALL


@pytest.mark.parametrize(("count", "fields"), [(8, 0), (9, 1)])
def test_only_longer_tables_can_be_filtered(bare: Page, count: int, fields: int) -> None:
    with_table(bare, ROWS[:count])
    assert bare.get_by_role("searchbox").count() == fields
    assert bare.get_by_role("button").count() == len(COLUMNS)


# Keyboard


def test_everything_works_by_keyboard(planted: Page) -> None:
    keys = planted.keyboard
    planted.bring_to_front()
    for _ in range(20):
        if planted.evaluate("document.activeElement === document.body"):  # a page that isn't drawn yet loses a key
            keys.press("Tab")
    expect(planted.get_by_role("searchbox")).to_be_focused()
    keys.type("blocks.2")
    assert ids(planted) == [12, 100, 5]
    keys.press("Escape")
    assert ids(planted) == ALL
    keys.press("Tab")
    assert planted.evaluate("document.activeElement.className") == "atlas-scroll"
    keys.press("Tab")
    keys.press("Enter")
    assert ids(planted) == sorted(ALL)
    keys.press("Space")
    assert ids(planted) == sorted(ALL, reverse=True)
    keys.press("Tab")
    assert planted.evaluate("document.activeElement.textContent") == "readable"


# On the site


def test_without_scripts_a_table_stays_as_it_is(visit: Visit, address: str) -> None:
    page = visit(f"{address}data/", java_script_enabled=False, sound=False)
    assert page.locator("table.plain button, .table-tools").count() == 0
    assert page.locator("table.plain tbody tr").count() > 9


def test_the_table_of_columns_can_be_sorted_and_filtered(visit: Visit, address: str) -> None:
    page = visit(f"{address}data/", sound=False)
    table = page.locator("table.plain").first
    page.get_by_role("searchbox", name="Filter rows of the table").fill("verdict")
    names = table.locator("tbody tr:not([hidden]) > :first-child")
    assert 0 < names.count() < table.locator("tbody tr").count()
    table.get_by_role("button").first.click()
    assert names.all_text_contents() == sorted(names.all_text_contents())


@pytest.mark.parametrize(("viewport", "scheme"), [(WIDE, "light"), (PHONE, "dark")], ids=["wide", "phone"])
def test_open_tables_are_sound(visit: Visit, address: str, viewport: dict, scheme: str) -> None:
    page = visit(f"{address}data/", viewport=viewport, color_scheme=scheme, sound=False)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.locator("th button").first.click()
    page.get_by_role("searchbox").first.fill("1")
    assert violations(page, ".atlas-scroll") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    small = page.eval_on_selector_all("th button", "all => all.filter(b => b.offsetHeight < 24).length")
    assert small == 0


def test_a_link_to_what_is_folded_opens_it(visit: Visit, address: str) -> None:
    page = visit(f"{address}questions/shape/#computed-helix", viewport=WIDE, sound=False)
    folded = page.locator("#computed-helix > p").first
    expect(folded).to_be_visible()
    page.goto(f"{address}questions/shape/")
    expect(folded).to_be_hidden()
    page.evaluate("location.hash = '#computed-helix'")
    expect(folded).to_be_visible()
