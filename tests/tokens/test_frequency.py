"""Where token frequencies come from: counts, word frequencies, the token index, in that order."""

import os
import re
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from wordfreq import get_frequency_dict

from generators.base.errors import InputError
from generators.checkpoint.sources import Files, in_folder
from generators.cli import BAD_INPUT
from generators.compute.results import Store
from generators.tokens.frequency import COUNTS, TokenFrequency, token_frequencies
from generators.tokens.readable import readable_form
from generators.tokens.tokenizer_files import load_vocabulary
from generators.tokens.vocabulary import Token, assemble
from tests.checkpoints import Sizes, write_checkpoint
from tests.tokens.test_vocabulary import MINILM_SIZE, in_package

WORDS = (b" the", b" The", b"the", b" magikarp", b" qqqzzzqqq", b" 2015", b" don't", b" \xe2", b" na\xc3\xafve", b" ")
WORD_VOCABULARY = assemble(
    {i: Token(t, readable_form(t), t.startswith(b" ")) for i, t in enumerate(WORDS)}
    | {len(WORDS): Token(b" of", "of", True, special=True)},
    len(WORDS) + 2,
)
SIZE = len(WORD_VOCABULARY.raw_bytes)


def counted(path: Path, counts: object) -> Path:
    np.save(path, np.asarray(counts))
    return path


def sources(found: tuple[TokenFrequency, ...]) -> list[str]:
    return [frequency.source for frequency in found]


def test_the_index_is_always_there_and_last_and_words_may_be_none(tmp_path):
    for setting in ("counts", "wordfreq", "index"):
        (only,) = token_frequencies(in_folder(tmp_path), setting, None, 7)
        assert (only.source, only.proxy, only.coverage) == ("index", True, 1.0)
        assert only.log_frequency.tolist() == [0, -1, -2, -3, -4, -5, -6]
        assert "proxy" in only.label
    empty = assemble({}, 3)
    words = token_frequencies(Files(in_folder(tmp_path).origin, lambda name: None), "wordfreq", empty, 3)[0]
    assert words.coverage == 0 and np.isnan(words.log_frequency).all()


def test_best_source_first(tmp_path):
    extra = counted(tmp_path / os.fsdecode(b"mine-\xff\x1b[31m.npy"), np.arange(SIZE))
    files = in_folder(tmp_path)
    assert sources(token_frequencies(files, "index", WORD_VOCABULARY, SIZE)) == ["index"]
    assert sources(token_frequencies(files, "wordfreq", WORD_VOCABULARY, SIZE)) == ["wordfreq", "index"]
    with_corpus = token_frequencies(files, "wordfreq", WORD_VOCABULARY, SIZE, extra)
    assert sources(with_corpus) == ["corpus", "wordfreq", "index"]
    counted(tmp_path / COUNTS, np.arange(SIZE) + 1)
    found = token_frequencies(files, "wordfreq", WORD_VOCABULARY, SIZE, extra)
    assert sources(found) == ["counts", "corpus", "wordfreq", "index"]
    assert [f.proxy for f in found] == [False, False, False, True]
    assert found[1].label == "token counts of a corpus (mine-\ufffd\ufffd[31m.npy)"
    assert len({f.label for f in found}) == 4


def test_only_counts_that_come_with_the_model_are_of_its_training_text(tmp_path):
    counts = [0, 1, 2, 10**9, 2**40 + 1]
    counted(tmp_path / COUNTS, counts)
    other = counted(tmp_path / "other.npy", counts)
    shipped, corpus, index = token_frequencies(in_folder(tmp_path), "counts", None, 5, other)
    np.testing.assert_allclose(shipped.log_frequency, np.log1p(counts))
    assert shipped.coverage == 1.0
    assert shipped.training_counts.tolist() == counts
    assert corpus.training_counts is index.training_counts is None


def test_only_words_have_word_frequencies(tmp_path):
    from wordfreq import word_frequency

    words, _ = token_frequencies(in_folder(tmp_path), "wordfreq", WORD_VOCABULARY, SIZE)
    expected = np.full(SIZE, np.nan)
    for i, word in ((0, "the"), (1, "the"), (3, "magikarp"), (8, "naïve")):
        expected[i] = np.log(word_frequency(word, "en"))
    np.testing.assert_allclose(words.log_frequency, expected, atol=0.01)  # the library rounds to three digits
    assert words.coverage == 4 / SIZE
    assert re.search(r"wordfreq \d", words.label)


