"""A checkpoint in a folder."""

import os
from pathlib import Path

from generators.base.errors import InputError
from generators.checkpoint.sources.files import Files, Origin


def in_folder(folder: Path, origin: Origin | None = None, stack: str | None = None) -> Files:
    """Return the files of the checkpoint in a folder."""

    def fetch(name: str) -> Path | None:
        path = folder / name
        try:
            return path if path.is_file() else None
        except OSError as error:  # a name that is too long, a folder that can't be entered
            raise InputError(f"{name} in the folder {folder.name} can't be read: {error.strerror}.") from error

    return Files(origin or Origin("folder", _as_text(folder.name)), fetch, stack=stack, folder=folder)


def _as_text(name: str) -> str:
    """Return a file name without what no text file can hold: bytes that aren't UTF-8."""
    return os.fsencode(name).decode("utf-8", "replace")
