"""Ctrl-C, which the terminal sends to every process in front, and processes that end with the one that began them."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


class Stopped(KeyboardInterrupt):
    """Ctrl-C was pressed; says what is done and how to go on."""


@contextmanager
def ctrl_c_deferred() -> Iterator[None]:
    """Let Ctrl-C wait while processes are started, and mean nothing to those processes.

    A process that is interrupted while it starts, or whose parent is while it hands over what to do, prints a
    traceback. Blocking the signal isn't enough: other threads of this process get it then, and it interrupts this
    one all the same. Starting Python's tracker of shared resources unblocks it, so it is started before.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    came: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        signal.raise_signal(signal.SIGINT)


def end_with(parent: int) -> None:
    """End this process when its parent is gone (killed, for example)."""
    threading.Thread(target=_wait_for_the_end_of, args=(parent,), daemon=True).start()


def _wait_for_the_end_of(parent: int) -> None:
    import psutil

    while os.getppid() == parent and psutil.pid_exists(parent):  # the first check suffices except on Windows
        time.sleep(0.5)
    os._exit(1)
