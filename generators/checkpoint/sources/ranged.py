"""Safetensors files on the hub, of which only the headers and the requested tensors are read."""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.base import notices
from generators.base.errors import InputError
from generators.base.once import once
from generators.base.progress import Report, in_bytes, silent, transfer
from generators.checkpoint.config import PICKLED, WEIGHTS
from generators.checkpoint.sources import patience
from generators.checkpoint.sources.caches import hub_folder
from generators.checkpoint.sources.files import SHARD_INDEX, Files, rows_at_once
from generators.checkpoint.sources.formats import STORED, Header, check_dtype, check_layout
from generators.checkpoint.sources.pickled import PICKLED_INDEX
from generators.checkpoint.sources.repository import Came, Repository, ignored
from generators.checkpoint.sources.safetensors_files import LENGTH, METADATA, aliases_in
from generators.checkpoint.sources.tensor_cache import TensorCache, free_bytes

LONGEST_HEADER = 100_000_000  # bytes; the format allows no more
IN_FLIGHT = 4
GAP = 1 << 12  # bytes between two tensors that are read through rather than left out by another request
LARGEST_READ = 1 << 28  # bytes in one request

Entry = tuple[str, list[int], int, int]  # dtype, shape, first byte, byte after the last


@dataclass(frozen=True)
class Place:
    """Where a tensor is: its file, the digest of that file's content, and its bytes in it."""

    file: str
    content: str
    name: str
    start: int
    end: int
    header: Header


@dataclass(frozen=True)
class RangedFiles(Files):
    """The files of a repository, from which single tensors are read, through a cache.

    A file that is on this machine is read there. So are older files. Where a method raises InputError, it raises
    WeightsUnavailableError, too: the hub can't be read now.
    """

    repository: Repository = field(kw_only=True)
    cache: TensorCache = field(kw_only=True)
    _headers: dict[str, dict[str, Any] | None] = field(default_factory=dict, kw_only=True)  # None: read whole

    def header(self, name: str) -> Header:
        place = self._place(name)
        return super().header(name) if place is None else place.header

    def parts(self, name: str) -> Iterator[Array]:
        place = self._place(name)
        if place is None:
            yield from super().parts(name)
            return
        check_dtype(name, place.header.dtype, place.file)
        dtype, shape = STORED[place.header.dtype], place.header.shape
        cached = self.cache.tensor(place.content, name)
        if cached is None:
            (data,) = self._read([place])
            self.cache.prune()
            yield np.frombuffer(data, dtype).reshape(shape)
            return
        with cached:
            for _, rows in rows_at_once(shape):
                yield np.frombuffer(cached.read(prod(rows) * dtype.itemsize), dtype).reshape(rows)

    def prefetch(self, names: Iterable[str], report: Report = silent, *, whole: bool = False) -> None:
        """Read tensors that are not cached yet, neighbors in one request, a few requests at a time.

        If they don't fit in the cache, nothing is read: the first would be gone before it is asked for.
        """
        missing = self._missing(names)
        if whole and missing:
            return self._fetch_whole(report)
        groups = joined(missing)
        total = _length(groups)
        if total == 0 or not self.cache.has_room(total):
            return None
        with (
            transfer(report, f"{self.origin.place}: reading from the hub", total) as came,
            patience.threads(IN_FLIGHT) as pool,
        ):
            for _ in pool.map(lambda group: len(self._read(group, came)), groups):  # bytes needn't wait in memory
                pass
        return self.cache.prune()

    def to_come(self, names: Iterable[str], *, whole: bool = False) -> int:
        if self.comes_whole:
            return self._sizes(self._older_names())
        missing = self._missing(names)
        if whole:
            return self._sizes(self.weight_files()) if missing else 0
        return _length(joined(missing))

    @property
    def comes_whole(self) -> bool:
        return not self.repository.has_safetensors and not all(map(self.repository.here, self._older_names()))

    def _older_names(self) -> list[str]:
        if self.fetch(PICKLED_INDEX) is None:
            return [PICKLED]
        return sorted(set(self._weight_map(PICKLED_INDEX).values()))

    def _sizes(self, files: Iterable[str]) -> int:
        return sum(self._size(file) for file in files if self.repository.here(file) is None)

    def _size(self, file: str) -> int:
        header = self._header(file)
        size = header["size"] if header else None
        return int(size or self.repository.metadata(file).size or 0)

    def _missing(self, names: Iterable[str]) -> list[Place]:
        """Return where tensors are that are read by ranges and aren't cached."""
        places = (self._place(name) for name in dict.fromkeys(names))
        return [place for place in places if place and not self.cache.has_tensor(place.content, place.name)]

    def no_room(self) -> str | None:
        total, folder = self.to_come(self.names(), whole=True), hub_folder()
        free = free_bytes(folder)
        if total <= free:
            return None
        return f"its files take {in_bytes(total)}, and the disk of {folder} has {in_bytes(free)} free."

    def _fetch_whole(self, report: Report) -> None:
        """Have the hub's client download every file of tensors, and read them there from now on."""
        files = self.weight_files()
        with transfer(report, f"{self.origin.place}: downloading", self._sizes(files)) as came:
            for file in files:
                self.repository.fetch(file, came)
                self._headers[file] = None

    def _has_weights_in(self, name: str) -> bool:
        return name in self.listed if self.listed is not None else self.repository.here(name) is not None

    @once
    def _aliases(self) -> Mapping[str, str]:
        files = self.weight_files()
        header = self._header(files[0]) if len(files) == 1 else None
        if header is not None:
            return dict(header.get("aliases", {}))
        return super()._aliases

    @once
    def _file_of(self) -> Mapping[str, str]:
        if self._weights == [SHARD_INDEX]:
            return self._weight_map(SHARD_INDEX)
        if self.comes_whole:
            notices.say_once(f"{self.origin.place}: {in_bytes(self.to_come(()))} to download")
        header = self._header(WEIGHTS) if self.repository.has_safetensors else None
        return super()._file_of if header is None else dict.fromkeys(header["tensors"], WEIGHTS)

    def _place(self, name: str) -> Place | None:
        """Return where a tensor is, None if its file is read whole."""
        name = self.stored_name(name)
        file = self._file_of[name]
        header = self._header(file)
        if header is None:
            return None
        if name not in header["tensors"]:
            raise InputError(f"{name} isn't in {file} of {self.origin.place}, which its index names.")
        dtype, shape, start, end = header["tensors"][name]
        return Place(file, header["content"], name, start, end, Header(dtype, tuple(shape)))

    def _header(self, file: str) -> dict[str, Any] | None:
        """Return what a file's header says: its content's digest, its size, its tensors; None if it is read whole."""
        if file not in self._headers:
            is_whole = not file.endswith(".safetensors") or self.repository.here(file) is not None
            self._headers[file] = None if is_whole else self._noted_header(file)
        return self._headers[file]

    def _noted_header(self, file: str) -> dict[str, Any]:
        place = "headers", f"{self.repository.hub_id}@{self.repository.commit}", file
        note = self.cache.note(*place)
        if note is None:
            note = self._read_header(file)
            self.cache.store_note(note, *place)
        return note

    def _read_header(self, file: str) -> dict[str, Any]:
        repository, metadata = self.repository, self.repository.metadata(file)
        (length,) = struct.unpack("<Q", repository.read(file, 0, LENGTH))
        if length > LONGEST_HEADER:
            raise InputError(f"{file} of {self.origin.place} isn't a safetensors file: its header can't be so long.")
        header = repository.read(file, LENGTH, LENGTH + length)
        tensors = parsed_header(header, f"{file} of {self.origin.place}", metadata.size)
        aliases = aliases_in(json.loads(header).get(METADATA), tensors)
        content = metadata.etag or f"{repository.hub_id}@{repository.commit}-{file}"
        return {"content": content, "size": metadata.size, "tensors": tensors, "aliases": aliases}

    def _read(self, places: list[Place], came: Came = ignored) -> list[memoryview]:
        """Read neighbors in one request, cache each, and return them."""
        start = places[0].start
        data = memoryview(self.repository.read(places[0].file, start, places[-1].end, came))
        parts = [data[place.start - start : place.end - start] for place in places]
        for place, part in zip(places, parts, strict=True):
            self.cache.store_tensor(place.content, place.name, part)
        return parts


