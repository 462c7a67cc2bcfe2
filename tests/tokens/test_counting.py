"""Counts of a corpus: the same however it is cut, and whenever a run was ended."""

import gzip
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from generators.base import notices
from generators.base.errors import InputError
from generators.tokens import corpus as parts
from generators.tokens import counting
from generators.tokens.corpus import TextCorpus, TextFile
from generators.tokens.counting import CountsSoFar, count_corpus
from generators.tokens.frequency import read_counts
from tests.checkpoints import Sizes, write_checkpoint

VOCABULARY = 400
BEYOND = 7  # ids that the tokenizer has, but the model has no embedding of
SMALL_CHUNKS = 5_000


def some_text(n_lines: int, seed: int = 0) -> str:
    """Return lines of made-up words, spaces, line ends of all kinds, and characters that take several bytes."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice([*"etaoinshrdlu"], n)) for n in rng.integers(1, 9, 300)]
    words += ["é", "北京", "👩\u200d👧", "<s>"]
    lines = []
    for n in rng.integers(0, 14, n_lines):
        gaps = rng.choice([" ", "  ", "\t", ", "], n)
        line = "".join(w + g for w, g in zip(rng.choice(words, n), gaps, strict=True))
        lines.append(line + str(rng.choice(["\n", "\n\n", "\r\n", " \n"])))
    return "".join(lines)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model with a byte-level tokenizer that would also pad, cut and add special tokens if it were let."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY + BEYOND,
        special_tokens=["<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([some_text(2000, seed=9)], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A <s>", special_tokens=[("<s>", 0)])
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=16, pad_id=0, pad_token="<s>")
    folder = write_checkpoint(tmp_path_factory.mktemp("models") / "small", sizes=Sizes(vocab_size=VOCABULARY))
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return a plain file, an empty one, one that is compressed, and one that isn't all UTF-8."""
    folder = tmp_path_factory.mktemp("texts")
    plain, empty, packed, broken = (
        folder / name for name in ("plain.txt", "empty.txt", "packed.txt.gz", "broken.txt")
    )
    plain.write_bytes(some_text(900, 1).encode())
    empty.write_bytes(b"")
    packed.write_bytes(gzip.compress(some_text(900, 2).encode()))
    broken.write_bytes(b"caf\xe9 \xff\xfe\n\0\x80no end of line \xe5\x8c")
    return [plain, empty, packed, broken]


def corpus_of(model: Path, texts: list[Path], size: int = VOCABULARY) -> TextCorpus:
    return TextCorpus([TextFile(path) for path in texts], model / "tokenizer.json", size)


@pytest.fixture(scope="module")
def by_hand(model: Path, texts: list[Path]) -> list[int]:
    plain = Tokenizer.from_file(str(model / "tokenizer.json"))
    plain.no_truncation()
    plain.no_padding()
    found: Counter[int] = Counter()
    for path in texts:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for line in re.findall(rb"[^\n]*\n|[^\n]+", content):
            found.update(plain.encode(line.decode("utf-8", "replace"), add_special_tokens=False).ids)
    assert max(found) >= VOCABULARY  # some tokens are beyond the model's embeddings
    return [found[i] for i in range(VOCABULARY)]


def noting(partial: Path, noted: list[bytes]) -> Callable[[CountsSoFar], None]:
    return lambda so_far: noted.append(partial.read_bytes()) if so_far.n_bytes else None


@pytest.mark.parametrize("chunk_bytes", [20_000, 3_000, 1 << 20])
def test_counts_are_those_of_encoding_every_line(model, texts, by_hand, tmp_path, chunk_bytes):
    output = tmp_path / "counts.npy"
    reported: list[CountsSoFar] = []
    counts = count_corpus(corpus_of(model, texts), output, reported.append, chunk_bytes)
    assert counts.tolist() == by_hand
    stored = np.load(output)
    assert stored.dtype == np.int64 and stored.tolist() == by_hand
    assert [path.name for path in tmp_path.iterdir()] == ["counts.npy"]
    assert len(reported) > (5 if chunk_bytes < 5_000 else 1)
    made = sum(len(some_text(900, seed).encode()) for seed in (1, 2))
    assert reported[-1].n_bytes == made + texts[3].stat().st_size