@pytest.mark.parametrize(("english", "others", "chosen"), [(1000, 900, True), (1000, 1100, False), (900, 0, False)])
def test_a_vocabulary_is_taken_for_english_by_its_own_words(tmp_path, english, others, chosen):
    known = (word for word in get_frequency_dict("en") if word.isalpha() and len(word) > 1)
    words = [
        *islice(known, english),
        *(f"qzx{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{'q' * (i // 676)}" for i in range(others)),
    ]
    tokens = {i: Token(f" {word}".encode(), word, True) for i, word in enumerate([*words, "c", "n"])}
    vocabulary = assemble(tokens, len(tokens))
    found = sources(token_frequencies(in_folder(tmp_path), "index", vocabulary, len(tokens)))
    assert found == (["wordfreq", "index"] if chosen else ["index"])
    assert sources(token_frequencies(in_folder(tmp_path), "counts", vocabulary, len(tokens))) == ["index"]


def test_word_frequencies_of_minilm_are_those_of_wordfreq_itself(minilm):
    from wordfreq import word_frequency

    files = in_package(minilm)
    vocabulary = load_vocabulary(files, MINILM_SIZE)
    words, _ = token_frequencies(files, "wordfreq", vocabulary, MINILM_SIZE)
    assert words.coverage == pytest.approx(0.719, abs=0.002)
    known = np.isfinite(words.log_frequency)
    assert not any(vocabulary.readable[i].startswith("##") for i in np.flatnonzero(known))
    for i in np.flatnonzero(vocabulary.marks_space & ~vocabulary.special)[::7]:
        word = vocabulary.raw_bytes[i].decode()
        if word.isalpha():
            found = np.nan_to_num(np.exp(words.log_frequency[i]))
            assert found == pytest.approx(word_frequency(word, "en"), rel=0.006)


@pytest.mark.parametrize(
    "counts, why",
    [
        (np.zeros(3, np.int64), "all 0"),
        (np.ones(4, np.int64), "3 int64"),
        (np.ones((3, 1), np.int64), "3 x 1"),
        (np.int64(1), "single number"),
        (np.ones(3), "float64"),
        (np.ones(3, np.int32), "int32"),
        (np.ones(3, np.uint64), "uint64"),
        (np.array([1, -1, 1]), "negative"),
        (np.array([{}, 1, 2], object), "can't be read"),
    ],
)
def test_counts_that_are_none_are_refused(counts, why, tmp_path):
    counted(tmp_path / COUNTS, counts)
    with pytest.raises(InputError, match=why):
        token_frequencies(in_folder(tmp_path), "counts", None, 3)


@pytest.mark.parametrize("part", [b"", b"\x93NUMPY", b"PK\x03\x04", b"cnumpy\n", b"1 2 3\n", None])
def test_files_that_are_no_arrays_are_refused(part, tmp_path):
    path = counted(tmp_path / COUNTS, np.ones(3, np.int64))
    promising_more = path.read_bytes().replace(b"(3,)", b"(9999999999999,)")
    path.write_bytes(promising_more if part is None else part)
    with pytest.raises(InputError, match="can't be read"):
        token_frequencies(in_folder(tmp_path), "index", None, 3)
    path.unlink()
    with pytest.raises(InputError, match=r"mine\.npy"):
        token_frequencies(in_folder(tmp_path), "index", None, 3, tmp_path / "mine.npy")


def test_counts_that_the_user_names_decide_the_finding_and_its_key_alone(tmp_path, atlas):
    write_checkpoint(tmp_path / "model", sizes=Sizes(vocab_size=160))
    named = counted(tmp_path / "counts.npy", np.arange(160))
    found = []
    for counts in ((), ("--counts", named)):
        assert atlas("compute", tmp_path / "model", *counts, "--results", tmp_path / "results").code == 0
        found.append([Store(tmp_path / "results").finding("model", name) for name in ("frequency", "helix")])
    (by_index, before), (by_corpus, after) = found
    assert (by_index.metrics["source"], by_corpus.metrics["source"]) == ("index", "corpus")
    assert by_index.key != by_corpus.key
    assert before.key == after.key
    for models, counts in (([tmp_path / "model"], tmp_path / "no.npy"), ([], named)):  # absent, or of no one model
        assert atlas("compute", *models, "--counts", counts, "--results", tmp_path / "results").code == BAD_INPUT
