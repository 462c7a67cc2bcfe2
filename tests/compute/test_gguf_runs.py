"""A GGUF file is run by transformers' own model, with the tensors and the tokenizer that the file holds."""

import numpy as np
import pytest

from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places
from generators.compute import run_text
from generators.compute.plan import open_model
from generators.tokens.tokenizer_files import _byte_of_character
from tests.checkpoint import other_software as other
from tests.checkpoints import Sizes, write_checkpoint

SIZES = Sizes(vocab_size=258)
TOKENS = [*_byte_of_character(), "th", "<|end|>"]
SAID = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [1] * 257 + [3],
    "tokenizer.ggml.merges": ["t h"],
}


def model_of(path) -> Model:
    return Model(name="tiny", title="tiny", sources=(FolderSource(folder=path),))


@pytest.fixture
def transformers():
    pytest.importorskip("torch", reason="PyTorch isn't installed here")
    return pytest.importorskip("transformers", reason="transformers isn't installed here")


def test_what_runs_is_what_was_measured(transformers, tmp_path):
    import torch

    (tmp_path / "gguf").mkdir()
    other.write_gpt2_gguf(tmp_path / "gguf" / "tiny.gguf", sizes=SIZES, **SAID)
    opened = open_model(model_of(tmp_path / "gguf"), Places())
    assert opened.why_no_run is None
    run = opened.run
    folder = write_checkpoint(tmp_path / "original", sizes=SIZES)
    original = transformers.GPT2LMHeadModel.from_pretrained(str(folder), attn_implementation="eager").eval()
    ids = torch.tensor([[5, 256, 7, 100]])
    with torch.no_grad():
        np.testing.assert_allclose(run._model(ids).logits, original(ids).logits, atol=1e-5)
    assert run._model.transformer.wte.weight is run._model.lm_head.weight
    assert run._encoded("the") == (256, TOKENS.index("e"))
    key = opened.depends_on("run")
    other.write_gpt2_gguf(tmp_path / "gguf" / "tiny.gguf", sizes=SIZES, **SAID | {"tokenizer.ggml.pre": "x"})
    again = open_model(model_of(tmp_path / "gguf"), Places()).depends_on("run")
    assert again["weights"] == key["weights"]
    assert again["files"] != key["files"]


def test_without_a_tokenizer_it_is_not_run(transformers, tmp_path):
    other.write_gpt2_gguf(tmp_path / "tiny.gguf")
    assert open_model(model_of(tmp_path), Places()).why_no_run == run_text.NO_TOKENIZER_IN_GGUF


def test_a_tokenizer_that_transformers_does_not_read_is_a_sentence(transformers, tmp_path):
    other.write_gpt2_gguf(tmp_path / "tiny.gguf", sizes=SIZES, **SAID | {"tokenizer.ggml.model": "odd"})
    opened = open_model(model_of(tmp_path), Places())
    with pytest.raises(Exception, match="transformers can't read its file's tokenizer"):
        _ = opened.run
