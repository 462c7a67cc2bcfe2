"""Safetensors files: a header of names, types and shapes, then the tensors."""

from pathlib import Path
from typing import Any

from numpy import ndarray as Array

from generators.base.errors import InputError
from generators.checkpoint.sources.formats import Format, Header


class Safetensors(Format):
    """Safetensors, through the library of that name. No file stays open, so that no page of it stays mapped."""

    def names(self, path: Path) -> list[str]:
        """Return the names of a file's tensors."""
        with _opened(path) as file:
            return list(file.keys())

    def header(self, path: Path, name: str) -> Header:
        """Return the type and shape of a tensor."""
        from safetensors import SafetensorError

        with _opened(path) as file:
            try:
                part = file.get_slice(name)
            except SafetensorError as error:
                raise InputError(f"{name} can't be read from {path.name}: {error}.") from error
            return Header(part.get_dtype(), tuple(part.get_shape()))

    def rows(self, path: Path, name: str, rows: Any) -> Array:
        """Return some rows of a tensor."""
        from safetensors import SafetensorError

        with _opened(path) as file:
            try:
                return file.get_tensor(name) if rows is ... else file.get_slice(name)[rows]
            except (SafetensorError, OSError) as error:
                raise InputError(f"{name} can't be read from {path}: {error}.") from error


def _opened(path: Path) -> Any:
    from safetensors import SafetensorError, safe_open

    try:
        path.open("rb").close()  # says why a file can't be read, where the library says that there is none
        return safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} isn't a whole safetensors file: {error}.") from error
