"""What was read from the hub, kept on this machine: tensors and headers by the file they are of, pruned by size."""

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO

from generators.base.files import replace_file

Bytes = bytes | bytearray | memoryview
GIGABYTE = 10**9
MOST_KEPT_GB = 20.0
FOLDER_VARIABLE = "ATLAS_CACHE"
SIZE_VARIABLE = "ATLAS_CACHE_GB"


def default_folder() -> Path:
    """Return where what was read is kept: the folder in ATLAS_CACHE, or one in the user's cache."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else Path.home() / ".cache" / "helix-atlas"


def largest() -> int:
    """Return how many bytes may be kept (ATLAS_CACHE_GB)."""
    try:
        return int(float(os.environ.get(SIZE_VARIABLE, MOST_KEPT_GB)) * GIGABYTE)
    except ValueError:
        return int(MOST_KEPT_GB * GIGABYTE)


@dataclass(frozen=True)
class Kept:
    """A folder of tensors and headers. A tensor's file is named by its SHA-256, which is checked when it is read."""

    folder: Path

    def tensor(self, file: str, name: str) -> BinaryIO | None:
        """Open a tensor's bytes, if they are kept and whole. `file` names the content of the file it came from."""
        for path in self._tensors(file, name).glob("*"):
            try:
                kept = path.open("rb")
            except OSError:
                continue
            if hashlib.file_digest(kept, "sha256").hexdigest() == path.name:
                os.utime(path)  # used last: pruned last
                kept.seek(0)
                return kept
            kept.close()
            path.unlink(missing_ok=True)
        return None

    def has_tensor(self, file: str, name: str) -> bool:
        """Return whether a tensor is kept, unread."""
        return any(self._tensors(file, name).glob("*"))

    def keep_tensor(self, file: str, name: str, data: Bytes) -> None:
        """Keep a tensor's bytes, unless they alone are too many. `prune` lets go of others for them."""
        if len(data) > largest():
            return
        _put(self._tensors(file, name) / hashlib.sha256(data).hexdigest(), data)

    def note(self, *place: str) -> dict[str, Any] | None:
        """Return a note (a file's header, the commit of a branch), None if there is none that can be read."""
        try:
            found = json.loads(self._note(place).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def keep_note(self, content: dict[str, Any], *place: str) -> None:
        """Keep a note under its place."""
        replace_file(self._note(place), json.dumps(content).encode())

    def prune(self, most: int) -> None:
        """Remove tensors, those unused longest first, until no more than `most` bytes are kept."""
        files = [found for path in (self.folder / "tensors").rglob("*") if (found := _size_and_use(path)) is not None]
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= most:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _tensors(self, file: str, name: str) -> Path:
        return self.folder / "tensors" / _as_name(file) / hashlib.sha256(name.encode()).hexdigest()[:32]

    def _note(self, place: tuple[str, ...]) -> Path:
        return self.folder / "notes" / "/".join(_as_name(part) for part in place[:-1]) / f"{_as_name(place[-1])}.json"


def _put(path: Path, data: Bytes) -> None:
    """Write a file at once, without waiting for the disk: what isn't whole is noticed when it is read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _size_and_use(path: Path) -> tuple[int, int, Path] | None:
    """Return when a file was used last, its size and itself; None where it is gone, or no file."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, path) if S_ISREG(stat.st_mode) else None


def _as_name(text: str) -> str:
    """Return text as one component of a path, two texts never as the same."""
    if re.fullmatch(r"[A-Za-z0-9][\w.-]{0,120}", text):
        return text
    return hashlib.sha256(text.encode()).hexdigest()
