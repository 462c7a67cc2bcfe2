"""Counting the tokens of a corpus: pieces of text -> chunks -> counts, many at a time, resumable after each.

Text is encoded piece by piece, and no token spans two pieces. A piece of a text file is a line with its line end (of
a line longer than `LONGEST_PIECE`, as much as fits, cut before a space where there is one); a piece of a dataset is a
row. So the counts depend neither on how pieces are put into chunks nor on who counts them.
"""

import gzip
import hashlib
import json
import os
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from jaxtyping import Int
from numpy import ndarray as Array

from generators.base.errors import AtlasError, InputError
from generators.checkpoint.families import choose_family, read_architecture
from generators.checkpoint.registry import HUB_ID
from generators.checkpoint.sources import Files
from generators.tokens.tokenizer_files import TOKENIZER

CHUNK_BYTES = 1 << 20  # a worker then takes about 150 MB
LONGEST_PIECE = 1 << 18
CHUNKS_AHEAD = 2  # waiting per worker, so that none is idle
SECONDS_BETWEEN_LINES = 10.0
MEGABYTE = 1e6
GZIP = ".gz"


class Source(Protocol):
    """A part of a corpus."""

    @property
    def size(self) -> int | None:
        """Return how many bytes of text it is, None where that isn't known."""

    @property
    def identity(self) -> str:
        """Return what is no longer the same when the text has changed."""

    def pieces(self, start: int) -> Iterator[tuple[bytes, int]]:
        """Yield the pieces from position `start` on, each with the position after it."""


@dataclass(frozen=True)
class Position:
    """How far a corpus is counted: all sources before `source`, and that one up to `offset`."""

    source: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Chunk:
    """Pieces that one worker encodes, and the position after them."""

    pieces: list[bytes]
    end: Position


@dataclass(frozen=True)
class Tally:
    """The counts of a corpus up to a position, and how many bytes of text that was."""

    counts: Int[Array, " V"]
    position: Position
    n_bytes: int


