"""Formats of files with weights: what each must give, names first, then headers, then rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import ml_dtypes
import numpy as np
from numpy import ndarray as Array

from generators.base.errors import InputError

T = TypeVar("T")
Span = tuple[int, int]  # first byte, and the one after the last
STORED: Mapping[str, np.dtype[Any]] = {  # by their names in safetensors
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}
FLOATING = tuple(STORED)
DTYPES = {dtype.name: name for name, dtype in STORED.items()}


@dataclass(frozen=True)
class Header:
    dtype: str
    shape: tuple[int, ...]
    start: int = field(default=0, compare=False)  # byte of the file


@dataclass(frozen=True)
class Contents:
    """What a file says: its tensors, further names of them (further -> stored), and what it holds besides."""

    tensors: Mapping[str, Any]  # headers; of PyTorch's files, the tensors themselves
    aliases: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


class Format(ABC):
    """How the files of one format are read: names first, then headers, then rows. Nothing is read whole.

    Every method raises InputError where the file is damaged or isn't of this format.
    """

    dtypes: tuple[str, ...] = FLOATING  # that it reads

    @abstractmethod
    def contents(self, path: Path) -> Contents: ...

    def tensor(self, path: Path, name: str) -> Any:
        tensors = self.contents(path).tensors
        if name not in tensors:
            raise InputError(f"{name} isn't in {path.name}, which its index names.")
        return tensors[name]

    def settings(self, path: Path) -> Mapping[str, Any]:
        return self.contents(path).settings

    def header(self, path: Path, name: str) -> Header:
        return self.tensor(path, name)

    def rows(self, path: Path, name: str, rows: Any) -> Array:
        """Return some rows of a tensor as they are stored: their bytes are what the tensor's digest is made of."""
        header = self.header(path, name)
        return self.stored_rows(path, name, STORED[header.dtype], header.shape, rows)

    def stored_rows(
        self, path: Path, name: str, dtype: np.dtype[Any], shape: Sequence[int], rows: slice | Any
    ) -> Array:
        """Return some rows (`...`: all) of a tensor of that type and shape. Raises InputError: it is cut off."""
        n, *row = shape or (1,)
        first, last = (0, n) if rows is ... else (rows.start, rows.stop)
        count, begin = prod(row), self.header(path, name).start
        try:
            stored = np.fromfile(path, dtype, (last - first) * count, offset=begin + first * count * dtype.itemsize)
            return stored.reshape(last - first, *row) if shape else stored.reshape(())
        except (OSError, ValueError) as error:
            raise InputError(f"{name} can't be read from {path}: it is cut off.") from error

    def numbers(self, header: Header, stored: Array) -> Array:
        """Return the numbers that stored rows mean."""
        return stored


def once_per_content(at_once: int) -> Callable[[Callable[[Path, int], T]], Callable[[Path], T]]:
    """Decorate what reads a file of a size: `at_once` files are remembered, each until it has changed."""

    def decorate(read: Callable[[Path, int], T]) -> Callable[[Path], T]:
        remembered = lru_cache(maxsize=at_once)(lambda path, changed, size: read(path, size))

        @wraps(read)
        def as_it_is(path: Path) -> T:
            try:
                stat = path.stat()
            except OSError as error:
                raise InputError(f"{path} can't be read: {error.strerror}.") from error
            return remembered(path, stat.st_mtime_ns, stat.st_size)

        return as_it_is

    return decorate


def check_dtype(name: str, dtype: str, file: str, known: tuple[str, ...] = FLOATING) -> None:
    """Refuse numbers that are not floating point. Raises InputError: they aren't floating."""
    if dtype not in known:
        raise InputError(f"{name} in {file} is {dtype}; the atlas reads {', '.join(known)}.")


def check_layout(spans: Mapping[str, Span], begin: int, size: int, align: int = 1, gap: int | None = 0) -> None:
    """Check where a file says that its tensors are.

    The data begin at `begin`, after all headers. The first byte of each, counted from there, is a multiple of
    `align`; at most `gap` bytes lie between two (None: any number).

    Raises ValueError: they overlap, lie in the header or beyond the end, or leave bytes that belong to none.
    """
    before, end = "the header", begin
    for name, (first, last) in sorted(spans.items(), key=lambda item: item[1]):
        if last < first or last > size:
            raise ValueError(f"it is cut off: {name} ends at byte {last} of {size}")
        if first < end:
            raise ValueError(f"{name} begins at byte {first}, inside {before}, which ends at {end}")
        if (first - begin) % align:
            raise ValueError(f"{name} begins at byte {first}, which is no multiple of {align} after the header")
        if gap is not None and first - end > gap:
            raise ValueError(f"{first - end} bytes before {name} belong to no tensor")
        before, end = name, last
