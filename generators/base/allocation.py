"""What glibc does with the memory that a large array leaves: give it back, page by page, or keep it for the next."""

import ctypes
from contextlib import suppress

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # constants of malloc.h
MEBI = 2**20


def keep_freed_memory(largest: int) -> None:
    """Let what arrays of up to `largest` bytes leave serve the next ones.

    The system clears every page of memory that was given back before it hands it out again, which can take a third
    of the time of a small model's run. Another C library than glibc does as it does.
    """
    with suppress(OSError, AttributeError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, largest)
        libc.mallopt(M_TRIM_THRESHOLD, 2 * largest)


def give_back_freed_memory() -> None:
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
