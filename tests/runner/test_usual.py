"""Every finding that runs a model, on models that transformers builds in ways that differ."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from generators.checkpoint.sources import Places
from generators.compute.running import RunSettings
from generators.compute.schedule import compute_model
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from generators.runner.usual import in_usual_form
from tests.checkpoint.oracle import cases
from tests.checkpoint.oracle.cases import CASES
from tests.checkpoint.oracle.model import build
from tests.compute.harness import model_in
from tests.runner.models import KINDS, write_tokenizer

RUNNING = tuple(finding for finding in FINDINGS if RUN in finding.needs)
VOCABULARY, SHORT = 300, RunSettings(budget_s=1e-3)
OF_THEIR_OWN = ("opt (350m layout)", "openai-gpt", "phi3 (LongRoPE)")
OTHERS = ("gpt2", "opt", "ctrl", "bloom", "mpt", "falcon (grouped keys)", "gpt_neox")
OTHERS += ("gemma3_text (cap)", "gpt_oss", "bert (decoder)")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a function that builds the model of a case, writes it with a text of its own and returns the folder."""
    monkeypatch.setitem(cases.SMALL, "vocab_size", VOCABULARY)

    def make(name: str) -> Path:
        folder = tmp_path / "model"
        build(next(case for case in CASES if case.name == name)).save_pretrained(folder)
        write_tokenizer(folder, KINDS["gpt2"])
        text = np.random.default_rng(1).integers(4, VOCABULARY - 10, 20_000)
        np.save(folder / "held_out_tokens.npy", text.astype(np.uint16))
        return folder

    return make


@pytest.mark.parametrize("name", [*OF_THEIR_OWN, *OTHERS])
def test_every_finding_that_runs_a_model_gives_a_result_or_a_sentence(made, store, name):
    done = compute_model(model_in(made(name)), Places(), store, settings=SHORT, findings=RUNNING)
    assert done.failed == {}
    assert len(done.computed) >= 4


@pytest.mark.parametrize("name", OF_THEIR_OWN)
def test_what_such_a_model_computes_stays_the_same(made, name):
    model = transformers.AutoModelForCausalLM.from_pretrained(made(name)).eval()
    ids = torch.as_tensor(np.random.default_rng(2).integers(0, VOCABULARY, (2, 20)))
    with torch.inference_mode():
        before = model(ids).logits
        in_usual_form(model)
        assert torch.allclose(model(ids).logits, before, atol=1e-6)
        assert model.base_model(ids).last_hidden_state.shape[-1] == model.config.hidden_size


def test_frequencies_for_long_texts_can_be_changed_after_a_run(made):
    model = transformers.AutoModelForCausalLM.from_pretrained(made("phi3 (LongRoPE)")).eval()
    in_usual_form(model)
    with torch.inference_mode():
        model(torch.zeros((1, 8), dtype=torch.int64))
    (rotation,) = (part for part in model.modules() if hasattr(part, "long_inv_freq"))
    assert not rotation.long_inv_freq.is_inference()
