"""A corpus to count: text files and datasets, read piece by piece from any position on.

No token spans two pieces. A piece of a text file is a line with its line end; a line longer than
`LONGEST_PIECE` is cut, before a space if it has one. A piece of a dataset is a row.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from generators.base.errors import InputError, first_line
from generators.checkpoint.registry import HUB_ID

LONGEST_PIECE = 1 << 18


@dataclass(frozen=True)
class TextFile:
    """A text file, compressed where its name ends in `.gz`; positions are bytes of text."""

    path: Path

    @property
    def size(self) -> int | None:
        return None if self._is_compressed() else self.path.stat().st_size

    @property
    def identity(self) -> str:
        stat = self.path.stat()
        return f"{self.path.resolve()} {stat.st_size} {stat.st_mtime_ns}"

    def pieces(self, start: int) -> Iterator[tuple[bytes, int]]:
        opened = gzip.open if self._is_compressed() else open
        try:
            with opened(self.path, "rb") as file:
                file.seek(start)
                for piece in _lines(file):
                    start += len(piece)
                    yield piece, start
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{self.path} can't be read: {error}.") from error

    def _is_compressed(self) -> bool:
        return self.path.suffix == ".gz"


@dataclass(frozen=True)
class HubDataset:
    name: str
    column: str
    identity: str
    rows: Any  # a datasets.IterableDataset
    size: int | None = None

    def pieces(self, start: int) -> Iterator[tuple[bytes, int]]:
        for number, row in enumerate(self.rows.skip(start), start=start + 1):
            yield str(row[self.column]).encode("utf-8", "replace"), number


TextSource = TextFile | HubDataset  # `pieces` from a position on, each with the position after it


@dataclass(frozen=True)
class TextCorpus:
    """Sources and the tokenizer that they are read with; `size` is the number of tokens V that are counted."""

    sources: Sequence[TextSource]
    tokenizer: Path
    size: int

    def fingerprint(self) -> str:
        tokenizer = hashlib.sha256(self.tokenizer.read_bytes()).hexdigest()
        parts = [LONGEST_PIECE, self.size, tokenizer, [source.identity for source in self.sources]]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def n_bytes(self) -> int | None:
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)


def open_sources(names: Sequence[str], *, offline: bool = False) -> list[TextSource]:
    """Return text files (`.gz` too), or Hugging Face datasets unless `offline`. Raises InputError: there is none."""
    return [_open_source(name, offline) for name in names]


def _open_source(name: str, offline: bool) -> TextSource:
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
    except Exception as error:  # the hub, the network and the data raise all kinds of errors
        why = first_line(error)
        raise InputError(f"There is no file {name}, and no dataset of that name can be read: {why}.") from error
    return HubDataset(name, _text_column(name, first), f"{name} {revision}", rows)


def _text_column(name: str, row: dict[str, Any]) -> str:
    texts = [column for column, value in row.items() if isinstance(value, str)]
    if "text" in texts:
        return "text"
    if len(texts) != 1:
        raise InputError(f"The dataset {name} has no column `text`, but {', '.join(texts) or 'none of text'}.")
    return texts[0]


def _lines(file: BufferedIOBase) -> Iterator[bytes]:
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
