"""Notebook pages: executed, readable in both tones and on a phone, light, and there to be taken away."""

import gzip
import json
import re
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.site.conftest import Visit
from tests.site.test_browser import PHONE, WIDE

pytestmark = pytest.mark.browser

NAMES = ("helix-by-hand", "average-positions", "query-the-results")
HEAVIEST = 20_000  # bytes, compressed, of a page without its figures; the styles of mkdocs-jupyter alone have 80 000


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_can_be_taken_away_in_both_forms(visit: Visit, address: str, name: str) -> None:
    page = visit(f"{address}notebooks/{name}/", viewport=WIDE)
    links = page.locator(".downloads a")
    assert [links.nth(i).inner_text() for i in range(2)] == [f"{name}.ipynb", f"{name}.py"]
    notebook, text = (page.request.get(links.nth(i).evaluate("a => a.href")) for i in range(2))
    assert json.loads(notebook.text())["metadata"]["atlas"]["source"] == f"{name}.py"
    assert text.text().startswith("# ---\n# jupyter:")


@pytest.mark.parametrize("name", NAMES)
def test_it_was_executed_and_weighs_little(built_site: Path, name: str) -> None:
    page = (built_site / f"notebooks/{name}/index.html").read_text()
    assert "could not be executed" not in page
    assert not [place for place in (sys.prefix, str(ROOT), "ipykernel_") if place in page], "a place on this machine"
    assert "jp-OutputArea-output" in page
    assert "clipboard-copy" not in page
    assert "cdnjs" not in page
    without_figures = re.sub(r'<svg role="img".*?</svg>', "", page, flags=re.DOTALL)
    assert len(gzip.compress(without_figures.encode())) < HEAVIEST


def test_figures_have_words_and_the_colour_of_the_text(visit: Visit, address: str) -> None:
    for scheme in ("light", "dark"):
        page = visit(f"{address}notebooks/query-the-results/", color_scheme=scheme, viewport=PHONE, sound=False)
        figure = page.locator("svg[role=img]").first
        assert "effect size" in (figure.get_attribute("aria-label") or "")
        assert figure.evaluate("f => f.getBoundingClientRect().right <= innerWidth")
        label = figure.locator("[style*='fill: currentColor']").first
        colours = [one.evaluate("e => getComputedStyle(e).color") for one in (label, page.locator("article p").first)]
        assert colours[0] == colours[1]


def test_its_tables_scroll_and_can_be_reached_by_keyboard(visit: Visit, address: str) -> None:
    page = visit(f"{address}notebooks/query-the-results/", viewport=PHONE, sound=False)
    region = page.locator(".atlas-scroll:has(table.dataframe)").first
    assert region.get_attribute("tabindex") == "0"
    assert region.evaluate("r => r.scrollWidth > r.clientWidth")
