"""A checkpoint's files: its tensors by name, and its small text files."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from numpy import ndarray as Array

import generators.checkpoint.sources.pickled as pickled
from generators.base.errors import InputError
from generators.base.progress import Report, silent
from generators.checkpoint.config import CONFIG, parse_object
from generators.checkpoint.sources.network import Traffic

WEIGHTS = "model.safetensors"
SHARD_INDEX = "model.safetensors.index.json"
LARGEST_TEXT = 128 * 2**20  # bytes; the largest tokenizers of real models have a quarter of it
NUMBERS_AT_ONCE = 1 << 21  # of a tensor, read and widened together
FLOATING = ("F64", "F32", "F16", "BF16")


@dataclass(frozen=True)
class Origin:
    """Where weights came from, for the record: what kind of place, which one, and the commit if there is one."""

    kind: str
    place: str
    revision: str | None = None
    commit: str | None = None


@dataclass(frozen=True)
class Header:
    """What a file says of a tensor before it is read."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Files:
    """A checkpoint's files, each fetched when asked for. Tensors are handed out as arrays, other files as bytes.

    `fetch` returns None for a file that isn't there. `stack` names one half where a checkpoint holds two models, an
    encoder and a decoder or two towers. `folder` holds all files if they are on this machine, else it is None.
    `gated`: their owner grants access. `listed`: the names of all files, where they are known without asking.
    """

    origin: Origin
    fetch: Callable[[str], Path | None]
    stack: str | None = field(default=None, kw_only=True)
    traffic: Traffic | None = field(default=None, kw_only=True)
    folder: Path | None = field(default=None, kw_only=True)
    gated: bool = field(default=False, kw_only=True)
    listed: frozenset[str] | None = field(default=None, kw_only=True)

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name; where names are listed, without fetching it."""
        return self.fetch(name) is not None if self.listed is None else name in self.listed

    def names(self) -> list[str]:
        """Return the name of every tensor. Raises InputError: no weights, or a damaged file."""
        return list(self._file_of)

    def header(self, name: str) -> Header:
        """Return dtype and shape of a tensor.

        Raises KeyError: there is none of that name. InputError: the file is damaged, or lacks what its index says it
        holds.
        """
        path = self._path(self._file_of[name])
        if self._are_pickles:
            return Header(*pickled.header(path, name))
        with opened(path) as file:
            return _header(file, name, path.name)

    def parts(self, name: str) -> Iterator[Array]:
        """Hand out a tensor as it is stored, from its first row to its last, a limited number of rows at a time.

        No file stays open between two parts, so that no page of it stays mapped.

        Raises KeyError, InputError: as for its header; its numbers are of a kind that is not read.
        """
        path = self._path(self._file_of[name])
        head = self.header(name)
        check_dtype(name, head.dtype, path.name)
        for rows, _ in rows_at_once(head.shape):
            yield pickled.read(path, name, rows) if self._are_pickles else _rows(path, name, rows)

    def weight_files(self) -> list[str]:
        """Return the names of the files that hold tensors. Raises InputError: as for the tensors' names."""
        return sorted(set(self._file_of.values()))

    def prefetch(self, names: Iterable[str], report: Report = silent, *, whole: bool = False) -> None:
        """Get ready to read tensors, together where that is cheaper; nothing where they lie on this machine.

        `whole`: the files that hold them will be needed as they are, all of them.
        """

    def to_come(self, names: Iterable[str], *, whole: bool = False) -> int:
        """Return how many bytes `prefetch` would bring here: none where tensors lie on this machine."""
        return 0

    def no_room(self) -> str | None:
        """Return why whole files can't be stored here, as half a sentence; None where they are, or can be."""
        return None

    @property
    def comes_whole(self) -> bool:
        """Return whether nothing is known of tensors before their files have been downloaded whole."""
        return False

    def content(self, name: str) -> bytes | None:
        """Return a small file's bytes, None if it isn't there. Raises InputError: it can't be read."""
        path = self.fetch(name)
        if path is None:
            return None
        check_size(path)
        try:
            return path.read_bytes()
        except OSError as error:
            raise InputError(f"{path} can't be read: {error}.") from error

    def config(self) -> dict[str, Any]:
        """Return config.json. Raises InputError: there is none, or it is no JSON object."""
        content = self.content(CONFIG)
        if content is None:
            raise InputError(f"The checkpoint {self.origin.place} has no {CONFIG}.")
        return parse_object(content, f"In the checkpoint {self.origin.place}, {CONFIG}")

    @cached_property
    def _file_of(self) -> Mapping[str, str]:
        """Which file holds each tensor."""
        index = self.content(SHARD_INDEX)
        if index is not None:
            return weight_map(index, f"In the checkpoint {self.origin.place}, {SHARD_INDEX}")
        if self._are_pickles and (older := self._older_files()) is not None:
            return older
        with opened(self._path(WEIGHTS)) as file:
            return dict.fromkeys(file.keys(), WEIGHTS)

    @cached_property
    def _are_pickles(self) -> bool:
        """Whether there are older files only; an index of safetensors that names a pickle doesn't make it one."""
        return self.content(SHARD_INDEX) is None and self.fetch(WEIGHTS) is None

    def _older_files(self) -> Mapping[str, str] | None:
        """Return which file holds each tensor where they are pickles; None where there are none of those.

        Raises InputError: only PyTorch may open them, and it isn't here.
        """
        index = self.content(pickled.PICKLED_INDEX)
        path = None if index is not None else self.fetch(pickled.PICKLED)
        if index is None and path is None:
            return None
        if not pickled.can_be_read():
            raise InputError(
                f"The checkpoint {self.origin.place} has no {WEIGHTS}; its {pickled.PICKLED} is a pickle, which only "
                "PyTorch's weights-only reader may open, and PyTorch isn't installed here."
            )
        if path is not None:
            return dict.fromkeys(pickled.names(path), pickled.PICKLED)
        return weight_map(index or b"", f"In the checkpoint {self.origin.place}, {pickled.PICKLED_INDEX}")

    def _path(self, name: str) -> Path:
        path = self.fetch(name)
        if path is None:
            raise InputError(f"The checkpoint {self.origin.place} has no {name}.")
        return path