def parsed_header(header: bytes | bytearray, named: str, size: int | None) -> dict[str, Entry]:
    """Return where each tensor is, by a safetensors header. Raises InputError: it is none, or says what can't be."""
    begin = LENGTH + len(header)
    try:
        content = json.loads(header)
        placed = {name: _placed(entry, begin) for name, entry in content.items() if name != METADATA}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{named} isn't a safetensors file: its header can't be read.") from error
    last = max((end for *_, end in placed.values()), default=begin)
    try:
        check_layout({name: (start, end) for name, (*_, start, end) in placed.items()}, begin, size or last)
    except ValueError as error:
        raise InputError(f"{named} isn't a whole safetensors file: {error}.") from error
    if min((n for _, shape, *_ in placed.values() for n in shape), default=0) < 0 or (size and last != size):
        raise InputError(f"{named} isn't a whole safetensors file: its header and its size don't agree.")
    return placed


def _placed(entry: Any, begin: int) -> Entry:
    first, last = (int(offset) for offset in entry["data_offsets"])
    dtype, shape = str(entry["dtype"]), [int(n) for n in entry["shape"]]
    if dtype in STORED and last - first != prod(shape) * STORED[dtype].itemsize:
        raise ValueError("a tensor has not the size that its shape asks for")
    return dtype, shape, begin + first, begin + last


def _length(groups: Iterable[list[Place]]) -> int:
    return sum(group[-1].end - group[0].start for group in groups)


def joined(places: Iterable[Place]) -> list[list[Place]]:
    groups: list[list[Place]] = []
    for place in sorted(places, key=lambda p: (p.file, p.start)):
        first, last = (groups[-1][0], groups[-1][-1]) if groups else (place, place)
        is_near = first.file == place.file and place.start - last.end <= GAP
        if groups and is_near and place.end - first.start <= LARGEST_READ:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups
