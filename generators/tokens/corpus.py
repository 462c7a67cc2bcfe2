"""A corpus to count: text files, read piece by piece from any position on.

No token spans two pieces. A piece is a line with its line end; a line longer than `LONGEST_PIECE` is cut, before a
space if it has one.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

from generators.base.errors import InputError

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
class TextCorpus:
    """Files and the tokenizer that they are read with; `size` is the number of tokens V that are counted."""

    files: Sequence[TextFile]
    tokenizer: Path
    size: int

    def fingerprint(self) -> str:
        tokenizer = hashlib.sha256(self.tokenizer.read_bytes()).hexdigest()
        parts = [LONGEST_PIECE, self.size, tokenizer, [file.identity for file in self.files]]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def n_bytes(self) -> int | None:
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size or 0 for size in sizes)


def text_file(path: Path) -> TextFile:
    """Return a text file (`.gz` too) that can be opened. Raises InputError: it can't, or there is none."""
    try:
        if not path.exists():
            raise InputError(f"There is no file {path}.")
        if not path.is_file():
            raise InputError(f"{path} is no text file" + ("; name the files in it." if path.is_dir() else "."))
        path.open("rb").close()
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from error
    return TextFile(path)


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