def _header(file: Any, name: str, place: str) -> Header:
    from safetensors import SafetensorError

    try:
        part = file.get_slice(name)
    except SafetensorError as error:
        raise InputError(f"{name} can't be read from {place}: {error}.") from error
    return Header(part.get_dtype(), tuple(part.get_shape()))


def _rows(path: Path, name: str, rows: Any) -> Array:
    from safetensors import SafetensorError

    with opened(path) as file:
        try:
            return file.get_tensor(name) if rows is ... else file.get_slice(name)[rows]
        except (SafetensorError, OSError) as error:
            raise InputError(f"{name} can't be read from {path}: {error}.") from error


def rows_at_once(shape: Sequence[int]) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Divide a tensor's rows into parts to be read in turn: each part's index and shape. A small one is one part."""
    if prod(shape) <= NUMBERS_AT_ONCE:
        yield ..., tuple(shape)
        return
    n, *row = shape
    step = max(1, NUMBERS_AT_ONCE // prod(row))
    for begin in range(0, n, step):
        end = min(begin + step, n)
        yield slice(begin, end), (end - begin, *row)


def check_size(path: Path) -> None:
    """Check the size of a text file before it is read.

    Raises:
        InputError: it is far larger than any such file, or it can't be read.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{path} can't be read: {error}.") from error
    if size > LARGEST_TEXT:
        raise InputError(
            f"{path} has {size / 2**20:.0f} MiB where a config or a tokenizer was expected; nothing beyond "
            f"{LARGEST_TEXT / 2**20:.0f} MiB is read."
        )


def weight_map(index: bytes, place: str) -> dict[str, str]:
    """Return which file holds each tensor, from the index of a sharded checkpoint.

    Raises InputError: it doesn't say, or names files outside the checkpoint.
    """
    found = parse_object(index, place).get("weight_map")
    if not isinstance(found, dict) or not all(
        isinstance(name, str) and Path(name).name == name for name in found.values()
    ):
        raise InputError(f"{place} has no weight_map from tensor names to file names.")
    return found


def check_dtype(name: str, dtype: str, file: str) -> None:
    """Refuse numbers that are not floating point. Raises InputError: they aren't floating."""
    if dtype not in FLOATING:
        raise InputError(f"{name} in {file} is {dtype}; the atlas reads {', '.join(FLOATING)}.")
    if dtype == "BF16":
        import ml_dtypes  # noqa: F401  (gives NumPy the type)


def opened(path: Path) -> Any:
    """Open a safetensors file. Raises InputError: it isn't one."""
    from safetensors import SafetensorError, safe_open

    try:
        path.open("rb").close()  # says why a file can't be read, where the library says that there is none
        return safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} isn't a whole safetensors file: {error}.") from error
