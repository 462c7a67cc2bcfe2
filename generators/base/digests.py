"""Digests of files by their content, and of what is installed: whether something is made from the same as before."""

import hashlib
import json
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

LARGEST = 2**30  # bytes of a file that is read; no source of pages is as large
READERS = 4  # threads; hashing releases the interpreter lock
PACKAGE = Path(__file__).resolve().parents[1]
MADE_BY_PYTHON = "__pycache__"


def of_files(paths: Iterable[Path], root: Path) -> str:
    found = sorted(paths)
    with ThreadPoolExecutor(READERS) as threads:
        digests = threads.map(_of_file, found)
        lines = [
            f"{path.relative_to(root).as_posix()}\0{digest}" for path, digest in zip(found, digests, strict=True)
        ]
    return of_words(*lines)


def of_folder(folder: Path) -> str:
    """Return the digest of a file, or of a folder's files except hidden ones and Python's caches."""
    if folder.is_file():
        return of_files([folder], folder.parent)
    return of_files(inside(folder), folder)


def of_words(*words: object) -> str:
    return hashlib.sha256(json.dumps([str(word) for word in words]).encode()).hexdigest()


def of_code() -> str:
    installed = Path(sysconfig.get_path("purelib")).glob("*.dist-info")
    return of_words(sys.version, *sorted(path.name for path in installed), of_folder(PACKAGE))


@cache
def of_drawing(*folders: str) -> str:
    return of_words(*(of_folder(PACKAGE / folder) for folder in ("drawing", "maths", *folders)))


def inside(folder: Path) -> Iterator[Path]:
    """Return all files below a folder, except hidden ones and Python's caches."""
    for path in folder.rglob("*"):
        inner = path.relative_to(folder).parts
        if MADE_BY_PYTHON not in inner and not any(part.startswith(".") for part in inner) and path.is_file():
            yield path


def _of_file(path: Path) -> str:
    try:
        found = path.stat()
        if found.st_size > LARGEST:
            return f"{found.st_size} bytes, changed at {found.st_mtime_ns}"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:  # removed meanwhile or unreadable: later reads report it
        return f"not read: {error.strerror}"
