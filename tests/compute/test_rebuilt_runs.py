"""Files that transformers doesn't open here are run by its own model, with the tensors that they hold."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch
import transformers
from scipy.stats import entropy

from generators.compute import run_text
from generators.runner.texts import OF_REACTIONS, REACTIONS, SMILES, shipped_text
from generators.tokens.tokenizer_files import _byte_of_character
from tests.checkpoint import other_software as other
from tests.checkpoints import Sizes, write_checkpoint
from tests.compute.harness import opened_in

SIZES = Sizes(vocab_size=258)
TOKENS = [*_byte_of_character(), "th", "<|end|>"]
SAID = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [1] * 257 + [3],
    "tokenizer.ggml.merges": ["t h"],
}


def test_what_runs_is_what_was_measured(tmp_path):
    (tmp_path / "gguf").mkdir()
    other.write_gpt2_gguf(tmp_path / "gguf" / "tiny.gguf", sizes=SIZES, **SAID)
    opened = opened_in(tmp_path / "gguf")
    assert opened.why_no_run is None
    run = opened.run
    folder = write_checkpoint(tmp_path / "original", sizes=SIZES)
    original = transformers.GPT2LMHeadModel.from_pretrained(str(folder), attn_implementation="eager").eval()
    ids = torch.tensor([[5, 256, 7, 100]])
    with torch.no_grad():
        np.testing.assert_allclose(run._model(ids).logits, original(ids).logits, atol=1e-5)
    assert run._model.transformer.wte.weight is run._model.lm_head.weight
    assert run.encode("the") == (256, TOKENS.index("e"))
    key = opened.depends_on("run")
    other.write_gpt2_gguf(tmp_path / "gguf" / "tiny.gguf", sizes=SIZES, **SAID | {"tokenizer.ggml.pre": "x"})
    again = opened_in(tmp_path / "gguf").depends_on("run")
    assert again["weights"] == key["weights"]
    assert again["files"] != key["files"]


def test_without_a_tokenizer_it_is_not_run(tmp_path):
    other.write_gpt2_gguf(tmp_path / "tiny.gguf")
    assert opened_in(tmp_path).why_no_run == run_text.NO_TOKENIZER_IN_GGUF


def test_a_tokenizer_that_transformers_does_not_read_is_a_sentence(tmp_path):
    other.write_gpt2_gguf(tmp_path / "tiny.gguf", sizes=SIZES, **SAID | {"tokenizer.ggml.model": "odd"})
    opened = opened_in(tmp_path)
    with pytest.raises(Exception, match="transformers can't read its file's tokenizer"):
        _ = opened.run


SIGNS = sorted({sign for line in REACTIONS.read_text().split() for sign in SMILES.findall(line)})
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *SIGNS]


@pytest.fixture
def reader_of_reactions(tmp_path):
    """Return the folder of an encoder in pickles, without a model_type, and that encoder as it was saved."""
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=48
    )
    original = transformers.BertForMaskedLM(config).eval()
    settings = {key: value for key, value in config.to_dict().items() if key not in ("model_type", "architectures")}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY))
    torch.save(original.state_dict(), tmp_path / "pytorch_model.bin")
    return tmp_path, original


def test_a_pickled_encoder_of_reactions_is_run_on_reactions(reader_of_reactions):
    folder, original = reader_of_reactions
    opened = opened_in(folder)
    assert opened.why_no_run is None
    run, text = opened.run, shipped_text(folder)
    windows = text.windows(2, 64, 0)
    with torch.no_grad():
        np.testing.assert_allclose(
            run._model(torch.tensor(windows.ids)).logits, original(torch.tensor(windows.ids)).logits, atol=1e-5
        )
    assert [VOCABULARY[text.before[0]], VOCABULARY[text.after[0]], VOCABULARY[text.mask_id]] == [
        "[CLS]",
        "[SEP]",
        "[MASK]",
    ]
    assert opened.depends_on("run")["text"] == text.sha256


def test_reactions_are_cut_into_signs_without_a_rest(reader_of_reactions):
    folder, _ = reader_of_reactions
    assert set(VOCABULARY) >= OF_REACTIONS
    text, lines = shipped_text(folder), REACTIONS.read_text().split()
    ends = (*text.starts, len(text.ids))
    assert ["".join(VOCABULARY[i] for i in text.ids[begin:end]) for begin, end in pairwise(ends)] == lines
    assert 2 < entropy(np.bincount(text.ids)) < np.log(len(SIGNS))
