"""What the system says of this process's memory."""

import resource
from contextlib import suppress
from pathlib import Path

KIBI = 1024


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
