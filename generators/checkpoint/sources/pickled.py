"""Older files: pytorch_model.bin, read by PyTorch's weights-only unpickler, which runs nothing, or not at all."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.base.errors import InputError

PICKLED = "pytorch_model.bin"
PICKLED_INDEX = "pytorch_model.bin.index.json"
OPEN_AT_ONCE = 2  # files, mapped into memory and not read
DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def can_be_read() -> bool:
    """Return whether PyTorch is here, without which no older file is opened."""
    return find_spec("torch") is not None


def names(path: Path) -> list[str]:
    """Return the names of a file's tensors. Raises InputError: it isn't a file of tensors alone."""
    return list(_opened(path))


def header(path: Path, name: str) -> tuple[str, tuple[int, ...]]:
    """Return dtype and shape of a tensor. Raises InputError: the file isn't one of tensors alone, or lacks it."""
    tensor = _tensor(path, name)
    dtype = str(tensor.dtype).removeprefix("torch.")
    return DTYPES.get(dtype, dtype), tuple(tensor.shape)


def read(path: Path, name: str, rows: Any = ...) -> Array:
    """Return a tensor as it is stored, or some of its rows. Raises InputError: as for its header."""
    import torch

    tensor = _tensor(path, name)[rows].contiguous()
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return np.array(tensor.view(torch.int16).numpy()).view(ml_dtypes.bfloat16)
    return np.array(tensor.numpy())


def _tensor(path: Path, name: str) -> Any:
    tensors = _opened(path)
    if name not in tensors:
        raise InputError(f"{name} isn't in {path.name}, which its index names.")
    return tensors[name]


def _opened(path: Path) -> Mapping[str, Any]:
    try:
        stat = path.stat()
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from error
    return _loaded(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=OPEN_AT_ONCE)
def _loaded(path: Path, changed: int, size: int) -> Mapping[str, Any]:
    """Open a file as it is now: `changed` and `size` distinguish it from what it was before."""
    import torch

    try:
        found = _mapped(path)
    except Exception as error:  # whatever a file that is none, or a hostile one, makes of the unpickler
        raise InputError(
            f"{path.name} is not opened: PyTorch's weights-only reader finds more in it than tensors, or damage."
        ) from error
    tensors = {name: tensor for name, tensor in found.items() if isinstance(tensor, torch.Tensor)}
    if not tensors:
        raise InputError(f"{path.name} holds no tensors by name.")
    return tensors


def _mapped(path: Path) -> dict[str, Any]:
    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError:  # files from before PyTorch 1.6 can't be mapped
        found = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(found, dict):
        raise ValueError("no names")
    return found
