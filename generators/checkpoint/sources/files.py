"""A checkpoint's files: its tensors by name, and its small text files."""

import hashlib
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.base import notices
from generators.base.errors import InputError
from generators.base.once import once
from generators.base.progress import Report, silent
from generators.checkpoint import single_files
from generators.checkpoint.config import CONFIG, PICKLED, WEIGHTS, parse_object
from generators.checkpoint.sources.ctranslate2_files import SPEC
from generators.checkpoint.sources.ctranslate2_models import of_ctranslate2
from generators.checkpoint.sources.dialects import AS_TRANSFORMERS, Dialect, Layout, without_wrappers
from generators.checkpoint.sources.finding import GGUF, SAFETENSORS, format_of, other_weights, with_its_shards
from generators.checkpoint.sources.formats import FLOATING, Contents, Format, Header, check_dtype
from generators.checkpoint.sources.gguf_models import ARCHITECTURE, of_gguf
from generators.checkpoint.sources.mistral import mistral
from generators.checkpoint.sources.nano import nanochat, nanogpt
from generators.checkpoint.sources.pickled import PICKLED_INDEX
from generators.checkpoint.sources.transformer_lens import is_of_transformer_lens, transformer_lens

SHARD_INDEX = "model.safetensors.index.json"
LARGEST_TEXT = 128 * 2**20  # bytes; the largest tokenizers of real models have a quarter of it
LARGEST_JSON, INDEX = 2**25, ".index.json"  # bytes of configs and indexes; the largest of real models have half
USUAL = (WEIGHTS, SHARD_INDEX, PICKLED, PICKLED_INDEX)  # what transformers reads, in this order
INDEX_OF = {WEIGHTS: SHARD_INDEX, PICKLED: PICKLED_INDEX}
CFGS = ("cfg.json", CONFIG)  # of TransformerLens
NUMBERS_AT_ONCE = 1 << 21  # of a tensor, read and widened together


@dataclass(frozen=True)
class Origin:
    """Where weights came from, for the record: what kind of place, which one, and the commit if there is one."""

    kind: str
    place: str
    revision: str | None = None
    commit: str | None = None


