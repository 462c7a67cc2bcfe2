"""A rotary decoder with grouped queries, a gated MLP and an output embedding of its own, from weights to its page."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import FolderSource, Model, Registry
from generators.checkpoint.sources import Places, in_folder
from generators.compute.judged import judged_model
from generators.compute.records import ModelFindings
from generators.compute.results import Store
from generators.compute.schedule import compute_model
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from generators.site.pages import render
from generators.site.staging import Staging

D, HEADS, KV_HEADS, LAYERS, V, F = 32, 4, 2, 2, 300, 48
HEAD = D // HEADS
SHIFT = 7  # the output embedding of a token is the input embedding of the one this far before it
CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "hidden_size": D,
    "max_position_embeddings": 512,
    "vocab_size": V,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}


def tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)

    def noise(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    E = noise(V, D)
    found = {
        "model.embed_tokens.weight": E,
        "lm_head.weight": np.roll(E, SHIFT, axis=0),
        "model.norm.weight": noise(D),
    }
    for i in range(LAYERS):
        block = f"model.layers.{i}"
        found |= {
            f"{block}.input_layernorm.weight": 1 + 0.1 * noise(D),
            f"{block}.post_attention_layernorm.weight": 1 + 0.1 * noise(D),
            f"{block}.self_attn.q_proj.weight": noise(HEADS * HEAD, D),
            f"{block}.self_attn.k_proj.weight": noise(KV_HEADS * HEAD, D),
            f"{block}.self_attn.v_proj.weight": noise(KV_HEADS * HEAD, D),
            f"{block}.self_attn.o_proj.weight": noise(D, HEADS * HEAD),
            f"{block}.mlp.up_proj.weight": noise(F, D),
            f"{block}.mlp.gate_proj.weight": noise(F, D),
            f"{block}.mlp.down_proj.weight": noise(D, F),
        }
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    target = tmp_path / "rotary"
    target.mkdir()
    (target / "config.json").write_text(json.dumps(CONFIG))
    save_file(tensors(), target / "model.safetensors")
    return target


def computed(folder: Path) -> tuple[Model, Store, ModelFindings]:
    model = Model(name="rotary", title="Rotary", sources=(FolderSource(folder=folder),))
    store = Store(folder.parent / "results")
    assert compute_model(model, Places(), store).failed == {}
    judged = judged_model(store, "rotary")
    assert judged is not None
    return model, store, judged.published()


def test_the_token_side_is_computed_in_full_and_the_position_side_says_why_not(folder):
    _, _, findings = computed(folder)
    status = {name: record.status for name, record in findings.findings.items()}
    about_tables = {finding.name for finding in FINDINGS if "position_embedding" in finding.needs}
    without_run = {finding.name for finding in FINDINGS if RUN not in finding.needs}
    assert {name for name, value in status.items() if value == "not_applicable"} == about_tables
    assert {name for name, value in status.items() if value == "computed"} == without_run - about_tables
    assert {"helix", "attention"} <= about_tables
    assert {"gains", "outliers"} <= without_run - about_tables
    assert findings.findings["helix"].reason.startswith("Positions enter as rotations")
    assert {c.verdict for c in findings.claims if c.finding == "helix"} == {"untested"}


def test_the_output_embedding_decides_what_zero_layers_yield(folder):
    _, _, findings = computed(folder)
    zero = findings.findings["zero_layer"]
    assert zero.metrics["tied"] is False
    assert zero.metrics["self_share"] < 0.05
    stored = tensors()
    best = np.argmax(stored["model.embed_tokens.weight"] @ stored["lm_head.weight"].T, axis=1)
    expected = {(u, int(v)) for u, v in enumerate(best) if u != v}
    assert zero.metrics["exceptions"] == len(expected)


def test_a_tied_model_needs_no_output_embedding(folder):
    (folder / "config.json").write_text(json.dumps({**CONFIG, "tie_word_embeddings": True}))
    stored = tensors()
    save_file({**stored, "lm_head.weight": stored["model.embed_tokens.weight"]}, folder / "model.safetensors")
    checkpoint = open_checkpoint(in_folder(folder))
    assert "unembedding" not in checkpoint  # the file's second copy is not read
    _, _, findings = computed(folder)
    assert findings.findings["zero_layer"].metrics["tied"] is True
    assert findings.findings["zero_layer"].metrics["self_share"] > 0.5


def test_its_page_has_no_word_of_positions_that_are_not_there(folder, tmp_path):
    model, store, _ = computed(folder)
    site = Staging(tmp_path / "pages", tmp_path / "cache")
    rendered = render(Registry(models=(model,)), store, site, tmp_path / "src")
    assert (rendered.damaged, rendered.absent) == ([], [])
    page = (site.folder / "models/rotary.md").read_text()
    seen = re.sub(r' title="[^"]*"', "", page)  # a cell of the bar of verdicts says its reason when pointed at
    assert seen.count("Positions enter as rotations inside attention") == 1
    assert "What Rotary has instead</a>" in page
    for finding in ("helix", "channels", "attention", "subspaces"):  # links to them lead somewhere
        assert page.count(f'<li id="{finding}">') == 1
        assert f"{{ #{finding} }}" not in page
    assert page.count("{ #position_scheme }") == 1
    assert page.count('id="claim-') == sum(len(finding.rules) for finding in FINDINGS)
    assert "partial copy" not in page
    assert "figures/rotary/helix" not in page
