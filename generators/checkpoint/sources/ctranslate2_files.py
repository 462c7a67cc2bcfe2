"""CTranslate2's model.bin: a name and a shape before each tensor, then names that mean the same tensor."""

import struct
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy import ndarray as Array

from generators.base.errors import InputError
from generators.checkpoint.sources import formats
from generators.checkpoint.sources.formats import Contents, Format, Header, once_per_content

VERSION = 6
OPEN_AT_ONCE = 2
MOST_TENSORS = 100_000
MOST_AXES = 8
SPEC, NUMBERS, ALIASES = "ctranslate2.spec", "ctranslate2.numbers", "ctranslate2.aliases"
TYPES = ("F32", "I8", "I16", "I32", "F16", "BF16")
STORED = {**formats.STORED, "I8": np.dtype("i1"), "I16": np.dtype("<i2"), "I32": np.dtype("<i4")}
SCALE = "_scale"  # behind the name of an 8-bit matrix: what its rows were multiplied by


class CTranslate2(Format):
    """CTranslate2, version 6. Matrices of 8 bits have a scale for each row."""

    dtypes = ("F32", "F16", "BF16", "I8")
    stored = STORED

    def contents(self, path: Path) -> Contents:
        return _contents(path)

    def rows(self, path: Path, name: str, rows: Any) -> Array:
        """Return some rows of a tensor as they are stored: of 8 bits, each with its scale."""
        header, stored = self.header(path, name), super().rows(path, name, rows)
        if header.dtype != "I8":
            return stored
        scale = self.contents(path).tensors.get(name + SCALE)
        if scale is None or len(header.shape) != 2 or scale != Header("F32", header.shape[:1]):
            raise InputError(
                f"{name} in {path.name} is of 8 bits and has no scale for each row; name a float16 copy."
            )
        both = np.empty(len(stored), [("scale", "<f4"), ("numbers", "i1", header.shape[1:])])
        both["numbers"] = stored
        both["scale"] = super().rows(path, name + SCALE, rows)
        return both

    def numbers(self, header: Header, stored: Array) -> Array:
        if header.dtype != "I8":
            return stored
        with np.errstate(divide="ignore", invalid="ignore"):  # a scale of 0: what comes of it is named with its place
            return np.asarray(stored["numbers"] / stored["scale"][:, None])


@once_per_content(OPEN_AT_ONCE)
def _contents(path: Path, size: int) -> Contents:
    try:
        with path.open("rb") as file:
            (version,) = _next(file, "<I")
            if version == VERSION:
                return _contents_of(file, size)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} isn't a whole model of CTranslate2: {error}.") from error
    raise InputError(
        f"{path} is of version {version} of CTranslate2's format, and the atlas reads version {VERSION}. Convert the "
        "original again with ct2-transformers-converter."
    )


def _contents_of(file: BinaryIO, size: int) -> Contents:
    spec, _ = _text(file), _next(file, "<I")
    tensors: dict[str, Header] = {}
    numbers: dict[str, float] = {}
    for _ in range(_count(file)):
        name, tensor = _text(file), _tensor(file, size)
        if name in tensors or name in numbers:
            raise ValueError(f"it holds {name} twice")
        dtype, shape = STORED[tensor.dtype], tensor.shape
        if shape:
            tensors[name] = tensor
            file.seek(prod(shape) * dtype.itemsize, 1)
        else:
            numbers[name] = float(np.frombuffer(file.read(dtype.itemsize), dtype)[0])
    aliases = {_text(file): _text(file) for _ in range(_count(file))}
    if wrong := [alias for alias, name in aliases.items() if alias in tensors or name not in tensors]:
        raise ValueError(f"{wrong[0]} stands for another tensor, and is there itself or the other isn't")
    tensors |= {alias: tensors[name] for alias, name in aliases.items()}
    return Contents(tensors, settings={SPEC: spec, NUMBERS: numbers, ALIASES: aliases})


def _tensor(file: BinaryIO, size: int) -> Header:
    (axes,) = _next(file, "B")
    if axes > MOST_AXES:
        raise ValueError(f"a tensor has {axes} axes")
    shape = _next(file, f"<{axes}I")
    kind, length = _next(file, "<BI")
    if kind >= len(TYPES):
        raise ValueError(f"a tensor is of the type {kind}")
    if prod(shape) * STORED[TYPES[kind]].itemsize != length or file.tell() + length > size:
        raise ValueError("a tensor's size isn't that of its shape, or it is cut off")
    return Header(TYPES[kind], shape, file.tell())


def _count(file: BinaryIO) -> int:
    (count,) = _next(file, "<I")
    if count > MOST_TENSORS:
        raise ValueError(f"it says that it holds {count} tensors")
    return int(count)


def _text(file: BinaryIO) -> str:
    (length,) = _next(file, "<H")
    return _bytes(file, length).rstrip(b"\0").decode("utf-8")


def _next(file: BinaryIO, form: str) -> tuple[Any, ...]:
    return struct.unpack(form, _bytes(file, struct.calcsize(form)))


def _bytes(file: BinaryIO, count: int) -> bytes:
    found = file.read(count)
    if len(found) < count:
        raise ValueError("it is cut off")
    return found
