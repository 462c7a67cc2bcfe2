"""Seconds and memory of this process and of those that it starts, as the system counts them."""

import resource
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
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
