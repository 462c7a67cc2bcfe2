import json

import numpy as np
import pytest

from generators.runner import CannotRunError, texts
from generators.runner.losses import masked_places
from generators.runner.texts import TokenizedText, digest_of_ids, read_language_reference, text_for
from models.training.corpus import read_library
from models.training.stdlib_gpt2.held_out import SHA256, held_out_tokens
from tests.conftest import ROOT
from tests.runner.models import KINDS, V, write_tokenizer

STDLIB_GPT2 = ROOT / "models" / "stdlib-gpt2"


def numbered(count, before=(), after=()):
    return TokenizedText("numbers", "", np.arange(count, dtype=np.int32), before, after)


def test_the_language_reference_is_the_one_that_is_stated(tmp_path, monkeypatch):
    assert len(read_language_reference().encode()) >= 200_000
    assert texts.LANGUAGE_REFERENCE_SHA256 in (texts.LANGUAGE_REFERENCE.parent / "README.md").read_text()
    (tmp_path / "changed.txt").write_text("another text")
    monkeypatch.setattr(texts, "LANGUAGE_REFERENCE", tmp_path / "changed.txt")
    with pytest.raises(CannotRunError, match="digest"):
        read_language_reference()


def test_the_held_out_tokens_are_those_whose_digest_is_stated():
    text = text_for(STDLIB_GPT2, 4096)
    assert (text.name, text.sha256, len(text.ids)) == ("held-out tokens", SHA256, 90_550)


def test_the_held_out_tokens_are_made_of_the_library():
    known = json.loads((STDLIB_GPT2 / "training.json").read_text())["corpus"]["sha256"]
    if read_library().sha256 != known:
        pytest.skip("this Python has another library")
    assert digest_of_ids(held_out_tokens()) == SHA256


def test_windows_share_nothing_and_have_what_the_tokenizer_puts_around_a_text():
    text = numbered(1000)
    drawn = text.windows(10, 64, seed=1)
    assert drawn.ids.shape == (10, 64)
    assert len(np.unique(drawn.ids)) == 640
    assert (np.diff(drawn.ids, axis=1) == 1).all()
    np.testing.assert_array_equal(text.windows(4, 64, seed=1).ids, drawn.ids[:4])
    assert (text.windows(10, 64, seed=2).ids != drawn.ids).any()
    assert len(text.windows(99, 64, seed=1).ids) == 1000 // 64
    drawn = numbered(1000, before=(2001,), after=(2002, 2003)).windows(5, 64, seed=1)
    assert drawn.ids.shape == (5, 64)
    assert drawn.inner == (1, 62)
    assert set(drawn.ids[:, 0]) == {2001}
    assert {tuple(row) for row in drawn.ids[:, -2:].tolist()} == {(2002, 2003)}
    with pytest.raises(CannotRunError, match="less than one window"):
        numbered(10).windows(1, 64, seed=0)


def test_a_window_lies_in_the_file_of_its_middle_or_in_a_block():
    text = TokenizedText("numbers", "", np.arange(1000, dtype=np.int32), starts=(0, 100, 500))
    drawn = text.windows(15, 64, seed=1)
    middles = drawn.ids[:, 32]
    np.testing.assert_array_equal(drawn.files, (middles >= 100).astype(int) + (middles >= 500))
    drawn = numbered(10_000).windows(200, 50, seed=1)
    np.testing.assert_array_equal(drawn.files, drawn.ids[:, 0] // (50 * texts.BLOCK))


def test_the_files_of_both_texts(tmp_path):
    """28 files of the library were held out; the documentation's reference has nine chapters."""
    held_out = text_for(STDLIB_GPT2, 4096)
    assert len(held_out.starts) == 28
    assert all(held_out.ids[start - 1] == 0 for start in held_out.starts[1:])
    write_tokenizer(tmp_path, KINDS["gpt2"])
    reference = read_language_reference()  # a token a character
    assert [reference[start : start + 3] for start in text_for(tmp_path, V).starts] == [
        f"{i}. " for i in range(1, 10)
    ]


def test_no_tokenizer_and_ids_beyond_the_vocabulary(tmp_path):
    with pytest.raises(CannotRunError, match="no tokenizer"):
        text_for(tmp_path, V)
    write_tokenizer(tmp_path, KINDS["gpt2"])
    with pytest.raises(CannotRunError, match="beyond the vocabulary of 20"):
        text_for(tmp_path, 20)


@pytest.mark.parametrize(("name", "before", "after"), [("gpt2", (), ()), ("bert", (1,), (2,))])
def test_in_the_words_of_the_models_own_tokenizer(tmp_path, name, before, after):
    write_tokenizer(tmp_path, KINDS[name])
    text = text_for(tmp_path, V)
    assert (text.before, text.after, text.mask_id) == (before, after, 3)
    assert len(text.ids) == len(read_language_reference())  # not cut off where the tokenizer's own limit is


@pytest.mark.parametrize("ids", [np.zeros((2, 2), np.uint16), np.zeros(3), np.array([{}])])
def test_damaged_held_out_tokens(tmp_path, ids):
    np.save(tmp_path / texts.HELD_OUT, ids, allow_pickle=True)
    with pytest.raises(CannotRunError, match="held_out_tokens"):
        text_for(tmp_path, V)


def test_masked_tokens():
    drawn = numbered(2000, before=(2001,), after=(2002,)).windows(6, 102, seed=1)
    masked = masked_places(drawn)
    assert masked.sum(axis=1).tolist() == [15] * 6
    assert not masked[:, [0, -1]].any()
    assert len({row.tobytes() for row in masked}) == 6
    np.testing.assert_array_equal(masked_places(drawn), masked)
