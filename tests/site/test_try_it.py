"""Try it: what a browser computes of blurred positions is what the whole P gives, within what the page says."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Response, expect

from generators.findings import plantings
from generators.findings.blurred import FINDING
from generators.findings.blurred.measure import GROUP, looks
from generators.findings.positional import queries_and_keys, scoring, stream_of
from generators.maths.curve import grouped
from generators.site.data import script_files
from generators.site.staging import Staging
from generators.site.words import environment
from tests import synthetic
from tests.site.conftest import ROOT, Visit, served_section
from tests.site.stand_ins import sections_of
from tests.site.test_browser import PHONE

MOST_BYTES = 300_000
SECTION = '{% import "findings/blurred.md.j2" as words with context %}{{ words.to_try(page) }}'
ARCH = synthetic.architecture(n_ctx=256)
CURVE = plantings.coil(256, 4)
WEIGHTS = synthetic.gaussian_weights(ARCH, 0) | {"position_embedding": plantings.embed(CURVE, ARCH.d_model, seed=2)}


def page_of(measured: Any) -> Any:
    model = SimpleNamespace(name="planted", n_head=ARCH.n_head)
    return SimpleNamespace(
        name="planted",
        title="Planted",
        findings=SimpleNamespace(model=model),
        sections=sections_of({"blurred": measured}),
        measured={"blurred": measured.metrics} if measured else {},
    )


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a page with the box of a planted model."""
    site = tmp_path_factory.mktemp("site")
    page = page_of(synthetic.measure(FINDING, WEIGHTS, ARCH))
    for path, content in script_files(page).items():
        Staging(site, site / "cache").write(path, content)
    section = environment().from_string(SECTION).render(page=page, root="../../")
    with served_section(site, section) as address:
        yield address


def exact(layer: int, head: int, size: int, query: int) -> np.ndarray:
    """Return what a head gives every position from one, by the whole P in groups."""
    P = np.asarray(WEIGHTS["position_embedding"], np.float64)
    P = grouped(P, size, [0])
    queries, keys = queries_and_keys(WEIGHTS, ARCH, stream_of(WEIGHTS, ARCH, P), layer)
    at = np.array([query])
    return looks(queries[head][at], keys[head], at, scoring(WEIGHTS, ARCH, layer, len(P)), head)[0]


def choose(page: Page, **chosen: int) -> list[float]:
    """Choose a head, a position and so on; return the shares that are said, in percent."""
    for name in ("Groups of", "Layer", "Head"):
        if (value := chosen.get(name.split()[0].lower())) is not None:
            page.get_by_role("combobox", name=name).select_option(str(value))
    for name in ("Position", "Offset"):
        if (value := chosen.get(name.lower())) is not None:
            page.get_by_role("spinbutton", name=name).fill(str(value))
    said = page.locator(".trial-said")
    head = f"L{chosen['layer']}H{chosen['head']}"
    expect(said).to_contain_text(f"groups of {chosen['groups']}, {head} gives")
    expect(said).to_contain_text(f"at position {chosen['position']} ")
    return [float(share) for share in re.findall(r"([\d.]+) %", said.inner_text())]


@pytest.mark.browser
def test_what_is_said_is_what_the_whole_of_the_positions_gives(visit: Visit, trial: str) -> None:
    page = visit(trial)
    page.get_by_text("Try it: blur the positions").click()
    for layer, head, size, position, offset in ((0, 1, 1, 200, 1), (1, 0, 5, 130, 3), (1, 1, GROUP, 77, 0)):
        said = choose(page, layer=layer, head=head, groups=size, position=position, offset=offset)
        blurred, as_it_is = exact(layer, head, size, position), exact(layer, head, 1, position)
        assert said[2] == pytest.approx(100 * blurred[position - offset], abs=0.15)
        assert said[3] == pytest.approx(100 * as_it_is[position - offset], abs=0.15)
        assert said[0] == pytest.approx(said[1], abs=0.11) or size > 1, "in groups of 1 nothing changes"


@pytest.mark.browser
def test_blurring_leaves_a_bead_for_every_group(visit: Visit, trial: str) -> None:
    page = visit(f"{trial}#try-it")
    choose(page, groups=50, layer=0, head=0, position=100, offset=1)
    beads = page.get_by_role("img", name="of 6 different places").locator("circle.trial-bead")
    assert 1 <= beads.count() <= 6


@pytest.mark.browser
def test_it_works_by_keyboard_says_what_is_out_of_range_and_fits_a_phone(visit: Visit, trial: str) -> None:
    page = visit(trial, viewport=PHONE)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".trial-said")).to_contain_text("gives")
    page.get_by_role("spinbutton", name="Position").fill("256")
    expect(page.locator(".trial-said")).to_have_text("Positions run from 0 to 255, offsets from 0 to 24.")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.browser
def test_nothing_is_fetched_before_it_is_opened_and_little_then(browser: Browser, trial: str) -> None:
    page = browser.new_page()
    fetched: list[Response] = []
    page.on("response", lambda answer: fetched.append(answer) if "/data/" in answer.url else None)
    page.goto(trial)
    page.wait_for_timeout(300)
    assert fetched == []
    page.get_by_text("Try it: blur the positions").click()
    expect(page.locator(".trial-said")).to_contain_text("gives")
    assert 0 < sum(len(answer.body()) for answer in fetched) < MOST_BYTES
    page.close()


@pytest.mark.browser
def test_what_can_not_be_fetched_is_said(browser: Browser, trial: str) -> None:
    page = browser.new_page()
    page.route("**/trial*.json", lambda route: route.abort())
    page.goto(trial)
    page.get_by_text("Try it: blur the positions").click()
    expect(page.get_by_text("The data could not be loaded")).to_be_visible()
    page.close()


def test_of_the_largest_model_that_is_kept_a_reader_fetches_little():
    """GPT-2 124M: what is fetched at first, and with every other layer."""
    from generators.compute.judged import judged_finding
    from generators.compute.results import Store

    measured = judged_finding(Store(ROOT / "results"), "gpt2", FINDING).measured
    page = page_of(measured)
    sizes = {Path(path).name: len(content.encode()) for path, content in script_files(page).items()}
    assert len(sizes) == 13
    assert sizes["trial.json"] + sizes["trial-0.json"] < MOST_BYTES / 2
    assert sum(sizes.values()) < 400_000


def test_a_model_without_a_reduction_has_no_files():
    assert script_files(page_of(None)) == {}
