"""Seconds and bytes of a call, and what they were measured on."""

import os
import platform
import resource
import subprocess
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.nulls import commit

ROOT = Path(__file__).parents[2]
MEBI = 2**20
CLOCK = "seconds of the processor, one thread"
IDLE = 0.5  # of the machine's load, below which nothing else of weight was running


class CannotMeasureError(Exception):
    """What a section needs is not here; a sentence says what."""


def processor_seconds_of(call: Callable[[], Any]) -> tuple[float, Any]:
    """Time what runs in one thread as if it had the machine for itself."""
    begin = time.process_time()
    result = call()
    return time.process_time() - begin, result


def seconds_and_peak_of(call: Callable[[], Any]) -> tuple[float, int, Any]:
    """Time a call, and tell how many bytes it allocates at its peak; counting them is part of the time."""
    tracemalloc.start()
    try:
        seconds, result = processor_seconds_of(call)
        return seconds, tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def peak_of(call: Callable[[], Any]) -> int:
    """Return how many bytes a call allocates at its peak."""
    return seconds_and_peak_of(call)[1]


def seconds_of_command(command: Sequence[str], place: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    """Run a command in a folder; return the seconds of the processor, its children's too, and of the clock.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=place, env=environment, check=True, capture_output=True)
    clock, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock


def machine() -> dict[str, Any]:
    """Return what it is measured on, when, and of which commit; and how much else is running."""
    load = os.getloadavg()[0]
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "load_before": round(load, 2),
        "idle": load < IDLE,
    }


def _commit() -> str:
    """Return the commit, with a plus where files differ from it."""
    command = ["git", "status", "--porcelain", "--", "generators", "tests"]
    changed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    return commit() + ("+" if changed else "")


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def ratio(theirs: float, ours: float) -> float:
    """Return how many times as long the other way takes; what takes no time counts as a microsecond."""
    return round(theirs / max(ours, 1e-6), 3)
