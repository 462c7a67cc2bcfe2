"""What a site weighs: the files of one model, and the pages on which fifty models stand."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from generators.base.progress import silent
from generators.checkpoint.registry import Registry
from generators.compute.results import Store
from generators.site import pages as made
from generators.site.pages import Rendered
from generators.site.plugin import without_indents
from generators.site.staging import Staging
from generators.site.view import ModelPage, all_models, model_page
from generators.site.words import environment
from tests.conftest import ROOT, without_figures

MOST_OF_A_MODEL = 2_500_000  # bytes of page, figures and data, compressed as hosts send them; of 50,000 tokens, too
MOST_OF_A_PAGE = 230_000  # bytes of HTML, of the home page and of questions; hosts send a tenth of it
AROUND = 30_000  # of these, the theme with a menu of fifty models: it took 25 000
MOST_OF_THE_MATRIX = 1_000_000  # bytes, of fifty models
FIFTY = 50


def test_no_model_weighs_more_than_its_share(built_site: Path) -> None:
    models = json.loads((built_site / "data/models.json").read_text())
    names = [model["name"] for model in models if not model["only_in_series"]]
    assert len(names) > 2
    weights = {name: compressed(built_site, name) for name in names}
    assert {name: weight for name, weight in weights.items() if weight > MOST_OF_A_MODEL} == {}


def compressed(site: Path, name: str) -> int:
    files = [path for part in ("models", "figures", "data") for path in (site / part / name).iterdir()]
    return sum(len(gzip.compress(path.read_bytes())) for path in files)


def copies(pages: list[ModelPage], count: int) -> Iterator[ModelPage]:
    """Yield models that show what these show, in turn, under other names."""
    for number in range(1, count + 1):
        like = pages[number % len(pages)]
        name, title = f"made-up-{number}", f"Made up {number}, after {like.title}"
        model = like.findings.model.model_copy(update={"name": name, "title": title})
        findings = like.findings.model_copy(update={"model": model})
        yield replace(like, findings=findings, title=title)


@pytest.fixture(scope="module")
def fifty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fifty")
    store, staging = Store(ROOT / "results"), Staging(folder / "pages", folder / "cache")
    names = ("gpt2", "all-minilm-l6-v2")
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)
        models = [model for model in all_models(Registry(models=()), store) if model.name in names]
        shown = [model_page(model, store, staging, silent) for model in models]
        there = [page for page in shown if page is not None]
        rendered = Rendered(list(copies(there, FIFTY)), [], [])
        made._write_pages(
            rendered, Registry(models=()), staging, environment(whole=True), [], Store(folder / "results"), ()
        )
    return staging.folder


def test_home_and_questions_of_fifty_models_are_small_pages(fifty: Path) -> None:
    found = [fifty / "index.md", *(fifty / "questions").glob("*.md")]
    assert len(found) == 10
    weights = {path.stem: len(path.read_bytes()) + AROUND for path in found}
    assert max(weights.values()) > MOST_OF_A_PAGE / 2, "not the pages of fifty models"
    assert {name: weight for name, weight in weights.items() if weight > MOST_OF_A_PAGE} == {}


def test_the_matrix_of_fifty_models_is_no_heavy_page(fifty: Path) -> None:
    assert len((fifty / "matrix.md").read_bytes()) < MOST_OF_THE_MATRIX


def test_a_claim_in_fifty_models_shows_ten_and_counts_the_others(fifty: Path) -> None:
    text = (fifty / "questions" / "shape.md").read_text()
    claim = text.partition('id="rule-winding"')[2].partition("</section>")[0]
    assert claim.count('class="strip"') == 10
    assert f"It holds in {FIFTY - 10} of {FIFTY - 10} more models" in claim


def test_indents_go_but_where_they_are_seen_or_run():
    html = "<div>\n    <p>a\n   b</p>\n\n\n<pre>x\n\n    y</pre>\n  <script>\n  `\n   `</script>\n  </div>"
    assert without_indents(html) == (
        "<div>\n<p>a\nb</p>\n<pre>x\n\n    y</pre>\n<script>\n  `\n   `</script>\n</div>"
    )
