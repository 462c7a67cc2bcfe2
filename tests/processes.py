"""Processes that this one starts, their seconds and memory as the system counts them, and what they work on."""

import json
import os
import resource
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

KIBI = 1024
SAMPLE_S = 0.2


def in_status(field: str) -> int | None:
    """Return a field of /proc/self/status in bytes, None where nobody says."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text("utf-8").splitlines():
            if line.startswith(f"{field}:"):
                return KIBI * int(line.split()[1])
    return None


def most_memory() -> int:
    """Return the bytes that this process had at its peak; what the one had that started it doesn't count.

    `ru_maxrss` would count that too, so it is asked only where there is no /proc.
    """
    return in_status("VmHWM") or KIBI * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def seconds_of_command(command: Sequence[str], place: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    """Run a command in a folder; return the seconds of the processor, its children's too, and of the clock.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=place, env=environment, check=True, capture_output=True)
    clock, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock


def in_fork(act: Callable[[], Any]) -> tuple[Any, int]:
    """Run `act` in a process of its own; return what it returns, through JSON (None: it died), and its status."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        os.write(send, json.dumps(act()).encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(told) if told else None, status


def copied(source: Path, to: Path, names: Iterable[str]) -> Path:
    """Copy what a site is made from: files and folders, those that aren't there left out."""
    to.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = source / name
        if path.is_dir():
            shutil.copytree(path, to / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        elif path.is_file():
            shutil.copy(path, to / name)
    return to


class PeakMemory(threading.Thread):
    """Samples the memory of all processes below this one; pages that several share count once (on Linux)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.done = 0, threading.Event()

    def __enter__(self) -> "PeakMemory":
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.done.set()
        self.join()

    def run(self) -> None:
        while not self.done.wait(SAMPLE_S):
            self.peak = max(self.peak, sum(map(memory_of, psutil.Process().children(recursive=True))))


def memory_of(process: psutil.Process) -> int:
    """Return the bytes that a process has, 0 if it has just ended."""
    with suppress(psutil.Error):
        used = process.memory_full_info()
        return int(getattr(used, "pss", used.rss))
    return 0
