"""Who does jobs: this process, or several processes here.

Each does one job at a time, so that it is known which job ended a process, and so that a worker's next job can be of
the model that it has open. Results are the same whoever does them.
"""

import copyreg
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from generators import findings
from generators.base.display import Display
from generators.base.interrupts import ctrl_c_deferred, end_with
from generators.base.progress import Progress
from generators.compute.jobs import MOST_KEPT, Answer, Died, Failed, Job, WorkerContext
from generators.findings.contract import Finding

SPARED = 0.9  # share of free memory that jobs may take
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Workers(ABC):
    """Who does jobs, by name, within so many bytes of memory."""

    def __init__(self, display: Display, names: Sequence[str], memory: float = float("inf")) -> None:
        self.names = names
        self._display, self._memory = display, memory
        self._running: dict[str, Job] = {}

    def idle(self) -> list[str]:
        return [name for name in self.names if name not in self._running]

    def admits(self, need: int) -> bool:
        """Return whether there is memory for a job of `need` bytes; a job without others is always admitted."""
        return not self._running or sum(job.need for job in self._running.values()) + need <= self._memory

    def begin(self, worker: str, job: Job) -> None:
        self._running[worker] = job

    @abstractmethod
    def answers(self, seconds: float) -> Iterator[tuple[str, Answer]]:
        """Wait up to `seconds` for a job to finish; yield the finished workers with their answers."""

    @abstractmethod
    def close(self) -> None:
        """Stop immediately, even while jobs run."""


def chosen_workers(processes: int, display: Display) -> Workers:
    return Inline(display) if processes == 1 else Processes(display, processes)


class Inline(Workers):
    """This process, which does a job when it is asked for the answer."""

    def __init__(self, display: Display) -> None:
        super().__init__(display, ("this process",))
        self._context = WorkerContext(share=1.0)

    def answers(self, seconds: float) -> Iterator[tuple[str, Answer]]:
        while self._running:
            worker, job = self._running.popitem()
            yield worker, self._context.perform(job, partial(self._display.say, worker))

    def close(self) -> None: ...


class Processes(Workers):
    """A number of processes that share the free memory; each is started when first needed."""

    def __init__(self, display: Display, count: int) -> None:
        super().__init__(display, [str(number) for number in range(1, count + 1)], free_memory())
        threads = max(1, (os.cpu_count() or 1) // count)  # of BLAS; what is measured is measured with one
        self._environment = {name: str(threads) for name in THREADS if name not in os.environ}
        self._here: dict[str, tuple[SpawnProcess, Connection]] = {}

    def begin(self, worker: str, job: Job) -> None:
        super().begin(worker, job)
        with ctrl_c_deferred():  # so that it is known to `close`
            if worker not in self._here:
                self._here[worker] = self._started()
            with suppress(OSError):  # it has died since its last job, as `answers` will find
                self._here[worker][1].send(job)

    def _started(self) -> tuple[SpawnProcess, Connection]:
        spawn = get_context("spawn")
        here, there = spawn.Pipe()
        given = there, os.getpid(), MOST_KEPT / len(self.names)
        process = spawn.Process(target=_do_jobs, args=given, daemon=True)
        os.environ.update(self._environment)  # read there while libraries are loaded
        process.start()
        for name in self._environment:
            del os.environ[name]
        there.close()
        return process, here

    def answers(self, seconds: float) -> Iterator[tuple[str, Answer]]:
        at_work: dict[Any, str] = {self._here[worker][1]: worker for worker in self._running}
        ready: list[Any] = wait(at_work, seconds)
        for connection in ready:
            worker = at_work[connection]
            try:
                said = connection.recv()
            except Exception as error:  # the process has ended, or sent what can't be read here
                said = self._died(worker, error)
            if isinstance(said, str | Progress):
                self._display.say(worker, said)
                continue
            del self._running[worker]
            yield worker, said

    def _died(self, worker: str, error: Exception) -> Died:
        process, connection = self._here.pop(worker)
        if not isinstance(error, EOFError | OSError):
            process.kill()
        process.join()
        connection.close()
        code = process.exitcode or 0
        return Died(f"its process ended ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})")

    def close(self) -> None:
        for process, connection in self._here.values():
            process.kill()
            process.join()
            connection.close()
        self._here.clear()


def free_memory() -> int:
    import psutil

    return int(SPARED * psutil.virtual_memory().available)


def _do_jobs(connection: Connection, parent: int, share: float) -> None:
    """Do jobs in a process of their own, until the one that sends them is gone."""
    end_with(parent)
    context = WorkerContext(share)
    with suppress(EOFError, OSError):
        while True:
            answer = context.perform(connection.recv(), connection.send)
            try:
                connection.send(answer)
            except (EOFError, OSError):
                raise
            except Exception as error:  # it can't be sent; nothing of it was
                connection.send(Failed(f"{type(error).__name__}: {error}", ""))


def _named(name: str) -> Finding[Any]:
    return next(finding for finding in findings.FINDINGS if finding.name == name)


# Between processes findings go by name: their rules are functions that can't be sent.
copyreg.pickle(Finding, lambda finding: (_named, (finding.name,)))
