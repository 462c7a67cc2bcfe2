"""GGUF files: llama.cpp's format, through the reader of its `gguf` package, which also says what blocks mean."""

import struct
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.base.errors import InputError
from generators.checkpoint.sources.formats import Contents, Format, Header, check_layout, once_per_content

OPEN_AT_ONCE = 2
MOST_ENTRIES = 2_000_000  # of all lists in a file's metadata
MOST_KEYS = 10_000  # of a file's metadata; real files have some dozens
# Types whose numbers are stored in blocks, each with scales of its own; a block is never divided between two rows.
IN_BLOCKS = (
    *("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "TQ1_0", "TQ2_0"),
    *("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4"),
)


class Gguf(Format):
    """GGUF. Shapes are given as NumPy has them: the last axis is contiguous."""

    dtypes = ("F32", "F16", "BF16", *IN_BLOCKS)

    def contents(self, path: Path) -> Contents:
        return _contents(path)

    def rows(self, path: Path, name: str, rows: Any) -> Array:
        """Return some rows of a tensor as they are stored: bytes, where numbers are in blocks."""
        header = self.header(path, name)
        if header.dtype not in IN_BLOCKS:
            return super().rows(path, name, rows)
        if len(header.shape) < 2:
            raise InputError(
                f"{name} in {path.name} is one row of {header.dtype}; llama.cpp stores such rows as F32."
            )
        from gguf import GGMLQuantizationType
        from gguf.quants import quant_shape_to_byte_shape

        shape = quant_shape_to_byte_shape(header.shape, GGMLQuantizationType[header.dtype])
        return self.stored_rows(path, name, np.dtype(np.uint8), shape, rows)

    def numbers(self, header: Header, stored: Array) -> Array:
        if header.dtype not in IN_BLOCKS:
            return stored
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        return dequantize(stored, GGMLQuantizationType[header.dtype])


@once_per_content(OPEN_AT_ONCE)
def _contents(path: Path, size: int) -> Contents:
    try:
        reader = _limited_reader()(path)
        settings = {name: _said(field) for name, field in reader.fields.items()}
        tensors = {
            each.name: Header(each.tensor_type.name, tuple(each.shape.tolist()[::-1]), int(each.data_offset))
            for each in reader.tensors
        }
        spans = {name: (header.start, header.start + _bytes(header)) for name, header in tensors.items()}
        check_layout(spans, int(reader.data_offset), size, align=reader.alignment, gap=reader.alignment - 1)
    except Exception as error:  # the reader checks little: damage ends in whatever NumPy raises
        raise InputError(f"{path} isn't a whole GGUF file: {' '.join(str(error).split())[:200]}.") from error
    if reader.byte_order != "I":
        raise InputError(f"{path} is a GGUF file of the other byte order; convert the model again on this machine.")
    return Contents(tensors, settings=settings)


def _bytes(header: Header) -> int:
    """Return how many bytes a tensor takes, in whole numbers without end: the reader's may overflow."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    block, size = GGML_QUANT_SIZES[GGMLQuantizationType[header.dtype]]
    return prod(header.shape) // block * size


@cache
def _limited_reader() -> Any:
    """Return the package's reader, but that it takes a list at once: entry by entry is minutes and gigabytes."""
    from gguf import GGUFReader, GGUFValueType

    class Limited(GGUFReader):  # type: ignore[misc]
        entries = 0

        def _build_fields(self, offs: int, count: int) -> int:
            if count > MOST_KEYS:
                raise ValueError(f"its metadata has {count} keys")
            return int(super()._build_fields(offs, count))

        def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
            if raw_type != GGUFValueType.ARRAY or self.byte_order != "I":
                return super()._get_field_parts(orig_offs, raw_type)
            kind, count = struct.unpack_from("<IQ", self.data, orig_offs)
            self.entries += count
            if self.entries > MOST_ENTRIES:
                raise ValueError(f"its metadata has lists of {self.entries} entries")
            begin = orig_offs + struct.calcsize("<IQ")
            if kind == GGUFValueType.STRING:
                values, size = _strings(memoryview(self.data), begin, count)
            else:
                found = self._get(begin, self.gguf_scalar_to_np[GGUFValueType(kind)], count)
                values, size = found.tolist(), found.nbytes
            if len(values) < count:
                raise ValueError("a list of its metadata is cut off")
            return begin + size - orig_offs, [values], [0], [GGUFValueType.ARRAY, GGUFValueType(kind)]

    return Limited


def _strings(data: memoryview, begin: int, count: int) -> tuple[list[str], int]:
    """Return texts that follow one another, each behind its length in bytes, and how many bytes they take."""
    texts, at = [], begin
    for _ in range(count):
        (length,) = struct.unpack_from("<Q", data, at)
        texts.append(bytes(data[at + 8 : at + 8 + length]).decode("utf-8", "replace"))
        at += 8 + length
    if at > len(data):
        raise ValueError("a list of its metadata is cut off")
    return texts, at - begin


def _said(field: Any) -> Any:
    from gguf import GGUFValueType

    return field.parts[-1] if field.types[:1] == [GGUFValueType.ARRAY] else field.contents()
