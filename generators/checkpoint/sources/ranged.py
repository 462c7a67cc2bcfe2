"""Safetensors files on the hub, of which only the headers and the requested tensors are read."""

import json
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.base import notices
from generators.base.errors import InputError, WeightsUnavailableError
from generators.base.once import once
from generators.base.progress import Report, in_bytes, silent, transfer
from generators.checkpoint.config import PICKLED, WEIGHTS
from generators.checkpoint.sources import patience, pickled
from generators.checkpoint.sources.caches import hub_folder
from generators.checkpoint.sources.files import (
    SHARD_INDEX,
    Files,
    rows_at_once,
    weight_map,
)
from generators.checkpoint.sources.formats import Header, check_dtype
from generators.checkpoint.sources.network import NoRangesError, RemoteFile, Traffic
from generators.checkpoint.sources.tensor_cache import TensorCache

LENGTH = 8  # bytes before the header, which say how long it is
LONGEST_HEADER = 100_000_000  # bytes; the format allows no more
IN_FLIGHT = 4
SMALLEST_GAP = 1 << 10  # bytes between two tensors that are read through rather than left out by another request
GAP_SHARE = 0.01  # likewise, of what is read with it
LARGEST_READ = 1 << 28  # bytes in one request
MUCH = 10**9  # bytes to download that are announced, if the disk has room for them
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "bfloat16"}
N_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}  # of a number


Entry = tuple[str, list[int], int, int]  # dtype, shape, first byte, byte after the last


@dataclass(frozen=True)
class Place:
    """Where a tensor lies: its file, what names that file's content, its bytes in it, and what they are."""

    file: str
    content: str
    name: str
    start: int
    end: int
    header: Header