@pytest.mark.parametrize("stopped_at", [0, 5, None])
def test_a_run_that_was_killed_goes_on_and_counts_the_same(model, texts, by_hand, tmp_path, stopped_at):
    """What it leaves is what is on the disk after a chunk: the counts so far, and a file that is half written."""
    output, corpus = tmp_path / "counts.npy", corpus_of(model, texts)
    partial = tmp_path / "counts.npy.partial.npz"
    stored: list[bytes] = []
    count_corpus(corpus, output, noting(partial, stored), SMALL_CHUNKS)
    output.unlink()
    if stopped_at != 0:
        partial.write_bytes(stored[-1 if stopped_at is None else stopped_at])
    (tmp_path / ".counts.npy.partial.npz.4711.tmp").write_bytes(b"half")
    (tmp_path / ".counts.npy.4711.tmp").write_bytes(b"half")
    reported: list[CountsSoFar] = []
    counts = count_corpus(corpus, output, reported.append, 3 * SMALL_CHUNKS)
    assert (reported[0].n_bytes > 0) == (stopped_at != 0)
    assert (len(reported) == 1) == (stopped_at is None), "a run killed before its very end only writes"
    assert counts.tolist() == np.load(output).tolist() == by_hand
    left = {".counts.npy.partial.npz.4711.tmp"} if stopped_at is None else set()  # nothing partial was written since
    assert {path.name for path in tmp_path.iterdir()} == {"counts.npy", *left}


def test_lines_of_any_length(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "LONGEST_PIECE", 64)
    spaced = " ".join("word" for _ in range(200)).encode()
    solid = ("北" * 100 + "x" * 70).encode()
    path = tmp_path / "long.txt"
    path.write_bytes(b"short\n" + spaced + b"\n" + solid + b"\n" + b" " * 130 + b"\x80" * 70)
    found = [*TextFile(path).pieces(0)]
    assert b"".join(piece for piece, _ in found) == path.read_bytes()
    assert all(len(piece) <= 64 for piece, _ in found)
    assert [piece for piece, _ in found][:3] == [b"short\n", spaced[:59], spaced[59:119]]
    for piece, _ in found:
        if b"\x80" not in piece:
            piece.decode()  # no character is cut
    for i, (_, end) in enumerate(found):
        assert [*TextFile(path).pieces(end)] == found[i + 1 :]


def test_counts_from_a_pipe_are_refused(tmp_path):
    os.mkfifo(tmp_path / "counts.npy")
    with pytest.raises(InputError, match="not a file"):
        read_counts(tmp_path / "counts.npy", VOCABULARY)


def test_partial_counts_of_something_else_are_refused(model, texts, tmp_path):
    output = tmp_path / "counts.npy"
    partial = tmp_path / "counts.npy.partial.npz"
    mine = tmp_path / "mine.txt"
    mine.write_text(some_text(50))
    stored: list[bytes] = []
    count_corpus(corpus_of(model, [mine]), output, noting(partial, stored))
    partial.write_bytes(stored[0])
    for other in corpus_of(model, texts), corpus_of(model, [mine, mine]), corpus_of(model, [mine], VOCABULARY - 1):
        with pytest.raises(InputError, match="delete it to begin anew"):
            count_corpus(other, output)
    assert partial.read_bytes() == stored[0]
    mine.write_text(some_text(50) + "more")
    with pytest.raises(InputError, match="changed since"):
        count_corpus(corpus_of(model, [mine]), output)
    partial.unlink()
    os.mkfifo(partial)
    with pytest.raises(InputError, match="can't be read"):
        count_corpus(corpus_of(model, [mine]), output)
    partial.unlink()
    for damaged in (b"", b"PK\x03\x04", stored[0][:-200], b"\x80\x04N."):
        partial.write_bytes(damaged)
        with pytest.raises(InputError, match="can't be read"):
            count_corpus(corpus_of(model, [mine]), output)


