"""What readers type leads to the page that answers: words as tags, and in a browser."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from generators.checkpoint.registry import load_registry
from generators.findings import FINDINGS
from generators.site.questions import address_of
from generators.site.search import MENDED, WORKERS, answers, mend_lunr, with_tags
from tests.site.conftest import ROOT, Visit
from tests.site.test_browser import WIDE

SCHEME, USE = "/questions/shape/#computed-position_scheme", "/questions/first-token/#position_use"
TRAJECTORY = "series/stdlib-gpt2-trajectory/"
ANSWERED = {
    "RoPE": "/questions/heads/#rotary_use",
    "rotary": "/questions/heads/#rotary_use",
    "Llama": "/models/stories260k/",
    "ALiBi": SCHEME,
    "NoPE": "/series/stdlib-family/",
    "checkpoints": "/" + TRAJECTORY,
    "p-value": "/methods/",
    "blur": USE,
    "blurred": USE,
    "blurring": USE,
    "averaged": USE,
    "takeaways": "/matrix/",
    "cite": "/about/#cite",
    "data": "/data/",
    "pandas": "/data/",
}


def test_words_are_tags_of_the_place_that_answers_and_a_models_page_answers_its_name():
    entry = {"location": "data/", "title": "Data", "text": "All."}
    assert with_tags(entry, {"data/": ["pandas"]}) == {**entry, "tags": ["pandas"]}
    assert with_tags(entry, {}) == entry
    model = {**entry, "location": "models/gpt2/"}
    assert with_tags(model, {"models/gpt2/": ["GPT"]}) == {**model, "tags": ["GPT", "gpt2"]}


def test_lunr_in_another_version_is_looked_at_again(tmp_path):
    worker = tmp_path / WORKERS / "search.0a1b.min.js"
    worker.parent.mkdir(parents=True)
    worker.write_text("".join(MENDED))
    mend_lunr(tmp_path)
    assert worker.read_text() == "".join(MENDED.values())
    worker.write_text("var id;")
    with pytest.raises(ValueError, match="another version"):
        mend_lunr(tmp_path)


def test_answers_are_pages_that_there_are():
    registry = load_registry(ROOT / "models.yml")
    models = {model.name for model in registry.known()}
    pages = {f"models/{name}/" for name in models} | {f"models/#absent-{name}" for name in models}
    pages |= {address_of(finding) for finding in FINDINGS}
    pages |= {f"series/{series.name}/" for series in registry.series}
    pages |= {f"notebooks/{path.stem}/" for path in (ROOT / "site_src/notebooks").glob("*.py")}
    pages |= {f"{path.name.partition('.')[0]}/" for path in (ROOT / "templates").glob("*.md.j2")}
    pages |= {"add-a-model/", "notebooks/", ""}  # the last is home
    for place in answers():
        assert place in pages or (place.partition("#")[0] in pages and "absent" not in place), place


@pytest.mark.browser
def test_a_search_leads_first_to_the_page_that_answers(visit: Visit, address: str, built_site: Path) -> None:
    page = visit(address, viewport=WIDE)
    field, results = page.locator(".md-search__input"), page.locator(".md-search-result__item")
    field.click()
    found = {}
    for typed, place in ANSWERED.items():
        field.fill("")
        field.press_sequentially(typed)
        answer, _, part = place.partition("#")
        link = f'a[href*="{answer}"]' + (f'[href$="#{part}"]' if part else "")
        tagged = results.first.locator(link).first
        expect(tagged).to_be_attached(timeout=30_000)
        found[typed] = results.first.locator("a").first.get_attribute("href") or ""
    assert all(place.partition("#")[0] in found[typed] for typed, place in ANSWERED.items()), found
