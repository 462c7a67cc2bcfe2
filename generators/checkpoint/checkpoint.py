"""A checkpoint: tensors by role, read one at a time when asked for, each with its digest."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.architecture import Architecture
from generators.base.errors import InputError
from generators.checkpoint.families import (
    Family,
    Slot,
    choose_family,
    read_architecture,
    read_config,
)
from generators.checkpoint.sources import CONFIG, SHARD_INDEX, WEIGHTS, Files, Origin

FLOATING = ("F64", "F32", "F16", "BF16")


@dataclass(frozen=True)
class TensorRecord:
    """What is published of a tensor that was read: its name in the file, shape, dtype and SHA-256."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    sha256: str


class Checkpoint(Mapping[str, Array]):
    """The tensors of one model by role; a tensor is read from disk each time it is asked for.

    A partial checkpoint is normal: iterating yields only the roles whose tensors are there.
    """

    def __init__(self, files: Files, family: Family, architecture: Architecture) -> None:
        self.origin: Origin = files.origin
        self.family = family
        self.architecture = architecture
        self._files = files
        self._shard_of = _shard_index(files)
        self._digests: dict[str, TensorRecord] = {}
        self._last: tuple[str, Array] | None = None  # Q, K and V share one tensor: read it once
        self._slots = dict(self._present_slots())
        if not self._slots:
            raise InputError(
                f"{self._where()} has no tensor of the family {family.name!r}; it begins with "
                f"{', '.join(sorted(self._shard_of)[:3]) or 'none at all'}."
            )

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, role: object) -> bool:
        return role in self._slots

    def __getitem__(self, role: str) -> Float[Array, "..."]:
        """Read a role's tensor as float32 (float64 if stored so), stream side first. The caller must not write to it.

        Raises:
            KeyError: the checkpoint lacks it.
            InputError: the file is damaged, the shape is wrong, or the tensor holds NaN or infinity.
        """
        slot = self._slots[role]
        tensor = self._checked(role, slot)
        if slot.part is not None:
            tensor = np.split(tensor, slot.part[1], axis=-1)[slot.part[0]]
        return np.ascontiguousarray(tensor)

    def record(self, role: str) -> TensorRecord:
        """Return name, shape, dtype and SHA-256 (of the bytes in the file) of the tensor behind a role.

        Raises:
            KeyError, InputError: as for reading it.
        """
        slot = self._slots[role]
        self._checked(role, slot)
        return self._digests[slot.tensor]

    def layout(self, role: str) -> dict[str, Any]:
        """Return how a role is read from its tensor, as plain data: results depend on it, and not on its name.

        Raises:
            KeyError: the checkpoint lacks it.
        """
        layout = asdict(self._slots[role])
        del layout["tensor"]
        return layout

    def lacking(self, role: str) -> str:
        """Return what a partial checkpoint lacks for a role, by the name its family gives the tensor."""
        slot = dict(self.family.roles(self.architecture.n_layer)).get(role)
        return f"{slot.tensor} ({role})" if slot else role

    def _present_slots(self) -> Iterator[tuple[str, Slot]]:
        for role, slot in self.family.roles(self.architecture.n_layer):
            if role == "unembedding" and self.architecture.tied:
                continue  # some files hold the tied matrix a second time
            name = next((name for name in self.family.spellings(slot.tensor) if name in self._shard_of), None)
            if name is not None:
                yield role, replace(slot, tensor=name)

    def _read(self, name: str) -> Array:
        if self._last is not None and self._last[0] == name:
            return self._last[1]
        self._last = None
        stored, dtype = _read_tensor(_fetched(self._files, self._shard_of[name]), name)
        digest = hashlib.sha256(np.ascontiguousarray(stored).reshape(-1).view(np.uint8).data).hexdigest()
        self._digests[name] = TensorRecord(name, stored.shape, dtype, digest)
        tensor = stored if dtype == "F64" else stored.astype(np.float32, copy=False)
        if not np.isfinite(tensor).all():
            raise InputError(f"{name} in {self._where()} holds NaN or infinity.")
        self._last = (name, tensor)
        return tensor

    def _checked(self, role: str, slot: Slot) -> Array:
        """Return the whole tensor behind a role, stream side first, if it has the shape that the role asks for."""
        tensor = self._read(slot.tensor)
        if slot.transposed:
            tensor = tensor.T
        shape = tensor.shape
        parts = slot.part[1] if slot.part else 1
        sizes = self.architecture.sizes()
        wanted = [sizes.get(axis) for axis in slot.shape.split()]
        if wanted[-1] is not None:
            wanted[-1] *= parts
        if len(shape) != len(wanted) or any(w not in (None, s) for w, s in zip(wanted, shape, strict=True)):
            raise InputError(
                f"{slot.tensor} in {self._where()}, the {role}, has the shape {_times(shape)} "
                f"where config.json asks for {_times(wanted)}."
            )
        return tensor

    def _where(self) -> str:
        return f"the checkpoint {self.origin.place}"


def _times(sizes: Sequence[int | None]) -> str:
    return " x ".join("any" if size is None else str(size) for size in sizes) or "of a single number"


def open_checkpoint(files: Files, family: str | None = None) -> Checkpoint:
    """Open a checkpoint: read its config and the names of its tensors, no weights yet.

    Raises:
        InputError: no config, an unknown family, no weights, or a damaged file.
    """
    config_path = files.fetch(CONFIG)
    if config_path is None:
        raise InputError(f"The checkpoint {files.origin.place} has no {CONFIG}.")
    config = read_config(config_path)
    chosen = choose_family(config, family)
    return Checkpoint(files, chosen, read_architecture(config, chosen))


def _shard_index(files: Files) -> dict[str, str]:
    """Return which file holds each tensor."""
    index = files.fetch(SHARD_INDEX)
    if index is not None:
        weight_map = read_config(index).get("weight_map")
        if not isinstance(weight_map, dict) or not all(_is_file_name(name) for name in weight_map.values()):
            raise InputError(f"{index} has no weight_map from tensor names to file names.")
        return weight_map
    weights = _fetched(files, WEIGHTS)
    with _opened(weights) as file:
        return dict.fromkeys(file.keys(), WEIGHTS)


def _is_file_name(name: object) -> bool:
    return isinstance(name, str) and Path(name).name == name


def _fetched(files: Files, name: str) -> Path:
    path = files.fetch(name)
    if path is None:
        raise InputError(
            f"The checkpoint {files.origin.place} has no {name} (the atlas reads safetensors only, never pickle)."
        )
    return path


def _opened(path: Path) -> Any:
    from safetensors import SafetensorError, safe_open

    try:
        path.open("rb").close()  # says why a file can't be read, where the library says that there is none
        return safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} isn't a whole safetensors file: {error}.") from error


def _read_tensor(path: Path, name: str) -> tuple[Array, str]:
    """Read one tensor; the file is opened and closed around it so that no page of it stays mapped."""
    from safetensors import SafetensorError

    with _opened(path) as file:
        try:
            dtype = file.get_slice(name).get_dtype()
            if dtype not in FLOATING:
                raise InputError(f"{name} in {path} is {dtype}; the atlas reads {', '.join(FLOATING)}.")
            if dtype == "BF16":
                import ml_dtypes  # noqa: F401  (gives NumPy the type)
            return file.get_tensor(name), dtype
        except (SafetensorError, OSError) as error:
            raise InputError(f"{name} can't be read from {path}: {error}.") from error