def test_the_command(model, texts, by_hand, tmp_path, atlas, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("models.yml").write_text("[]")
    monkeypatch.setenv("RAYON_NUM_THREADS", "2")
    run = atlas("count-tokens", model, *texts, "--jobs", 1)
    assert (run.code, run.err, os.environ["RAYON_NUM_THREADS"]) == (0, "", "1")
    assert np.load("token_counts.npy").tolist() == by_hand
    assert f"{sum(by_hand):,} tokens" in run.out
    Path("latin.txt").write_bytes("café\n".encode("latin-1"))
    notices.forget()
    assert "no UTF-8" in atlas("count-tokens", model, "latin.txt").err


def test_refusals_are_a_sentence(model, texts, tmp_path, atlas, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("models.yml").write_text("[]")
    bare = write_checkpoint(tmp_path / "bare")
    damaged = write_checkpoint(tmp_path / "damaged")
    (damaged / "tokenizer.json").write_text("{")
    (tmp_path / "torn.gz").write_bytes(gzip.compress(some_text(900).encode())[:-300])
    (tmp_path / "fake.gz").write_bytes(b"plain text")
    np.save("other.npy", np.ones(7))
    Path("link.npy").symlink_to("elsewhere.npy")
    for arguments, why in [
        ((bare, texts[0]), "no tokenizer.json"),
        ((damaged, texts[0]), "can't be read"),
        ((model, "missing.txt"), "no file missing.txt"),
        ((model, texts[0], "no/such/path/at all"), "no file"),
        ((model, tmp_path), "name the files in it"),
        ((model, os.devnull), "no text file"),
        ((model, "torn.gz"), "torn.gz can't be read"),
        ((model, "fake.gz"), "fake.gz can't be read"),
        ((model, texts[0], "-o", "absent/counts.npy"), "no folder absent"),
        ((model, texts[0], "-o", tmp_path), "is a folder"),
        ((model, texts[0], "-o", texts[0]), "holds no counts"),
        ((model, texts[0], "-o", os.devnull), "holds no counts"),
        ((model, texts[0], "-o", "other.npy"), "holds no counts"),
        ((model, texts[0], "-o", "link.npy"), "holds no counts"),
        (("no-such-model", texts[0]), "no-such-model"),
    ]:
        run = atlas("count-tokens", *arguments)
        assert run.code == 2, arguments
        *progress, sentence = run.err.splitlines()
        assert sentence.startswith("atlas: ") and why in sentence
        assert all(line.startswith("counting: ") for line in progress)
    assert not Path("token_counts.npy").exists()


def test_progress_in_lines(model, texts, monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with counting.progress(corpus_of(model, texts[:1])) as report:
        for seconds, n_bytes in [(0, 3e3), (5, 4e3), (11, 5e3), (12, 6e3), (22, 7e3)]:
            now[0] = seconds
            report(CountsSoFar(np.zeros(1, np.int64), counting.Position(), int(n_bytes)))
    total = f"{texts[0].stat().st_size / 1e3:.1f} kB"
    assert capsys.readouterr().err.splitlines() == [
        f"counting: {total}",
        "going on after 3.0 kB",
        f"counting: 5.0 kB of {total}, about 1 min left",
        f"counting: 7.0 kB of {total}, about 2 min left",
    ]


def test_a_tokenizer_without_its_token_for_unknown_words_is_a_sentence(tmp_path):
    path = tmp_path / "tokenizer.json"
    Tokenizer(models.WordLevel({"a": 0}, unk_token="[UNK]")).save(str(path))
    with pytest.raises(InputError, match="can't turn the text into tokens"):
        counting.count_pieces(str(path), 1, [b"b"])
