"""Counting the tokens of a corpus: pieces of text -> chunks -> counts, resumable after each chunk.

The tokenizer encodes the pieces of a chunk on all cores, each by itself, so counts don't depend on the chunks.
"""

import glob
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from jaxtyping import Int
from numpy import ndarray as Array

import generators.base.progress as reporting
from generators.base import notices
from generators.base.errors import AtlasError, InputError, raise_unless_panic
from generators.base.files import read_limited, replacing, sweep
from generators.checkpoint.families import choose_family
from generators.checkpoint.reading import read_architecture
from generators.checkpoint.sources import Files
from generators.tokens.corpus import TextCorpus, TextFile
from generators.tokens.tokenizer_files import TOKENIZER, check_ids, reading

LARGEST_COUNTS = 2**28  # bytes
NO_UTF8 = "Part of the corpus is no UTF-8, and is counted as \ufffd. Convert it, as with iconv, and count again."
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Position:
    """Progress in a corpus: all files before `file`, and that one up to `offset`."""

    file: int = 0
    offset: int = 0


@dataclass(frozen=True)
class CountsSoFar:
    counts: Int[Array, " V"]
    position: Position
    n_bytes: int


Report = Callable[[CountsSoFar], None]


def count_corpus(
    corpus: TextCorpus, output: Path, report: Report = lambda _: None, chunk_bytes: int = CHUNK_BYTES
) -> Int[Array, " V"]:
    """Count how often each token occurs in a corpus and write that to `output`.

    The counts so far are written to `<output>.partial.npz` after every chunk. An interrupted run continues
    from there when it is started again, and gives the same counts.

    Counts are int64. `report` is called after every chunk.

    Raises InputError: the output can't be there, a file can't be read, or the partial counts are of something else.
    AtlasError: the disk is full.
    """
    if not output.parent.is_dir() or output.is_dir():
        why = "that is a folder" if output.is_dir() else f"there is no folder {output.parent}"
        raise InputError(f"The counts can't be written to {output}: {why}.")
    if output.is_symlink() or (output.exists() and not _holds_counts(output)):
        raise InputError(f"{output} is there and holds no counts; name another file with --output.")
    partial = output.with_name(f"{output.name}.partial.npz")
    fingerprint = corpus.fingerprint()
    so_far = _resumed(partial, fingerprint, corpus.size)
    report(so_far)
    for pieces, end in _chunks(corpus.files, so_far.position, chunk_bytes):
        counts = so_far.counts + count_pieces(str(corpus.tokenizer), corpus.size, pieces)
        so_far = CountsSoFar(counts, end, so_far.n_bytes + sum(map(len, pieces)))
        _save_so_far(partial, so_far, fingerprint)
        report(so_far)
    _write(output, lambda file: np.save(file, so_far.counts, allow_pickle=False))
    partial.unlink(missing_ok=True)
    return so_far.counts


def vocabulary_size(files: Files, family: str | None) -> int:
    """Return how many tokens a model embeds, by its config.json. Raises InputError: none, or it can't be read."""
    config = files.config()
    size = read_architecture(config, choose_family(config, family, files.stack)).vocab_size
    if size is None:
        raise InputError(f"The model {files.origin.place} has no tokens.")
    return size


def tokenizer_of(files: Files, size: int) -> Path:
    """Return the tokenizer.json of a model that embeds `size` tokens. Raises InputError if missing or damaged."""
    path = files.fetch(TOKENIZER)
    if path is None:
        raise InputError(f"The checkpoint {files.origin.place} has no {TOKENIZER}, which turns text into tokens.")
    check_ids(path, size)
    reading(lambda: _tokenizer(str(path)), [path], files)
    return path


def count_pieces(tokenizer: str, size: int, pieces: Sequence[bytes]) -> Int[Array, " V"]:
    """Count each of `size` tokens in pieces of UTF-8 text; invalid bytes are replaced."""
    try:
        texts = [piece.decode("utf-8") for piece in pieces]
    except UnicodeDecodeError:
        notices.say_once(NO_UTF8)
        texts = [piece.decode("utf-8", "replace") for piece in pieces]
    try:
        encodings = _tokenizer(tokenizer).encode_batch_fast(texts, add_special_tokens=False)
    except BaseException as error:  # for example, a WordLevel tokenizer without its unknown-word token
        raise_unless_panic(error)
        raise InputError(f"The tokenizer {tokenizer} can't turn the text into tokens: {error}.") from error
    ids = np.fromiter((i for encoding in encodings for i in encoding.ids), np.int64)
    return np.bincount(ids[ids < size], minlength=size)


def _chunks(files: Sequence[TextFile], start: Position, chunk_bytes: int) -> Iterator[tuple[list[bytes], Position]]:
    """Yield pieces of text, each time about as many bytes of them, and where they end."""
    pieces: list[bytes] = []
    length = 0
    end = start
    for number in range(start.file, len(files)):
        for piece, offset in files[number].pieces(start.offset if number == start.file else 0):
            pieces.append(piece)
            length += len(piece)
            end = Position(number, offset)
            if length >= chunk_bytes:
                yield pieces, end
                pieces, length = [], 0
    if pieces:
        yield pieces, end


@cache
def _tokenizer(path: str) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _resumed(partial: Path, fingerprint: str, size: int) -> CountsSoFar:
    if not partial.exists():
        return CountsSoFar(np.zeros(size, np.int64), Position(), 0)
    try:
        with np.load(BytesIO(read_limited(partial, LARGEST_COUNTS)), allow_pickle=False) as stored:
            fits = str(stored["fingerprint"]) == fingerprint and stored["counts"].shape == (size,)
            file, offset, n_bytes = stored["progress"].tolist()
            so_far = CountsSoFar(stored["counts"], Position(file, offset), n_bytes)
    except Exception as error:  # a damaged zip file, array or member
        raise InputError(f"{partial} can't be read ({error}); delete it to begin anew.") from error
    if not fits:
        raise InputError(
            f"{partial} holds partial counts of other files, of files that were changed since, or of another model; "
            "delete it to begin anew."
        )
    return so_far


def _save_so_far(partial: Path, so_far: CountsSoFar, fingerprint: str) -> None:
    content = {
        "counts": so_far.counts,
        "progress": np.array([so_far.position.file, so_far.position.offset, so_far.n_bytes], np.int64),
        "fingerprint": np.array(fingerprint),
    }
    _write(partial, lambda file: np.savez(file, allow_pickle=False, **content))


def _holds_counts(path: Path) -> bool:
    if path.is_file():  # no pipe
        with suppress(Exception):  # NumPy raises all kinds of errors for other files
            there = np.lib.format.open_memmap(path, mode="r")
            return there.dtype == np.int64 and there.ndim == 1
    return False


def _write(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file at once, and remove what a killed run left half written of it."""
    try:
        with replacing(path) as temporary, temporary.open("wb") as file:
            write(file)
        sweep(path.parent, glob.escape(path.name))
    except OSError as error:
        raise AtlasError(f"{path} can't be written: {error}.") from error


@contextmanager
def progress(corpus: TextCorpus) -> Iterator[Report]:
    shown: int | None = None  # None until the first call, which reports an earlier run's counts
    with (
        reporting.progress() as report,
        reporting.transfer(report, "counting", corpus.n_bytes(), time.monotonic) as count,
    ):

        def show(so_far: CountsSoFar) -> None:
            nonlocal shown
            if so_far.n_bytes and shown is None:
                report(f"going on after {reporting.in_bytes(so_far.n_bytes)}")
            count(so_far.n_bytes - (shown or 0))
            shown = so_far.n_bytes

        yield show
