"""PyTorch's own files, read by its weights-only unpickler, which runs nothing, or not at all."""

import struct
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from pickletools import genops
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo, is_zipfile

import numpy as np
from numpy import ndarray as Array

from generators.base.errors import InputError
from generators.base.progress import in_bytes
from generators.checkpoint.sources.formats import DTYPES, Contents, Format, Header, check_layout, once_per_content

PICKLED_INDEX = "pytorch_model.bin.index.json"
OPEN_AT_ONCE = 2  # files, mapped into memory where that can be
LARGEST_PICKLE = 2**24  # bytes: names and shapes, of 100,000 tensors and more
LARGEST_INFLATED = 2**33  # bytes of compressed records, which can't be mapped
RESERVES = b"bytearray"  # a type that PyTorch makes of any size that a pickle names, and no tensor is made of
PICKLES = 5  # in files from before PyTorch 1.6, before the numbers
STATES = ("model", "state_dict", "model_state_dict", "module")  # where training scripts put the tensors
ONLY_PYTORCH = (
    "is a pickle, which only PyTorch's weights-only reader may open, and PyTorch isn't installed here: pip install "
    "'helix-atlas[run]'."
)


def can_be_read() -> bool:
    """Return whether PyTorch is here, without which no such file is opened."""
    return find_spec("torch") is not None


class Pickled(Format):
    """Files that `torch.save` wrote: tensors by name, or a training script's checkpoint that holds them."""

    def contents(self, path: Path) -> Contents:
        return _opened(path)

    def tensor(self, path: Path, name: str) -> Any:
        tensor = super().tensor(path, name)
        if (why := _no_numbers(tensor)) is not None:
            raise InputError(f"{name} in {path.name} {why}.")
        return tensor.detach()  # of a module's parameter, the numbers alone

    def header(self, path: Path, name: str) -> Header:
        tensor = self.tensor(path, name)
        dtype = str(tensor.dtype).removeprefix("torch.")
        return Header(DTYPES.get(dtype, dtype), tuple(tensor.shape))

    def rows(self, path: Path, name: str, rows: Any) -> Array:
        import torch

        tensor = self.tensor(path, name)[rows].resolve_neg().contiguous()
        if tensor.dtype is torch.bfloat16:
            import ml_dtypes

            return np.array(tensor.view(torch.int16).numpy()).view(ml_dtypes.bfloat16)
        return np.array(tensor.numpy())


def _no_numbers(tensor: Any) -> str | None:
    import torch

    if tensor.is_nested:
        return "is nested, rows of several lengths; the atlas reads tensors of one shape"
    if tensor.layout is not torch.strided:
        return "is sparse; the atlas reads dense tensors"
    if tensor.device.type == "meta":
        return "has a shape and no numbers: it is on PyTorch's meta device"
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        return "repeats its numbers: its shape has more than are stored. Save a copy of it (.contiguous())"
    return None


@once_per_content(OPEN_AT_ONCE)
def _opened(path: Path, size: int) -> Contents:
    if not can_be_read():
        raise InputError(f"{path.name} {ONLY_PYTORCH}")
    try:
        found = _unpickled(path, mapped=_can_be_mapped(path, size))
        states = {name: tensors for name in STATES if (tensors := _tensors(found.get(name)))}
        _check_same(path, states)
    except InputError:
        raise
    except Exception as error:  # whatever a file that is none, or a hostile one, makes of the unpickler
        raise InputError(
            f"{path.name} is not opened: PyTorch's weights-only reader finds more in it than tensors, or damage. "
            "Save the model's state_dict() alone: torch.save(model.state_dict(), ...)."
        ) from error
    held = next(iter(states.values()), _tensors(found))
    if not held:
        raise InputError(f"{path.name} holds no tensors by name.")
    return Contents(held, settings={str(name): value for name, value in found.items() if name not in states})


def _check_same(path: Path, states: Mapping[str, Mapping[str, Any]]) -> None:
    import torch

    for (one, a), (other, b) in pairwise(states.items()):
        if a.keys() != b.keys() or not all(torch.equal(a[name], b[name]) for name in a):
            raise InputError(f"{path.name} holds two models, as {one!r} and as {other!r}: save one of them alone.")


def _tensors(held: object) -> dict[str, Any]:
    import torch

    there = held.items() if isinstance(held, Mapping) else ()
    return {str(name): tensor for name, tensor in there if isinstance(tensor, torch.Tensor)}


def _unpickled(path: Path, *, mapped: bool) -> dict[str, Any]:
    import torch

    found = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    if not isinstance(found, dict):
        raise ValueError("no names")
    return found


def _can_be_mapped(path: Path, size: int) -> bool:
    """Return whether a file's numbers lie in it as they are: not before PyTorch 1.6, nor where they are compressed.

    Raises InputError: reading it would take more memory than tensors do.
    """
    if not is_zipfile(path):
        _check_plain(path)
        return False
    with ZipFile(path) as archive:
        records = archive.infolist()
        spans = {record.filename: _span(archive, record) for record in records}
        pickles = [record for record in records if record.filename.endswith(".pkl")]
        packed = [record for record in records if record.compress_type != ZIP_STORED]
        pickled, inflated = (sum(record.file_size for record in each) for each in (pickles, packed))
        if pickled > LARGEST_PICKLE or inflated > LARGEST_INFLATED:
            raise _too_large(path, pickled if pickled > LARGEST_PICKLE else inflated)
        if len(spans) < len(records) or any(RESERVES in archive.read(record) for record in pickles):
            raise ValueError("two records have one name, or one reserves memory")
    check_layout(spans, 0, size, gap=None)
    return not packed


def _span(archive: ZipFile, record: ZipInfo) -> tuple[int, int]:
    """Return where a record begins and ends; the length of what precedes its bytes is said there, and only there."""
    assert archive.fp is not None
    archive.fp.seek(record.header_offset)
    *_, name, extra = struct.unpack("<26sHH", header := archive.fp.read(30))
    return record.header_offset, record.header_offset + len(header) + name + extra + record.compress_size


def _check_plain(path: Path) -> None:
    """Look at the pickles of an older file without making anything of them. Raises InputError: they are too large."""
    with path.open("rb") as file:
        for _ in range(PICKLES):
            for _, argument, _ in genops(file):
                if isinstance(argument, str) and RESERVES.decode() in argument:
                    raise ValueError("it reserves memory")
                if file.tell() > LARGEST_PICKLE:
                    raise _too_large(path, file.tell())


def _too_large(path: Path, count: int) -> InputError:
    return InputError(
        f"{path.name} is not opened: unpacking it takes {in_bytes(count)} or more, which is more than tensors need. "
        "Save the model's state_dict() alone and uncompressed: torch.save(model.state_dict(), ...)."
    )
