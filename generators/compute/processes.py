"""Workers that are processes on this machine. One that dies costs its job and nothing else: another takes its place.

(A pool of the standard library breaks as a whole when one of its processes is killed.)
"""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generators.compute.jobs import Answer, Job
    from generators.compute.workers import Event

SPARED = 0.9  # of the memory that is free: the share that jobs may take
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def free_memory() -> int:
    """Return how many bytes jobs may take together: most of what is free now."""
    import psutil

    return int(SPARED * psutil.virtual_memory().available)


def threads_of(jobs: int, cores: int) -> int:
    """Return how many threads of BLAS each process may have: one, unless there are more cores than jobs.

    What is measured is measured with one in any case, so that results are the same to the last bit.
    """
    return max(1, cores // jobs)


class Processes:
    """So many processes that share so many bytes of memory."""

    writes_here = True

    def __init__(self, count: int, memory: int | None = None) -> None:
        self._memory = free_memory() if memory is None else memory
        self._threads = threads_of(count, os.cpu_count() or 1)
        self._names = [str(number) for number in range(1, count + 1)]
        self._here: dict[str, tuple[BaseProcess, Connection]] = {}
        self._needs: dict[str, int] = {}  # of those that are at work

    def idle(self) -> Sequence[str]:
        """Return those that have nothing to do."""
        return [name for name in self._names if name not in self._needs]

    def admits(self, worker: str, need: int) -> bool:
        """Return whether a job fits beside those that are being done."""
        return not self._needs or sum(self._needs.values()) + need <= self._memory

    def begin(self, worker: str, job: "Job") -> None:
        """Have a worker do a job; its process is started when it is first needed."""
        self._needs[worker] = job.need
        if worker not in self._here:
            self._here[worker] = _started(worker, self._threads)
        with suppress(OSError):  # it died: `events` finds out
            self._here[worker][1].send(job)

    def events(self, seconds: float) -> Iterator["Event"]:
        """Return what workers said, or that they died."""
        names = {self._here[name][1]: name for name in self._needs}
        for ready in wait(list(names), seconds):
            assert isinstance(ready, Connection)
            yield self._heard(names[ready], ready)

    def close(self) -> None:
        """Kill all processes."""
        for process, connection in self._here.values():
            process.kill()
            connection.close()
        for process, _ in self._here.values():
            process.join()
        self._here.clear()
        self._needs.clear()

    def _heard(self, name: str, connection: Connection) -> "Event":
        from generators.compute.workers import Died, Done, Told

        try:
            said, is_last = connection.recv()
        except (EOFError, OSError):
            process, _ = self._here.pop(name)
            connection.close()
            process.join()
            del self._needs[name]
            return Died(name, _how(process.exitcode))
        if not is_last:
            return Told(name, said)
        del self._needs[name]
        return Done(name, said)


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended with exit code {code}"


def _started(name: str, threads: int) -> tuple[BaseProcess, Connection]:
    context = get_context("spawn")  # a copy of this process would have its threads' locks
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), name=f"atlas {name}", daemon=True)
    with _as_workers_start(threads):
        process.start()
    theirs.close()  # so that its end is noticed here
    return process, ours


@contextmanager
def _as_workers_start(threads: int) -> Iterator[None]:
    """Hand down how many threads BLAS has, unless the user said that, and that Ctrl-C is for this process alone."""
    before = dict(os.environ)
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    for name in THREADS:
        os.environ.setdefault(name, str(threads))
    try:
        yield
    finally:
        for name in THREADS:
            if name not in before:
                os.environ.pop(name, None)
        if old is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _work(connection: Connection) -> None:
    """Do jobs as they come, until the process that gives them is no more."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from generators.compute.jobs import Bench

    bench = Bench()

    def answered(job: "Job") -> "Answer":
        return bench.perform(job, lambda line: connection.send((line, False)))

    try:
        while True:
            connection.send((answered(connection.recv()), True))
    except (EOFError, OSError):
        return


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
