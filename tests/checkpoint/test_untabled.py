"""Of types that no table describes, the token side is right, and nothing is said of positions and masks."""

import json
from pathlib import Path

import pytest

from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places
from generators.compute.plan import Opened, open_model, plan, prepare
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from tests.checkpoint.oracle import untabled
from tests.checkpoint.oracle.untabled import ABOUT_TOKENS
from tests.checkpoint.test_misreadings import noise
from tests.checkpoints import read_model

V, D = 30, 24
NYSTROMFORMER = {
    "model_type": "nystromformer",
    "vocab_size": V,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "max_position_embeddings": 10,
    "head_dim": 5,
}


@pytest.fixture
def nystromformer(tmp_path: Path) -> Opened:
    tensors = {
        "bert.embeddings.word_embeddings.weight": noise(V, D),
        "bert.embeddings.position_embeddings.weight": noise(10, D),
    }
    read_model(tmp_path, NYSTROMFORMER, tensors)
    return open_model(Model(name="m", title="M", sources=(FolderSource(folder=tmp_path),)), Places())


def test_nothing_that_speaks_of_positions_or_masks_is_measured(nystromformer):
    planned = {finding.name: plan(finding, nystromformer) for finding in FINDINGS}
    assert {name for name, found in planned.items() if found.key is not None} == ABOUT_TOKENS
    running = {finding.name for finding in FINDINGS if RUN in finding.needs}
    for name in running | {"position_scheme", "zero_layer"}:
        assert planned[name].status == "not_applicable"
        assert "no table for models of type nystromformer" in (planned[name].reason or "")
    record = prepare(nystromformer, ()).record
    assert (record.n_ctx, record.n_head) == (10, 3)
    assert (record.causal, record.post_norm) == (None, None)
    assert nystromformer.checkpoint.architecture.d_head == 5


CAME = {
    **dict.fromkeys(("mamba", "rwkv", "funnel", "big_bird", "convbert", "nystromformer", "llava"), "read"),
    "owlvit": "read_in_a_part",
    **dict.fromkeys(("hubert", "xlnet"), "refused"),
}


@pytest.mark.parametrize("kind", CAME)
def test_a_type_of_transformers_is_read_rightly_or_refused(transformers, kind, tmp_path):
    if kind not in untabled.untabled():
        pytest.skip(f"{kind} has a table by now")
    assert untabled.outcome(kind, tmp_path) == CAME[kind]


def test_what_is_stored_of_all_types_is_right():
    stored = json.loads(untabled.RESULTS.read_text("utf-8"))
    assert stored["wrong"] == {}
    assert sum(len(stored[name]) for name in ("read", "read_in_a_part", "refused")) >= 100
