"""Files that are either the old or the new: written beside, brought to the disk, then put in place."""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path whose file replaces `path` if all goes well and vanishes if not.

    File and folder are brought to the disk, so that a machine that loses power finds the old file or the new.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}.tmp")
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def replace_file(path: Path, data: bytes | bytearray | memoryview) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def read_limited(path: Path, most: int) -> bytes:
    """Return what a file holds. Raises OSError: it can't be read, is no regular file, or has over `most` bytes."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file")
    # Without waiting for whoever may write into a pipe; what was opened is looked at, so that it can't be exchanged.
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is a folder, a pipe or a device, not a file")
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"it has {found.st_size / 2**20:.0f} MiB, and at most {most >> 20} are read")
        return file.read()


def write_if_changed(path: Path, data: bytes) -> bool:
    if path.is_file() and path.read_bytes() == data:
        return False
    replace_file(path, data)
    return True


def sweep(folder: Path, name: str = "*") -> None:
    """Remove temporary files left by killed processes; `name` is a pattern of `glob`."""
    for left_behind in folder.glob(f".{name}.[0-9]*.tmp"):
        left_behind.unlink(missing_ok=True)


def recover_folder(current: Path) -> None:
    """Restore the folder that a killed `swap_folder` had moved away, unless `current` exists."""
    old, _ = besides(current)
    if not current.exists() and old.is_dir():
        old.rename(current)


def besides(current: Path) -> tuple[Path, Path]:
    """Return where `swap_folder` puts the old folder and the new one meanwhile."""
    return current.with_name(f".{current.name}.old"), current.with_name(f".{current.name}.new")


def swap_folder(new: Path, current: Path) -> None:
    """Replace the current folder by a finished one, which may be on another disk."""
    recover_folder(current)
    old, beside = besides(current)
    for left_behind in (old, beside):
        shutil.rmtree(left_behind, ignore_errors=True)
    current.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.move(new, beside)
    except BaseException:  # half a copy, on another disk
        shutil.rmtree(beside, ignore_errors=True)
        raise
    if current.exists():
        current.rename(old)
    beside.rename(current)
    shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    """Flush a file or a folder's entries to disk; not every system can do that for folders."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if not path.is_dir():
            raise
    finally:
        os.close(descriptor)
