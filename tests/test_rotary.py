"""A rotary decoder with grouped queries, a gated MLP and an output embedding of its own, from weights to its page."""

import re
from pathlib import Path

import numpy as np
import pytest

from generators.checkpoint.registry import FolderSource, Model, Registry
from generators.checkpoint.sources import Places
from generators.compute.judged import judged_model
from generators.compute.records import ModelFindings
from generators.compute.results import Store
from generators.compute.schedule import compute_model
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from generators.site.pages import render
from generators.site.questions import questions
from generators.site.staging import Staging
from tests.checkpoints import Sizes, config_of, read_model, tensors_of_llama

D, HEADS, KV_HEADS, LAYERS, V, F = 32, 4, 2, 2, 300, 48
SHIFT = 7  # the output embedding of a token is the input embedding of the one this far before it
SIZES = Sizes(LAYERS, HEADS, D, n_ctx=512, vocab_size=V)
CONFIG = config_of("llama", SIZES, num_key_value_heads=KV_HEADS, tie_word_embeddings=False)


def tensors() -> dict[str, np.ndarray]:
    found = tensors_of_llama(D, F, V, LAYERS, kv=KV_HEADS * D // HEADS)
    return {**found, "lm_head.weight": np.roll(found["model.embed_tokens.weight"], SHIFT, axis=0)}


def computed(folder: Path) -> tuple[Model, Store, ModelFindings]:
    model = Model(name="rotary", title="Rotary", sources=(FolderSource(folder=folder),))
    store = Store(folder.parent / "results")
    assert compute_model(model, Places(), store).failed == {}
    judged = judged_model(store, "rotary")
    assert judged is not None
    return model, store, judged.published()


@pytest.fixture(scope="module")
def untied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Store, ModelFindings]:
    folder = tmp_path_factory.mktemp("untied") / "rotary"
    read_model(folder, CONFIG, tensors())
    return computed(folder)


def test_the_token_side_is_computed_in_full_and_the_position_side_says_why_not(untied):
    _, _, findings = untied
    status = {name: record.status for name, record in findings.findings.items()}
    about_tables = {finding.name for finding in FINDINGS if "position_embedding" in finding.needs}
    without_run = {finding.name for finding in FINDINGS if RUN not in finding.needs}
    assert {name for name, value in status.items() if value == "not_applicable"} == about_tables
    assert {name for name, value in status.items() if value == "computed"} == without_run - about_tables
    assert {"helix", "subspaces"} <= about_tables
    assert {"gains", "outliers", "attention"} <= without_run - about_tables
    assert findings.findings["helix"].reason.startswith("Positions enter as rotations")
    assert {c.verdict for c in findings.claims if c.finding == "helix"} == {"untested"}
    zero = findings.findings["zero_layer"]
    assert zero.metrics["tied"] is False
    assert zero.metrics["self_share"] < 0.05
    stored = tensors()
    best = np.argmax(stored["model.embed_tokens.weight"] @ stored["lm_head.weight"].T, axis=1)
    assert zero.metrics["exceptions"] == np.count_nonzero(best != np.arange(V))


def test_a_tied_model_needs_no_output_embedding(tmp_path):
    folder, stored = tmp_path / "rotary", tensors()
    tied = {**stored, "lm_head.weight": stored["model.embed_tokens.weight"]}
    checkpoint = read_model(folder, {**CONFIG, "tie_word_embeddings": True}, tied)
    assert "unembedding" not in checkpoint  # the file's second copy is not read
    _, _, findings = computed(folder)
    assert findings.findings["zero_layer"].metrics["tied"] is True
    assert findings.findings["zero_layer"].metrics["self_share"] > 0.5


def test_its_page_has_no_word_of_positions_that_are_not_there(untied, tmp_path):
    model, store, _ = untied
    site = Staging(tmp_path / "pages", tmp_path / "cache")
    rendered = render(Registry(models=(model,)), store, site, tmp_path / "src")
    assert (rendered.damaged, rendered.absent) == ([], [])
    page = (site.folder / "models/rotary.md").read_text()
    seen = re.sub(r"<details.*?</details>", "", page, flags=re.DOTALL)
    assert seen.count("Positions enter as rotations inside attention") <= len(questions())
    assert '<figure class="atlas-figure" id="figure-position-scheme"' in page
    assert page.count('id="claim-') == len(rendered.pages[0].findings.claims)
    assert "partial copy" not in page
    assert "figures/rotary/helix" not in page
