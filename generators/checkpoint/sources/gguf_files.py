"""GGUF files: llama.cpp's format, through the reader of its `gguf` package; F32, F16, BF16 and Q8_0 are read."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy import ndarray as Array

from generators.base.errors import InputError
from generators.checkpoint.sources.formats import Format, Header, PlacedTensor, stored_rows
from generators.checkpoint.sources.layout import check_layout

OPEN_AT_ONCE = 2
MOST_ENTRIES = 2_000_000  # of all lists in a file's metadata; the reader takes each by itself
LONGEST_LIST = 1024  # of numbers in metadata; a tokenizer's are longer, and aren't read
BLOCK = 32  # numbers of Q8_0 that share a scale
Q8_0 = np.dtype([("scale", "<f2"), ("numbers", "i1", (BLOCK,))])
STORED: Mapping[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "Q8_0": Q8_0,
}
NO_READER = "is a GGUF file, and the package that reads them isn't installed: pip install 'helix-atlas[gguf]'."


@dataclass(frozen=True)
class Contents:
    """What a file says of its tensors and of the model."""

    tensors: Mapping[str, PlacedTensor]
    settings: Mapping[str, Any]


class Gguf(Format):
    """GGUF. Shapes are given as NumPy has them: the last axis is contiguous."""

    dtypes = tuple(STORED)

    def names(self, path: Path) -> list[str]:
        """Return the names of a file's tensors."""
        return list(_contents(path).tensors)

    def header(self, path: Path, name: str) -> Header:
        """Return the type and shape of a tensor."""
        return _contents(path).tensors[name].header

    def rows(self, path: Path, name: str, rows: Any) -> Array:
        """Return some rows of a tensor as they are stored: Q8_0 as blocks of a scale and 32 whole numbers."""
        tensor = _contents(path).tensors[name]
        dtype, shape = STORED[tensor.header.dtype], list(tensor.header.shape)
        if dtype is Q8_0:
            shape[-1] //= BLOCK
        return stored_rows(path, name, tensor.start, dtype, shape, rows)

    def numbers(self, header: Header, stored: Array) -> Array:
        """Return the numbers that stored rows mean."""
        if header.dtype != "Q8_0":
            return stored
        return stored["numbers"] * stored["scale"][..., None].astype(np.float32)

    def settings(self, path: Path) -> Mapping[str, Any]:
        """Return what a file says of its model: numbers, words, and short lists of them."""
        return _contents(path).settings


def _contents(path: Path) -> Contents:
    if find_spec("gguf") is None:
        raise InputError(f"{path.name} {NO_READER}")
    try:
        stat = path.stat()
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from error
    return _read(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=OPEN_AT_ONCE)
def _read(path: Path, changed: int, size: int) -> Contents:
    """Read what a file says as it is now: `changed` and `size` distinguish it from what it was before."""
    try:
        reader = _limited_reader()(path)
        settings = {name: field.contents() for name, field in reader.fields.items() if _is_short(field)}
        tensors = {
            tensor.name: PlacedTensor(
                Header(tensor.tensor_type.name, tuple(int(n) for n in reversed(tensor.shape))),
                int(tensor.data_offset),
            )
            for tensor in reader.tensors
        }
        spans = {name: (tensor.start, tensor.start + _bytes(tensor.header)) for name, tensor in tensors.items()}
        check_layout(spans, int(reader.data_offset), size, align=reader.alignment, gap=reader.alignment - 1)
    except Exception as error:  # the reader checks little: damage ends in whatever NumPy raises
        raise InputError(f"{path} isn't a whole GGUF file: {' '.join(str(error).split())[:200]}.") from error
    if reader.byte_order != "I":
        raise InputError(f"{path} is a GGUF file of the other byte order; convert the model again on this machine.")
    return Contents(tensors, settings)


def _bytes(header: Header) -> int:
    """Return how many bytes a tensor takes, in whole numbers without end: the reader's may overflow."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    block, size = GGML_QUANT_SIZES[GGMLQuantizationType[header.dtype]]
    return prod(header.shape) // block * size


@cache
def _limited_reader() -> Any:
    """Return the package's reader, but that it refuses lists that would take it minutes and gigabytes."""
    from gguf import GGUFReader, GGUFValueType

    class Limited(GGUFReader):  # type: ignore[misc]
        entries = 0

        def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
            if raw_type == GGUFValueType.ARRAY:
                self.entries += int(self._get(orig_offs + 4, np.uint64)[0])
                if self.entries > MOST_ENTRIES:
                    raise ValueError(f"its metadata has lists of {self.entries} entries")
            return super()._get_field_parts(orig_offs, raw_type)

    return Limited


def _is_short(field: Any) -> bool:
    return len(field.data) <= LONGEST_LIST