@dataclass(frozen=True)
class Corpus:
    """Sources and the tokenizer that they are read with; `size` is the number of tokens V that are counted."""

    sources: Sequence[Source]
    tokenizer: Path
    size: int

    def fingerprint(self) -> str:
        """Return a digest of all that the counts depend on."""
        parts = [
            LONGEST_PIECE,
            self.size,
            hashlib.sha256(self.tokenizer.read_bytes()).hexdigest(),
            [source.identity for source in self.sources],
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def n_bytes(self) -> int | None:
        """Return how long the text is, None where that isn't known."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)


Report = Callable[[Tally], None]


def count_corpus(
    corpus: Corpus, output: Path, jobs: int, report: Report = lambda tally: None, chunk_bytes: int = CHUNK_BYTES
) -> Int[Array, " V"]:
    """Count how often each token occurs in a corpus and write that to `output`.

    What is done is kept in `<output>.partial.npz` after every chunk. A run that was ended at any moment goes on from
    there when it is started again, and gives the same counts.

    Args:
        corpus: what is counted.
        output: becomes an int64 array of `corpus.size` counts.
        jobs: the number of processes that encode.
        report: is told after every chunk.
        chunk_bytes: the text in a chunk is about as long.

    Raises:
        InputError: the output can't be there, a source can't be read, or the partial counts are of something else.
        AtlasError: a process died, or the disk is full.
    """
    if not output.parent.is_dir() or output.is_dir():
        raise InputError(f"The counts can't be written to {output}: {_why_not(output)}.")
    partial = output.with_name(f"{output.name}.partial.npz")
    fingerprint = corpus.fingerprint()
    tally = _resumed(partial, fingerprint, corpus.size)
    report(tally)
    with closing(_counted(corpus, tally.position, jobs, chunk_bytes)) as counted:
        for n_bytes, end, counts in counted:
            tally = Tally(tally.counts + counts, end, tally.n_bytes + n_bytes)
            _save_tally(partial, tally, fingerprint)
            report(tally)
    _write(output, lambda file: np.save(file, tally.counts, allow_pickle=False))
    partial.unlink(missing_ok=True)
    return tally.counts


def open_sources(names: Sequence[str], *, offline: bool = False) -> list[Source]:
    """Return what the user named: text files (`.gz` too), or Hugging Face datasets unless `offline`.

    Raises:
        InputError: there is no such file or dataset, or it may not be asked for.
    """
    return [_open_source(name, offline) for name in names]


def vocabulary_size(files: Files, family: str | None) -> int:
    """Return the number of tokens that a model has embeddings of, by its config.json.

    Raises:
        InputError: it has none, or it can't be used.
    """
    config = files.config()
    size = read_architecture(config, choose_family(config, family, files.stack)).vocab_size
    if size is None:
        raise InputError(f"The model {files.origin.place} has no tokens.")
    return size


def tokenizer_of(files: Files) -> Path:
    """Return a model's tokenizer.json.

    Raises:
        InputError: it has none, or it is damaged.
    """
    path = files.fetch(TOKENIZER)
    if path is None:
        raise InputError(f"The checkpoint {files.origin.place} has no {TOKENIZER}, which turns text into tokens.")
    try:
        _tokenizer(str(path))
    except Exception as error:  # the tokenizers library raises nothing more exact
        raise InputError(f"The {TOKENIZER} of {files.origin.place} can't be read: {error}.") from error
    return path


def count_pieces(tokenizer: str, size: int, pieces: Sequence[bytes]) -> Int[Array, " V"]:
    """Return how often each of `size` tokens occurs in pieces of UTF-8 text; bytes that aren't are replaced."""
    texts = [piece.decode("utf-8", "replace") for piece in pieces]
    encodings = _tokenizer(tokenizer).encode_batch_fast(texts, add_special_tokens=False)
    ids = np.fromiter((i for encoding in encodings for i in encoding.ids), np.int64)
    return np.bincount(ids[ids < size], minlength=size)


@dataclass(frozen=True)
class TextFile:
    """A text file, compressed where its name ends in `.gz`; positions are bytes of text."""

    path: Path

    @property
    def size(self) -> int | None:
        """Return how long the text is; not known of a compressed file."""
        return None if self._is_compressed() else self.path.stat().st_size

    @property
    def identity(self) -> str:
        """Return where the file is, how large, and when it was changed last."""
        stat = self.path.stat()
        return f"{self.path.resolve()} {stat.st_size} {stat.st_mtime_ns}"

    def pieces(self, start: int) -> Iterator[tuple[bytes, int]]:
        """Yield the lines from byte `start` on."""
        with self._opened() as file:
            file.seek(start)
            for piece in _lines(file):
                start += len(piece)
                yield piece, start

    def _is_compressed(self) -> bool:
        return self.path.suffix == GZIP

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        try:
            with gzip.open(self.path) if self._is_compressed() else self.path.open("rb") as file:
                yield file  # type: ignore[misc]
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{self.path} can't be read: {error}.") from error


@dataclass(frozen=True)
class HubDataset:
    """The rows of a dataset on the Hugging Face hub; positions are rows."""

    name: str
    column: str
    identity: str
    rows: Any  # a datasets.IterableDataset
    size: int | None = None

    def pieces(self, start: int) -> Iterator[tuple[bytes, int]]:
        """Yield the texts of the rows from row `start` on."""
        for number, row in enumerate(self.rows.skip(start), start=start + 1):
            yield str(row[self.column]).encode("utf-8", "replace"), number


def _open_source(name: str, offline: bool) -> Source:
    path = Path(name)
    try:
        if path.is_file():
            path.open("rb").close()
            return TextFile(path)
        if path.exists():
            raise InputError(f"{name} is no text file" + ("; name the files in it." if path.is_dir() else "."))
    except OSError as error:
        raise InputError(f"{name} can't be read: {error.strerror}.") from error
    if not HUB_ID.fullmatch(name.split(":")[0]):
        raise InputError(f"There is no file {name}.")
    if offline:
        raise InputError(f"There is no file {name}, and with --offline no dataset is asked for on the hub.")
    return _open_dataset(name)


def _open_dataset(name: str) -> HubDataset:
    """Open `OWNER/NAME`, `OWNER/NAME:CONFIG` or `OWNER/NAME:CONFIG:SPLIT` (`train` by default), row by row."""
    try:
        from datasets import load_dataset  # type: ignore[import-not-found,unused-ignore]
        from huggingface_hub import HfApi
    except ImportError:
        raise InputError(
            f"There is no file {name}. If it is the name of a Hugging Face dataset, install what reads it first: "
            "pip install datasets"
        ) from None
    dataset, config, split = [*name.split(":", 2), "", ""][:3]
    try:
        revision = HfApi().dataset_info(dataset).sha
        rows = load_dataset(dataset, config or None, split=split or "train", streaming=True, revision=revision)
        first = next(iter(rows))
    except Exception as error:  # whatever the hub, the network or the data raise
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"There is no file {name}, and no dataset of that name can be read: {why}") from error
    return HubDataset(name, _text_column(name, first), f"{name} {revision}", rows)


def _text_column(name: str, row: dict[str, Any]) -> str:
    texts = [column for column, value in row.items() if isinstance(value, str)]
    if "text" in texts:
        return "text"
    if len(texts) != 1:
        raise InputError(f"The dataset {name} has no column `text`, but {', '.join(texts) or 'none of text'}.")
    return texts[0]


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while True:
        line = rest + file.readline(LONGEST_PIECE - len(rest))
        end = len(line) if len(line) < LONGEST_PIECE or line.endswith(b"\n") else _cut(line)
        if not line:
            return
        yield line[:end]
        rest = line[end:]