@dataclass(frozen=True)
class Files:
    """A checkpoint's files, each fetched when asked for. Tensors are handed out as arrays, other files as bytes.

    `fetch` returns None for a file that isn't there. `stack` names one half where a checkpoint holds two models, an
    encoder and a decoder or two towers. `folder` holds all files if they are on this machine, else it is None.
    `gated`: their owner grants access. `listed`: the names of all files, where they are known without asking. `file`:
    the one file of weights that was named, where not the folder was.
    """

    origin: Origin
    fetch: Callable[[str], Path | None]
    stack: str | None = field(default=None, kw_only=True)
    folder: Path | None = field(default=None, kw_only=True)
    gated: bool = field(default=False, kw_only=True)
    listed: frozenset[str] | None = field(default=None, kw_only=True)
    file: str | None = field(default=None, kw_only=True)

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name; where names are listed, without fetching it."""
        return self.fetch(name) is not None if self.listed is None else name in self.listed

    def names(self) -> list[str]:
        """Return the names of all tensors, without what wrappers put into them. Raises InputError: damage."""
        plain = self._stored_names
        return [*plain, *(alias for alias, name in self._aliases.items() if alias not in plain and name in plain)]

    def stored_name(self, name: str) -> str:
        """Return what the file itself calls a tensor. Raises KeyError: there is none of that name."""
        return self._stored_names[name if name in self._stored_names else self._aliases[name]]

    @once
    def _stored_names(self) -> Mapping[str, str]:
        place = f"The checkpoint {self.origin.place}"
        found = without_wrappers(list(self._file_of), place)
        said = "" if self.is_gguf else single_files.adapter_within(found, place)  # GGUF says it in its settings
        if said:
            raise InputError(said)
        return found

    @once
    def _aliases(self) -> Mapping[str, str]:
        """Further names of tensors, from the metadata of files: safetensors keeps one name of those that are tied."""
        files = self.weight_files()
        return self._contents(files[0]).aliases if len(files) == 1 else {}

    def header(self, name: str) -> Header:
        """Return dtype and shape of a tensor.

        Raises KeyError: there is none of that name. InputError: the file is damaged, or lacks what its index says it
        holds.
        """
        path, kind = self._opened(name)
        return kind.header(path, self.stored_name(name))

    def parts(self, name: str) -> Iterator[Array]:
        """Hand out a tensor as it is stored, from its first row to its last, a limited number of rows at a time.

        No file stays open between two parts, so that no page of it stays mapped.

        Raises KeyError, InputError: as for its header; its numbers are of a kind that is not read.
        """
        path, kind = self._opened(name)
        head = self.header(name)
        check_dtype(name, head.dtype, path.name, kind.dtypes)
        for rows, _ in rows_at_once(head.shape):
            yield kind.rows(path, self.stored_name(name), rows)

    def digest(self, name: str, widened: bool = False) -> str:
        """Return the SHA-256 of a tensor as it is stored; if `widened`, of its numbers in float64."""
        digest = hashlib.sha256()
        for part in self.parts(name):
            digest.update(part.astype(np.float64).tobytes() if widened else part.tobytes())
        return digest.hexdigest()

    def numbers(self, name: str, header: Header, stored: Array) -> Array:
        return stored if header.dtype in FLOATING else self._opened(name)[1].numbers(header, stored)

    def layout(self, name: str) -> Layout | None:
        return self.dialect.layout(name)

    @once
    def dialect(self) -> Dialect:
        """How the files name and lay out tensors. Raises InputError: damage, or settings that can't be read."""
        names, place = self.names(), f"The checkpoint {self.origin.place}"
        if is_of_transformer_lens(names):
            return transformer_lens(names, self._cfg(), place)
        said = self.settings()
        if SPEC in said:
            return of_ctranslate2(said, {name: self.header(name) for name in names}, place)
        if ARCHITECTURE in said:
            return of_gguf(said, {name: self.header(name) for name in names}, self._all_of, place)
        return (
            nanogpt(said, names, self._beside(), place)
            or mistral(names, self._said_in, place)
            or nanochat(names, self.header, self._said_in, Path(self._weights[0]).stem)
            or AS_TRANSFORMERS
        )

    def settings(self) -> Mapping[str, Any]:
        """Return what the one file of weights says besides its tensors. Raises InputError: as for its tensors."""
        if self.is_gguf:  # of several shards, the first says it
            return GGUF.settings(self.first_file)
        files = self.weight_files()
        if len(files) != 1 or files[0].endswith(".safetensors"):
            return {}
        return self._contents(files[0]).settings

    def _said_in(self, name: str) -> Mapping[str, Any]:
        return {} if self.folder is None else self._parsed(name) or {}

    def _parsed(self, name: str) -> dict[str, Any] | None:
        content = self.content(name)
        return None if content is None else parse_object(content, f"In the checkpoint {self.origin.place}, {name}")

    def _cfg(self) -> Mapping[str, Any]:
        for name in CFGS:
            found = self._parsed(name) or {}
            if "model_type" not in found and found.keys() & {"d_model", "normalization_type"}:
                return found
        return {}

    def _all_of(self, name: str) -> Array:
        header = self.header(name)
        return np.concatenate([np.atleast_1d(self.numbers(name, header, part)) for part in self.parts(name)])

    def as_transformers(self) -> Iterator[tuple[str, Array]]:
        """Yield tensors as transformers names and stores them, widened to float32."""
        plain, others = set(self._stored_names), self.dialect.software
        for name in self.names():
            there = self.dialect.in_transformers(name) if others else (name,)
            if there and (others or (name in plain and self.header(name).dtype in FLOATING)):
                layout, header = self.layout(name), self.header(name)
                tensor = self._all_of(name).astype(np.float32, copy=False).reshape(header.shape)
                tensor = tensor if layout is None else np.ascontiguousarray(layout.of(tensor))
                adds_one = self.dialect.adds_one and there[0].endswith("norm.weight")
                yield from zip(there, np.split(tensor - 1 if adds_one else tensor, len(there)), strict=True)

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
        check_size(path, LARGEST_JSON if name == CONFIG or name.endswith(INDEX) else LARGEST_TEXT)
        try:
            return path.read_bytes()
        except OSError as error:
            raise InputError(f"{path} can't be read: {error}.") from error

    def config(self) -> dict[str, Any]:
        """Return config.json, or what the weights say in its place. Raises InputError: neither says it."""
        said = self._parsed(CONFIG)
        usual = self.file is None and not self.is_gguf
        if said is not None and usual and ("model_type" in said or self.comes_whole):
            return said
        own = self.dialect.config if self._has_weights else None
        if own is not None:
            return dict(own)
        if said is None:
            lacking = CONFIG if self._has_weights else f"{CONFIG} and no weights"
            raise InputError(self.instead() or f"The checkpoint {self.origin.place} has no {lacking}.")
        return said

    def as_said(self, sentence: str) -> str:
        """Return a sentence about config.json that names the file of weights which says it instead, if one does."""
        own = self._has_weights and self.dialect.config is not None and self.config() == dict(self.dialect.config)
        return re.sub(rf"\b{CONFIG}", self._weights[0], sentence) if own else sentence

    @property
    def _has_weights(self) -> bool:
        """Whether there are files of weights, as far as is known before any comes from elsewhere."""
        return not self.comes_whole if self.folder is None else bool(self._weights)

    @property
    def opened_by_transformers(self) -> bool:
        """Whether transformers opens these weights as they are, from safetensors and by its own names."""
        other_file = self.folder is not None and self._weights[0] not in (WEIGHTS, SHARD_INDEX)
        wrapped = any(name != stored for name, stored in self._stored_names.items())
        return not (other_file or wrapped or self.dialect.software)

    @once
    def is_gguf(self) -> bool:
        """Whether the weights are GGUF files, which hold their own tokenizer. Raises InputError: as for names."""
        return self.folder is not None and bool(self._weights) and self._format(self._weights[0]) is GGUF

    @property
    def first_file(self) -> Path:
        """The file of weights, or the first of several. Raises InputError: as for the weights."""
        return self._path(self._weights[0])

    @once
    def _weights(self) -> list[str]:
        """The file that was named; the index or file that transformers would read; or any other files of weights."""
        if self.file is not None:
            return with_its_shards(self.folder, self.file)
        usual = [name for name in USUAL if self._has_weights_in(name)]
        found = usual[:1] or ([] if self.folder is None else other_weights(self.folder))
        place = f"The checkpoint {self.origin.place}"
        if found and (said := single_files.adapter_beside(self._beside(), self.content, place)):
            raise InputError(said)
        if INDEX_OF.get(found[0] if found else "") in usual:
            notices.say_once(
                f"The checkpoint {self.origin.place} holds {found[0]} and {INDEX_OF[found[0]]}: {found[0]} is read, "
                "as transformers does."
            )
        return found

    def _has_weights_in(self, name: str) -> bool:
        return self.fetch(name) is not None

    @once
    def _file_of(self) -> Mapping[str, str]:
        if not self._weights:
            raise InputError(self.instead() or f"The checkpoint {self.origin.place} has no {WEIGHTS}: copy it there.")
        index = self._weights[0]
        if index in (SHARD_INDEX, PICKLED_INDEX):
            return self._of_shards_here(self._weight_map(index))
        found = [(name, file) for file in self._weights for name in self._contents(file).tensors]
        named = dict(found)
        if twice := [f"{name} in {file} and in {named[name]}" for name, file in found if named[name] != file]:
            raise InputError(f"The checkpoint {self.origin.place} holds {twice[0]}, and no index: remove one.")
        return named

    def _weight_map(self, index: str) -> dict[str, str]:
        """Return which file holds each tensor, by an index. Raises InputError: it doesn't say, or names folders."""
        found: Any = (self._parsed(index) or {}).get("weight_map")
        files = found.values() if isinstance(found, dict) else [None]
        if not all(isinstance(file, str) and Path(file).name == file for file in files):
            place = f"In the checkpoint {self.origin.place}, {index}"
            raise InputError(f"{place} has no weight_map from tensor names to file names.")
        return found

    def _of_shards_here(self, named: Mapping[str, str]) -> Mapping[str, str]:
        """Return which file holds each tensor, for those shards that are here; a partial checkpoint is welcome."""
        files = sorted(set(named.values()))
        here = {file for file in files if self.folder is None or self.has(file)}
        if here and len(here) < len(files):
            notices.say_once(
                f"The folder {self.origin.place} holds {len(here)} of {len(files)} shards: only what is in them is "
                "measured."
            )
        return {name: file for name, file in named.items() if file in here} if here else named

    def _beside(self) -> list[str]:
        return list(self.listed or ()) if self.folder is None else [path.name for path in self.folder.iterdir()]

    def instead(self) -> str:
        """Return what is there instead of what can be read, as a sentence; empty if that isn't known."""
        if found := single_files.what_is_there(self._beside(), self.content, f"The folder {self.origin.place}"):
            return found
        return single_files.what_tensors_say(self.names()) if self._has_weights else ""

    def _opened(self, name: str) -> tuple[Path, Format]:
        """Return the file that holds a tensor and its format. Raises KeyError, InputError: as for its header."""
        file = self._file_of[self.stored_name(name)]
        return self._path(file), self._format(file)

    def _contents(self, file: str) -> Contents:
        return self._format(file).contents(self._path(file))

    def _format(self, file: str) -> Format:
        """Return the format of a file; what transformers would read as safetensors is read as that, or not at all."""
        return SAFETENSORS if self._weights[0] in (SHARD_INDEX, WEIGHTS) else format_of(self._path(file))

    def _path(self, name: str) -> Path:
        path = self.fetch(name)
        if path is None:
            raise InputError(f"The checkpoint {self.origin.place} has no {name}.")
        return path


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


def check_size(path: Path, most: int = LARGEST_TEXT) -> None:
    """Check a text file before it is read. Raises InputError: it is far larger than any, or can't be read."""
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path} can't be read: {error}.") from error
    size = found.st_size
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path} can't be read: it is a folder, a pipe or a device, not a file.")
    if size > most:
        raise InputError(
            f"{path} has {size / 2**20:.0f} MiB where a config or a tokenizer was expected; nothing beyond "
            f"{most / 2**20:.0f} MiB is read."
        )
