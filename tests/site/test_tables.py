"""Tables as a reader uses them: filtered by words, and without scripts."""

from collections.abc import Iterator, Sequence
from html import escape

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.site.conftest import Visit, site_script
from tests.site.test_browser import PHONE, WIDE, violations

pytestmark = pytest.mark.browser

SHALOM = "שלום"
ROWS = (
    (7, "the", "0.123", "blocks.10", "other then"),
    (3, "Ġcat", "0.123", "blocks.9", ""),
    (12, SHALOM, "0.123", "blocks.2", f"{SHALOM} abc"),
    (100, "<b>&amp;</b>", "−0.5", "blocks.2", "x"),
    (20, "nine", "", "blocks.1", "y"),
    (5, "⟨0A⟩", "1e-07", "blocks.2", "z"),
    (6, "İ", "3", "", "w"),
    (8, "eight", "10", "blocks.1", "v"),
    (9, "'\"`*_[x](y)", "−1e-07", "blocks.3", "u"),
)
ALL = [row[0] for row in ROWS]


@pytest.fixture
def bare(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    yield page
    page.close()


def with_table(page: Page, rows: Sequence[Sequence[object]] = ROWS) -> Page:
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    table = f'<table class="plain"><caption>Planted &lt;rows&gt;</caption><tbody>{body}</tbody></table>'
    page.set_content(f'<div class="atlas-scroll" tabindex="0">{table}</div>')
    page.add_script_tag(content=site_script())
    return page


def ids(page: Page) -> list[int]:
    return [int(text) for text in page.locator("tbody tr:not([hidden]) > td:first-child").all_text_contents()]


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
def test_a_filter_leaves_rows_with_all_its_words(bare: Page, typed: str, left: list[int]) -> None:
    planted = with_table(bare)
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


# On the site


@pytest.mark.parametrize(("viewport", "scheme"), [(WIDE, "light"), (PHONE, "dark")], ids=["wide", "phone"])
def test_open_tables_are_sound(visit: Visit, address: str, viewport: dict, scheme: str) -> None:
    page = visit(f"{address}data/", viewport=viewport, color_scheme=scheme, sound=False)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.get_by_role("searchbox", name="Filter rows of the table").first.fill("1")
    assert violations(page, ".atlas-scroll") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_a_link_to_what_is_folded_opens_it(visit: Visit, address: str) -> None:
    page = visit(f"{address}questions/shape/#computed-helix", viewport=WIDE, sound=False)
    folded = page.locator("#computed-helix > p").first
    expect(folded).to_be_visible()
    page.goto(f"{address}questions/shape/")
    expect(folded).to_be_hidden()
    page.evaluate("location.hash = '#computed-helix'")
    expect(folded).to_be_visible()
