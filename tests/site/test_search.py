"""What readers type leads to the page that answers: words as tags, code of notebooks left out, and in a browser."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from generators.checkpoint.registry import load_registry
from generators.findings import FINDINGS
from generators.site.questions import address_of
from generators.site.search import ASKED_AGAIN, BEGUN, WORKERS, answering, answers, mend_lunr, weighed
from tests.site.conftest import ROOT, Visit
from tests.site.test_browser import WIDE, until

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
    "least general": "/matrix/",
    "cite": "/about/#cite",
    "figure 3 MiniLM": "/models/all-minilm-l6-v2/",
    "data": "/data/",
    "pandas": "/data/",
}


def test_words_are_tags_of_the_place_that_answers():
    entry = {"location": "data/", "title": "Data", "text": "All."}
    assert weighed(entry, {"data/": ["pandas"]}) == {**entry, "tags": ["pandas"]}
    assert weighed(entry, {}) == entry


def test_code_of_notebooks_is_not_looked_through_and_they_weigh_less():
    text = "<p>Read on.</p><pre><code>import pandas\n</code></pre><p>Done.</p>"
    made = weighed({"location": "notebooks/one/#a", "title": "One", "text": text}, {})
    assert made["text"] == "<p>Read on.</p><p>Done.</p>"
    assert made["boost"] < 1
    other = weighed({"location": "data/", "title": "Data", "text": text}, {})
    assert other["text"] == text


def test_words_and_numbers_of_cells_are_apart():
    text = "frequency ✗ fails0.541 ✓ holds−0.2 of L0H7 in gpt2, v1.5"
    made = weighed({"location": "a/", "title": "A", "text": text}, {})
    assert made["text"] == "frequency ✗ fails 0.541 ✓ holds −0.2 of L0H7 in gpt2, v 1.5"


def test_lunr_in_another_version_is_looked_at_again(tmp_path):
    worker = tmp_path / WORKERS / "search.0a1b.min.js"
    worker.parent.mkdir(parents=True)
    worker.write_text(
        r"var e;e=e+s+o.id;n&1?r.replace(a):r;/(^[+-]|[~^]\d+$)/.test(r)?r:e;n=this.index.search(e).reduce(b)"
    )
    mend_lunr(tmp_path)
    assert worker.read_text() == f'var e;e=e+s+o.id+",";1?r.replace(a):r;{BEGUN}e;{ASKED_AGAIN}b)'
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
    pages |= {"add-a-model/", "notebooks/"}
    for place in answers():
        assert place in pages or (place.partition("#")[0] in pages and "absent" not in place), place


def test_entries_of_series_members_and_absent_models_answer_words_too():
    entry = {"location": "models/one/", "title": "One", "text": "All.", "boost": 0.3}
    assert answering(entry, {"models/one/": ["NoPE"]}) == {**entry, "tags": ["NoPE"], "boost": 1}
    assert answering(entry, {}) == entry


FIRST_THREE = """part => [...document.querySelectorAll(".md-search-result__item")].slice(0, 3)
    .some(item => item.querySelector("a")?.href.includes(part))"""


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
    field.fill("")
    field.press_sequentially("figure 3 MiniLM")
    expect(results.first.locator("a").nth(1)).to_contain_text("Figure 3, ")
    field.fill("")
    field.press_sequentially("blurred")
    until(page, FIRST_THREE, "/questions/heads/")
