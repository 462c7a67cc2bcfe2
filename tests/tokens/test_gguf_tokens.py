"""The tokens in a GGUF file, by llama.cpp's own rules."""

import numpy as np
import pytest

from generators.base import notices
from generators.base.errors import InputError
from generators.checkpoint.sources import in_folder
from generators.tokens.tokenizer_files import load_vocabulary
from tests.checkpoint import other_software as other

PREFIX = "tokenizer.ggml."
BYTES = {
    "model": "gpt2",
    "tokens": ["a", "b", "Ġ", "ab", "Ġab", "Ã©", "<|end|>", "<think>", "é"],
    "token_type": [1, 1, 1, 1, 1, 1, 3, 4, 4],
    "merges": ["a b", "Ġ ab"],
}
PIECES = {
    "model": "llama",
    "tokens": ["<unk>", "<s>", "<0x0A>", "▁the", "x", "  ", "<img>"],
    "scores": [0.0] * 7,
    "token_type": [2, 3, 6, 1, 1, 4, 4],
}


def read(folder, said, size=12):
    named = {PREFIX + key: value for key, value in said.items()}
    other.write_llama_gguf(folder / "model.gguf", **named)
    return load_vocabulary(in_folder(folder), size)


def test_byte_level_tokens_are_bytes_and_added_ones_are_literal(tmp_path):
    tokens = read(tmp_path, BYTES)
    texts = [text.decode("utf-8") for text in tokens.raw_bytes]
    assert texts == ["a", "b", " ", "ab", " ab", "é", "<|end|>", "<think>", "é", "", "", ""]
    assert np.flatnonzero(tokens.special).tolist() == [6, 9, 10, 11]
    assert tokens.merges.tolist() == [[0, 1, 3], [2, 3, 4]]
    assert tokens.groups[9] == "unassigned"


def test_pieces_mark_spaces_and_bytes(tmp_path):
    tokens = read(tmp_path, PIECES, 7)
    assert tokens.raw_bytes == (b"<unk>", b"<s>", b"\n", b" the", b"x", b"  ", b"<img>")
    assert np.flatnonzero(tokens.special).tolist() == [0, 1]
    assert (tokens.groups[2], len(tokens.merges)) == ("byte", 0)
    assert np.flatnonzero(tokens.marks_space).tolist() == [3, 5]


def test_other_tokenizers_have_no_names_and_that_is_said(tmp_path):
    said: list[str] = []
    notices.forget()
    with notices.heard_by(said.append):
        assert read(tmp_path, {**PIECES, "model": "rwkv"}) is None
        assert read(tmp_path, {}) is None
    assert [line for line in said if "has tokens of the kind 'rwkv': they have no names" in line] == said
    assert len(said) == 1


@pytest.mark.parametrize(
    "changed", [{"tokens": [1, 2]}, {"token_type": [1]}, {"token_type": ["a"] * 9}, {"merges": [1]}, {"tokens": "ab"}]
)
def test_lists_that_do_not_fit_together_are_refused(tmp_path, changed):
    with pytest.raises(InputError, match="its lists don't fit together"):
        read(tmp_path, {**BYTES, **changed})