@dataclass(frozen=True)
class RangedFiles(Files):
    """The files of a repository at a commit, from which single tensors are read.

    Args:
        remote: gives a file of the repository, to be read by ranges.
        cache: what was read before.
        key: names the repository and commit.
        ranged: False where there are older files only, which are read whole.
        here: says whether a whole file is on this machine, so that nothing of it has to be fetched.
    """

    remote: Callable[[str, Traffic], RemoteFile] = field(kw_only=True)
    cache: TensorCache = field(kw_only=True)
    key: str = field(kw_only=True)
    ranged: bool = field(default=True, kw_only=True)
    here: Callable[[str], bool] = field(default=lambda file: False, kw_only=True)
    traffic: Traffic = field(default_factory=Traffic, kw_only=True)
    _headers: dict[str, dict[str, Any]] = field(default_factory=dict, kw_only=True)
    _files: dict[str, RemoteFile] = field(default_factory=dict, kw_only=True)
    _whole: set[str] = field(default_factory=set, kw_only=True)  # files that the server gives only whole

    def header(self, name: str) -> Header:
        """Return dtype and shape of a tensor.

        Raises KeyError: there is none of that name. InputError, WeightsUnavailableError: its file is damaged, or
        can't be read now.
        """
        place = self._place(name)
        return super().header(name) if place is None else place.header

    def parts(self, name: str) -> Iterator[Array]:
        """Hand out a tensor as it is stored, some rows at a time, from the cache or from the hub.

        Raises:
            KeyError, InputError, WeightsUnavailableError: as for its header.
        """
        place = self._place(name)
        if place is None:
            yield from self._whole_file(name)
            return
        check_dtype(name, place.header.dtype, place.file)
        dtype = np.dtype(DTYPES[place.header.dtype])
        self.traffic.was_needed(name, place.end - place.start)
        cached = self.cache.tensor(place.content, name)
        if cached is None:
            fetched = self._fetch([place])
            if fetched is None:
                yield from self._whole_file(name)
                return
            self.cache.prune()
            yield np.frombuffer(fetched[0], dtype).reshape(place.header.shape)
            return
        with cached:
            for _, shape in rows_at_once(place.header.shape):
                yield np.frombuffer(cached.read(prod(shape) * N_BYTES[place.header.dtype]), dtype).reshape(shape)

    def prefetch(self, names: Iterable[str], report: Report = silent, *, whole: bool = False) -> None:
        """Read tensors that are not cached yet, neighbors in one request, a few requests at a time.

        If they don't fit in the cache, nothing is read: the first would be gone before it is asked for.

        Raises:
            KeyError, InputError, WeightsUnavailableError: as for reading them.
        """
        places, missing = self._places(names)
        if whole and missing:
            return self._fetch_whole(report)
        for place in places:
            self.traffic.was_needed(place.name, place.end - place.start)
        groups = joined(missing)
        total = _length(groups)
        self._announce(total)
        if total == 0 or not self.cache.has_room(total):
            return None
        with (
            transfer(report, f"{self.origin.place}: reading from the hub", total) as came,
            self.traffic.watched(came),
            patience.threads(IN_FLIGHT) as pool,
        ):
            for _ in pool.map(self._get, groups):
                pass
        return self.cache.prune()

    def to_come(self, names: Iterable[str], *, whole: bool = False) -> int:
        """Return how many bytes `prefetch` would bring here, as far as headers say it.

        Raises:
            KeyError, InputError, WeightsUnavailableError: as for reading tensors.
        """
        if self.comes_whole:
            return sum(self._size(file) for file in self._older_names() if not self.here(file))
        _, missing = self._places(names)
        if whole:
            files = [file for file in self.weight_files() if not self.here(file)] if missing else []
            return sum(self._size(file) for file in files)
        return _length(joined(missing))

    @property
    def comes_whole(self) -> bool:
        """Return whether nothing is known of tensors before their files have been downloaded whole."""
        return not self.ranged and not all(map(self.here, self._older_names()))

    def _older_names(self) -> list[str]:
        index = self.content(pickled.PICKLED_INDEX)
        named = None if index is None else weight_map(index, f"In the checkpoint {self.origin.place}, its index")
        return [PICKLED] if named is None else sorted(set(named.values()))

    def _size(self, file: str) -> int:
        """Return the size of a whole file of weights, from its header or from the first byte of it."""
        header = self._header(file)
        if header is not None and header["size"]:
            return int(header["size"])
        remote = self._remote(file)
        if remote.size is None:
            remote.read(0, 1)
        return remote.size or 0

    def _places(self, names: Iterable[str]) -> tuple[list[Place], list[Place]]:
        """Return where tensors lie whose files are read by ranges, and those of them that aren't cached."""
        places = [place for name in dict.fromkeys(names) if (place := self._place(name)) is not None]
        return places, [p for p in places if not self.cache.has_tensor(p.content, p.name)]

    def _announce(self, total: int) -> None:
        """Say how much is on its way, where that is much."""
        if total >= MUCH:
            notices.say_once(f"{self.origin.place}: {in_bytes(total)} to download")

    def no_room(self) -> str | None:
        """Return why whole files can't be stored, as half a sentence; None where the disk has room for them.

        Raises InputError, WeightsUnavailableError: as for reading tensors.
        """
        total, folder = self.to_come(() if self.comes_whole else self.names(), whole=True), hub_folder()
        free = free_bytes(folder)
        if total <= free:
            return None
        return f"its files take {in_bytes(total)}, and the disk of {folder} has {in_bytes(free)} free."

    def _whole_file(self, name: str) -> Iterator[Array]:
        """Hand out a tensor of a file that is on disk, or is downloaded for it."""
        size = 0
        for part in super().parts(name):
            size += part.nbytes
            yield part
        self.traffic.was_needed(name, size)

    def _fetch_whole(self, report: Report) -> None:
        """Have the hub's client download every file of tensors, and read them there from now on."""
        self._announce(sum(self._size(file) for file in self.weight_files() if not self.here(file)))
        for file in self.weight_files():
            if not self.here(file):
                getting = f"{self.origin.place}: getting {file}"
                report(getting)
                with transfer(report, getting, None) as came, self.traffic.watched(came):
                    self.fetch(file)
            self._whole.add(file)

    @once
    def _file_of(self) -> Mapping[str, str]:
        index = self.content(SHARD_INDEX)
        if index is not None:
            return weight_map(index, f"In the checkpoint {self.origin.place}, {SHARD_INDEX}")
        if self.comes_whole:
            self._announce(self.to_come(()))
            if (lacking := self.no_room()) is not None:
                raise WeightsUnavailableError(f"{self.origin.place} can't be downloaded: {lacking}")
        header = self._header(WEIGHTS) if self.ranged else None
        if header is None:
            return super()._file_of
        return dict.fromkeys(header["tensors"], WEIGHTS)

    def _place(self, name: str) -> Place | None:
        """Return where a tensor lies, None if its file can only be fetched whole."""
        file = self._file_of[name]
        header = self._header(file)
        if header is None:
            return None
        if name not in header["tensors"]:
            raise InputError(f"{name} isn't in {file} of {self.origin.place}, which its index names.")
        dtype, shape, start, end = header["tensors"][name]
        if dtype in N_BYTES and end - start != prod(shape) * N_BYTES[dtype]:
            raise InputError(f"{name} in {file} has not the size that its shape asks for.")
        return Place(file, header["content"], name, start, end, Header(dtype, tuple(shape)))

    def _header(self, file: str) -> dict[str, Any] | None:
        if file in self._whole or not self.ranged:
            return None
        if file not in self._headers:
            if self.here(file):
                self._whole.add(file)
                return None
            note = self.cache.note("headers", self.key, file)
            if note is None:
                try:
                    note = self._fetch_header(file)
                except NoRangesError:
                    self._whole.add(file)
                    return None
                self.cache.store_note(note, "headers", self.key, file)
            self._headers[file] = note
        return self._headers[file]

    def _fetch_header(self, file: str) -> dict[str, Any]:
        remote = self._remote(file)
        first = remote.read(0, LENGTH)
        (length,) = struct.unpack("<Q", first)
        if length > LONGEST_HEADER:
            raise InputError(f"{file} of {self.origin.place} isn't a safetensors file: its header can't be so long.")
        header = remote.read(LENGTH, LENGTH + length)
        tensors = parsed_header(header, f"{file} of {self.origin.place}", remote.size)
        return {"content": remote.digest or f"{self.key}-{file}", "size": remote.size, "tensors": tensors}

    def _remote(self, file: str) -> RemoteFile:
        if file not in self._files:
            self._files[file] = self.remote(file, self.traffic)
        return self._files[file]

    def _get(self, places: list[Place]) -> None:
        """Read neighbors in one request, into the cache only: their bytes needn't wait in memory for the others'."""
        self._fetch(places)

    def _fetch(self, places: list[Place]) -> list[memoryview] | None:
        """Read neighbors in one request, cache each, and return them; None where the server has only whole files.

        Raises WeightsUnavailableError: as for reading any part of their file.
        """
        file, start = places[0].file, places[0].start
        try:
            data = memoryview(self._same(places[0]).read(start, places[-1].end))
        except NoRangesError:
            self._whole.add(file)
            return None
        parts = [data[place.start - start : place.end - start] for place in places]
        for place, part in zip(places, parts, strict=True):
            self.cache.store_tensor(place.content, place.name, part)
        return parts

    def _same(self, place: Place) -> RemoteFile:
        """Return a tensor's file; it must still have the content that its header was read from."""
        remote = self._remote(place.file)
        remote.size = remote.size or self._headers[place.file].get("size")
        if remote.digest is None and not place.content.startswith(self.key):
            remote.digest = place.content
        return remote


