import io
import zipfile
from collections.abc import Mapping
from math import prod

import numpy as np
from numpy import ndarray as Array

LARGEST_UNPACKED = 2**29  # total bytes of arrays in a file


def to_npz(arrays: Mapping[str, Array]) -> bytes:
    """Return an .npz file of these arrays; the bytes don't depend on their order."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **{name: arrays[name] for name in sorted(arrays)})
    return buffer.getvalue()


def from_npz(data: bytes) -> dict[str, Array]:
    """Return the arrays in a file. Raises ValueError, or errors of NumPy and zipfile, if `to_npz` didn't write it."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = file.infolist()
        if sum(member.file_size for member in members) > LARGEST_UNPACKED:
            raise ValueError(f"unpacked they have more than {LARGEST_UNPACKED >> 20} MiB")
        return {member.filename.removesuffix(".npy"): _array(file, member) for member in members}


def _array(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    with file.open(member) as opened:
        version = np.lib.format.read_magic(opened)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(opened)
        if prod(shape) * max(1, dtype.itemsize) > member.file_size:
            raise ValueError(f"{member.filename} says that it has the shape {shape}, and is too short for that")
    with file.open(member) as opened:
        return np.asarray(np.lib.format.read_array(opened, allow_pickle=False))
