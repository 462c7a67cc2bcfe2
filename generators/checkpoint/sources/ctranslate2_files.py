"""CTranslate2's model.bin: a name and a shape before each tensor, then names that mean the same tensor."""

import struct
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

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


class CTranslate2(Format):
    """CTranslate2, version 6, in 16 or 32 bits."""

    def contents(self, path: Path) -> Contents:
        return _contents(path)


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