def _cut(line: bytes) -> int:
    """Return where to cut what is too long: before its last space, or else before its last character."""
    end = line.rfind(b" ", 1)
    if end > 0:
        return end
    end = len(line) - 1
    while end > len(line) - 4 and 0x80 <= line[end] < 0xC0:  # within a character
        end -= 1
    return end


def _chunks(sources: Sequence[Source], start: Position, chunk_bytes: int) -> Iterator[Chunk]:
    pieces: list[bytes] = []
    length = 0
    end = start
    for number in range(start.source, len(sources)):
        for piece, offset in sources[number].pieces(start.offset if number == start.source else 0):
            pieces.append(piece)
            length += len(piece)
            end = Position(number, offset)
            if length >= chunk_bytes:
                yield Chunk(pieces, end)
                pieces, length = [], 0
    if pieces:
        yield Chunk(pieces, end)


def _counted(
    corpus: Corpus, start: Position, jobs: int, chunk_bytes: int
) -> Generator[tuple[int, Position, Int[Array, " V"]]]:
    """Yield length, end and counts of each chunk from `start` on, in order, counted by other processes."""
    waiting: deque[tuple[Chunk, Future[Array]]] = deque()
    chunks = _chunks(corpus.sources, start, chunk_bytes)
    with _workers(jobs) as workers:
        while True:
            while len(waiting) < CHUNKS_AHEAD * jobs and (chunk := next(chunks, None)):
                task = workers.submit(count_pieces, str(corpus.tokenizer), corpus.size, chunk.pieces)
                waiting.append((chunk, task))
            if not waiting:
                return
            chunk, task = waiting.popleft()
            yield sum(map(len, chunk.pieces)), chunk.end, task.result()


@contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    from multiprocessing import get_context

    workers = ProcessPoolExecutor(jobs, get_context("spawn"), _begin_worker)
    try:
        yield workers
    except BrokenProcessPool as error:
        raise AtlasError(
            "A process that counted was ended, perhaps for want of memory; run the same again, with fewer --jobs."
        ) from error
    finally:
        workers.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """Leave Ctrl-C to the main process, end with it however it ends, and keep to one thread."""
    import signal
    import threading
    from multiprocessing import parent_process

    def end_with(parent: Any) -> None:
        parent.join()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with, args=(parent_process(),), daemon=True).start()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


@cache
def _tokenizer(path: str) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _why_not(output: Path) -> str:
    return "that is a folder" if output.is_dir() else f"there is no folder {output.parent}"


def _resumed(partial: Path, fingerprint: str, size: int) -> Tally:
    """Return how far an earlier run came."""
    if not partial.exists():
        return Tally(np.zeros(size, np.int64), Position(), 0)
    try:
        with np.load(partial, allow_pickle=False) as stored:
            fits = str(stored["fingerprint"]) == fingerprint and stored["counts"].shape == (size,)
            source, offset, n_bytes = stored["progress"].tolist()
            tally = Tally(stored["counts"], Position(source, offset), n_bytes)
    except Exception as error:  # a zip, an array or a member that isn't as it was written
        raise InputError(f"{partial} can't be read ({error}); delete it to begin anew.") from error
    if not fits:
        raise InputError(
            f"{partial} holds partial counts of other files, of files that were changed since, or of another model; "
            "delete it to begin anew."
        )
    return tally


def _save_tally(partial: Path, tally: Tally, fingerprint: str) -> None:
    content = {
        "counts": tally.counts,
        "progress": np.array([tally.position.source, tally.position.offset, tally.n_bytes], np.int64),
        "fingerprint": np.array(fingerprint),
    }
    _write(partial, lambda file: np.savez(file, allow_pickle=False, **content))


def _write(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file so that whoever looks finds the old one or the new one, whole."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise AtlasError(f"{path} can't be written: {error}.") from error


@contextmanager
def progress(corpus: Corpus) -> Iterator[Report]:
    """Yield what shows how far counting is: a bar on a terminal, a line now and then elsewhere."""
    if sys.stderr.isatty():
        with _bar(corpus.n_bytes()) as report:
            yield report
        return
    yield _Lines(corpus.n_bytes()).report


@dataclass
class _Lines:
    """Says how far counting is: when it goes on from where it was, and then every so many seconds."""

    total: int | None
    last: float | None = None

    def report(self, tally: Tally) -> None:
        now = time.monotonic()
        if self.last is None:
            self.last = now
            if tally.n_bytes:
                self._say(f"going on after {tally.n_bytes / MEGABYTE:.1f} MB")
        elif now - self.last >= SECONDS_BETWEEN_LINES:
            self.last = now
            of = "" if self.total is None else f" of {self.total / MEGABYTE:.1f}"
            self._say(f"counted {tally.n_bytes / MEGABYTE:.1f}{of} MB")

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def _bar(total: int | None) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("counting"), BarColumn(), DownloadColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda tally: bar.update(task, completed=tally.n_bytes)
