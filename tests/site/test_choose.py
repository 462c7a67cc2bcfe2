"""A finding's page: the figure of any model at the top, with what the atlas says of it, named by the address."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.site.conftest import Visit
from tests.site.test_browser import WIDE

pytestmark = pytest.mark.browser


def answers(site: Path, model: str, finding: str) -> list[re.Pattern[str]]:
    found = json.loads((site / "data" / model / "findings.json").read_text())
    return [re.compile(re.escape(claim["answer"])) for claim in found["claims"] if claim["finding"] == finding]


def test_most_of_its_claims_hold_in_the_model_that_stands_first(visit: Visit, address: str) -> None:
    page = visit(f"{address}findings/helix/", viewport=WIDE)
    chosen = page.locator(".chosen")
    expect(chosen.locator(".chosen-model")).to_have_text("GPT-2 124M")
    expect(chosen.locator("> label select")).to_have_value("gpt2")
    expect(chosen.locator("figure.is-live canvas")).to_have_count(1)


def test_another_model_takes_its_place_and_the_address_says_so(visit: Visit, address: str, built_site: Path) -> None:
    page = visit(f"{address}findings/helix/", viewport=WIDE)
    chosen = page.locator(".chosen")
    chosen.locator("> label select").select_option("openai-gpt")
    expect(chosen.locator(".chosen-model a")).to_have_attribute("href", f"{address}models/openai-gpt/#helix")
    expect(chosen.locator("li")).to_have_text(answers(built_site, "openai-gpt", "helix"))
    expect(chosen.locator("figure.is-live canvas")).to_have_count(1)
    assert page.url == f"{address}findings/helix/?model=openai-gpt"
    page.wait_for_load_state("networkidle")  # a picture that a reload keeps from coming would count as failed
    page.reload()
    expect(chosen.locator(".chosen-model")).to_have_text("GPT-1")


@pytest.mark.parametrize("asked", ["", "nobody", "<b>", "gpt2"])
def test_an_address_that_names_nobody_shows_the_first(visit: Visit, address: str, asked: str) -> None:
    page = visit(f"{address}findings/gains/?model={asked}", viewport=WIDE)
    expect(page.locator(".chosen > label select")).not_to_have_value("")
    expect(page.locator(".chosen figure")).to_have_count(1)


def test_without_scripts_the_picture_and_its_claims_are_there(visit: Visit, address: str) -> None:
    page = visit(f"{address}findings/helix/", java_script_enabled=False, sound=False)
    expect(page.locator(".chosen img").first).to_be_visible()
    assert page.locator(".chosen li").count() == 9
    assert page.locator(".chosen > label select").count() == 0