def parsed_header(header: bytes | bytearray, named: str, size: int | None) -> dict[str, Entry]:
    """Return where each tensor is, from the header of a safetensors file.

    Raises:
        InputError: it is none, or says what can't be.
    """
    begin = LENGTH + len(header)
    try:
        content = json.loads(header)
        placed = {name: _placed(entry, begin) for name, entry in content.items() if name != "__metadata__"}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{named} isn't a safetensors file: its header can't be read.") from error
    ends = [end for *_, end in placed.values()]
    if any(start > end or min(shape, default=0) < 0 for _, shape, start, end in placed.values()) or (
        size is not None and ends and max(ends) != size
    ):
        raise InputError(f"{named} isn't a whole safetensors file: its header and its size don't agree.")
    return placed


def _placed(entry: Any, begin: int) -> Entry:
    first, last = (int(offset) for offset in entry["data_offsets"])
    return str(entry["dtype"]), [int(n) for n in entry["shape"]], begin + first, begin + last


def _length(groups: Iterable[list[Place]]) -> int:
    return sum(group[-1].end - group[0].start for group in groups)


def free_bytes(folder: Path) -> int:
    """Return how many bytes there is room for where a folder is, or would be."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free


def joined(places: Iterable[Place]) -> list[list[Place]]:
    """Group tensors that lie so close in a file that one request reads them."""
    groups: list[list[Place]] = []
    for place in sorted(places, key=lambda p: (p.file, p.start)):
        last = groups[-1] if groups else None
        if last is not None and _close(last, place):
            last.append(place)
        else:
            groups.append([place])
    return groups


def _close(group: list[Place], place: Place) -> bool:
    first, last = group[0], group[-1]
    length = place.end - first.start
    gap = place.start - last.end
    return first.file == place.file and gap <= max(SMALLEST_GAP, GAP_SHARE * length) and length <= LARGEST_READ
