"""A cache of what was read from the hub: tensors and headers by the file that they belong to, limited in size."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO, NamedTuple

from generators.base import notices
from generators.base.errors import InputError
from generators.base.files import replace_file

GIGABYTE = 10**9
DEFAULT_GB = 20.0
LARGEST_GB = 1e9  # larger ones are no limit
FOLDER_VARIABLE = "ATLAS_CACHE"
SIZE_VARIABLE = "ATLAS_CACHE_GB"


def default_folder() -> Path:
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else Path.home() / ".cache" / "helix-atlas"


def capacity() -> int:
    """Return how many bytes of tensors the cache may hold. Raises InputError: the setting is no size."""
    said = os.environ.get(SIZE_VARIABLE) or DEFAULT_GB
    try:
        most = float(said)
        if most >= 0:
            return int(min(most, LARGEST_GB) * GIGABYTE)
    except ValueError:
        pass
    raise InputError(f"{SIZE_VARIABLE} is a number of gigabytes, such as 20, or inf for no limit, not {said!r}.")


TEMPORARY = r"(\.[^/]+\.\d+\.tmp)"
OF_TENSORS = re.compile(rf"[^/]+/[0-9a-f]{{32}}/([0-9a-f]{{64}}|{TEMPORARY})")  # below their folder
OF_NOTES = re.compile(rf"(headers|revisions|own-samples)/([^/]+/)*([^/]+\.json|{TEMPORARY})")


class CachedFile(NamedTuple):
    """A file in the cache: when it was last used (seconds since 1970), its size in bytes, and its path."""

    used: float
    size: int
    path: Path


@dataclass(frozen=True)
class TensorCache:
    """A folder of tensors and headers. A tensor's file is named by its SHA-256, which is checked when it is read.

    Where it can't be written, that is said once, and what isn't stored is read from the hub again.
    """

    folder: Path

    def tensor(self, file: str, name: str) -> BinaryIO | None:
        """Open a tensor's bytes, if they are here and whole. `file` names the content of the file it came from."""
        for path in self._tensors(file, name).glob("*"):
            try:
                cached = path.open("rb")
            except OSError:
                continue
            if hashlib.file_digest(cached, "sha256").hexdigest() == path.name:
                with suppress(OSError):  # a folder that can only be read
                    os.utime(path)  # the most recently used is removed last
                cached.seek(0)
                return cached
            cached.close()
            with suppress(OSError):
                path.unlink(missing_ok=True)
        return None

    def has_tensor(self, file: str, name: str) -> bool:
        return any(self._tensors(file, name).glob("*"))

    def store_tensor(self, file: str, name: str, data: bytes | memoryview) -> None:
        """Store a tensor's bytes, unless they alone are too many. `prune` makes room by removing others."""
        if len(data) > capacity():
            return
        with self._as_far_as_it_goes():
            replace_file(self._tensors(file, name) / hashlib.sha256(data).hexdigest(), data)

    def note(self, *place: str) -> dict[str, Any] | None:
        try:
            found = json.loads(self._note(place).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def store_note(self, content: dict[str, Any], *place: str) -> None:
        with self._as_far_as_it_goes():
            replace_file(self._note(place), json.dumps(content).encode())

    def has_room(self, count: int) -> bool:
        """Return whether so many bytes of tensors could all be stored: in the limit, and on the disk."""
        return count <= min(capacity(), free_bytes(self.folder)) and os.access(_existing(self.folder), os.W_OK)

    def tensors(self) -> list[CachedFile]:
        """Return the files of tensors, the least recently used first."""
        return _files(self.folder / "tensors", OF_TENSORS)

    def notes(self) -> list[CachedFile]:
        """Return all other files of the cache, the oldest first."""
        return _files(self.folder / "notes", OF_NOTES)

    def surplus(self, most: int) -> Iterator[CachedFile]:
        """Yield tensors, the least recently used first, until the rest take at most so many bytes."""
        files = self.tensors()
        total = sum(file.size for file in files)
        for file in files:
            if total <= most:
                return
            yield file
            total -= file.size

    def prune(self) -> None:
        for file in self.surplus(capacity()):
            with self._as_far_as_it_goes():
                file.path.unlink(missing_ok=True)

    @contextmanager
    def _as_far_as_it_goes(self) -> Iterator[None]:
        """Change the cache; where that is impossible, say so once and go on."""
        try:
            yield
        except OSError as error:
            notices.say_once(
                f"The cache {self.folder} can't be written ({error.strerror or error}); what it can't store is read "
                "from the hub each time."
            )

    def _tensors(self, file: str, name: str) -> Path:
        return self.folder / "tensors" / _as_name(file) / hashlib.sha256(name.encode()).hexdigest()[:32]

    def _note(self, place: tuple[str, ...]) -> Path:
        return self.folder / "notes" / "/".join(_as_name(part) for part in place[:-1]) / f"{_as_name(place[-1])}.json"


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(_existing(folder)).free


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _files(folder: Path, ours: re.Pattern[str]) -> list[CachedFile]:
    """Return the files below a folder that have the cache's own names: others may be anyone's."""
    found = []
    for path in folder.rglob("*"):
        with suppress(OSError):
            if ours.fullmatch(path.relative_to(folder).as_posix()) and S_ISREG((stat := path.stat()).st_mode):
                found.append(CachedFile(stat.st_mtime, stat.st_size, path))
    return sorted(found)


def _as_name(text: str) -> str:
    """Return text as one component of a path, two texts never as the same."""
    if re.fullmatch(r"[A-Za-z0-9][\w.-]{0,120}", text):
        return text
    return hashlib.sha256(text.encode()).hexdigest()
