"""A disk that fails: faults, and sudden ends of the process, at every step that writes into one folder."""

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

WRITES = "w", "a", "x", "+"


def end_here() -> NoReturn:
    """End this process as a power cut would: no handler runs, nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


class Fault:
    """What goes wrong at one step: before it, after it, or, of a write, in its middle.

    Args:
        when: `before`, `after` or `halfway`.
        code: the error of the system; None: the process ends.
    """

    def __init__(self, when: str, code: int | None) -> None:
        self.when, self.code = when, code

    def strike(self, what: str) -> None:
        """Go wrong."""
        if self.code is None:
            end_here()
        raise OSError(self.code, os.strerror(self.code), what)


FAULTS = {
    "killed before": Fault("before", None),
    "killed after": Fault("after", None),
    "killed halfway through a write": Fault("halfway", None),
    "disk full": Fault("before", errno.ENOSPC),
    "disk full halfway through a write": Fault("halfway", errno.ENOSPC),
    "error of the disk": Fault("before", errno.EIO),
}
ONLY_WRITES = frozenset(name for name, fault in FAULTS.items() if fault.when == "halfway")


class FailingDisk:
    """Counts the steps that write into a folder, and lets one of them go wrong.

    Steps are: a file opened to be written, bytes written, brought to the disk, a file renamed or removed, a folder
    made or removed. To be installed in a process that ends soon: nothing is put back.

    Args:
        folder: where steps count.
        at: the number of the step that goes wrong, from 1; 0: none.
        fault: what happens there.
    """

    def __init__(self, folder: Path, at: int = 0, fault: Fault | None = None) -> None:
        self.folder, self.at, self.fault = folder.resolve(), at, fault
        self.steps: list[str] = []
        self._descriptors: dict[int, Path] = {}

    def install(self) -> None:
        """Stand between this process and the disk from now on."""
        self._open, self._os_open = io.open, os.open
        builtins.open = io.open = self._opened
        os.open = self._os_opened
        for name in ("replace", "rename", "unlink", "remove", "mkdir", "rmdir"):
            setattr(os, name, self._guarded(name, getattr(os, name)))
        sync = os.fsync
        os.fsync = lambda file: self._step("fsync", self._descriptors.get(file, ""), lambda: sync(file))

    def _is_here(self, path: Any) -> bool:
        with suppress(TypeError):
            return Path(os.fsdecode(path)).absolute().is_relative_to(self.folder)
        return False

    def _step(self, kind: str, path: Any, act: Callable[[], Any]) -> Any:
        if not self._is_here(path):
            return act()
        self.steps.append(kind)
        struck = self.fault if len(self.steps) == self.at else None
        if struck is not None and struck.when == "before":
            struck.strike(str(path))
        done = act()
        if struck is not None and struck.when == "after":
            struck.strike(str(path))
        return done

    def _guarded(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(path: Any, *more: Any, **options: Any) -> Any:
            # shutil.rmtree names what is in a folder by the folder's descriptor
            inside = self._descriptors.get(options.get("dir_fd") or -1)
            whole = inside / os.fsdecode(path) if inside is not None else path
            return self._step(name, whole, lambda: act(path, *more, **options))

        return guarded

    def _os_opened(self, path: Any, flags: int, *more: Any, **options: Any) -> int:
        inside = self._descriptors.get(options.get("dir_fd") or -1)
        whole = inside / os.fsdecode(path) if inside is not None else path

        def act() -> int:
            return self._os_open(path, flags, *more, **options)

        descriptor: int = self._step("open", whole, act) if flags & os.O_CREAT else act()
        if self._is_here(whole):
            self._descriptors[descriptor] = Path(os.fsdecode(whole)).absolute()
        return descriptor

    def _opened(self, file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
        if isinstance(file, int) or not any(mark in mode for mark in WRITES) or not self._is_here(file):
            return self._open(file, mode, *more, **options)
        opened = self._step("open", file, lambda: self._open(file, mode, *more, **options))
        self._halve_writes(opened, file)
        return opened

    def _halve_writes(self, opened: Any, path: Any) -> None:
        """Let writes into an open file be steps; halfway through one, half of it is there."""
        write = opened.write

        def written(data: Any) -> int:
            def act() -> int:
                if len(self.steps) == self.at and self.fault is not None and self.fault.when == "halfway":
                    write(data[: len(data) // 2])
                    opened.flush()
                    self.fault.strike(str(path))
                return int(write(data))

            return int(self._step("write", path, act))

        opened.write = written
