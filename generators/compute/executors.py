"""Who does jobs: this process, several processes here, or the workers of a Dask cluster.

Each worker does one job at a time, so that it is known which job ended a process, and so that a worker's next job can
be of the model that it has open. Results are the same whoever does them.
"""

import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from generators.base.display import Display
from generators.base.errors import InputError
from generators.base.interrupts import ctrl_c_deferred, end_with
from generators.compute.jobs import Answer, Died, Job, WorkerContext

SPARED = 0.9  # share of free memory that jobs may take
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
ENDED = "its process ended"
SENDING_S = 1.0  # maximum wait until a job has been sent to its process


@dataclass(frozen=True)
class Choice:
    """A number of local processes, or a cluster's workers."""

    jobs: int = 1
    scheduler: str | None = None

    def workers(self, display: Display) -> "Workers":
        if self.scheduler is not None:
            return connected(self.scheduler, display)
        return Inline(display) if self.jobs == 1 else Processes(display, self.jobs)


class Workers(ABC):
    writes_here = True  # whether they write to this machine's disk

    def __init__(self, display: Display) -> None:
        self._display = display
        self._running: dict[str, tuple[Job, Future[Answer]]] = {}

    @abstractmethod
    def names(self) -> Sequence[str]: ...

    @abstractmethod
    def submit(self, worker: str, job: Job) -> "Future[Answer]":
        """Submit a job to a worker. Raises BrokenExecutor if the worker has died."""

    def idle(self) -> list[str]:
        return [name for name in self.names() if name not in self._running]

    def admits(self, worker: str, need: int) -> bool:
        """Return whether there is memory for a job of `need` bytes; a job without others is always admitted."""
        return True

    def begin(self, worker: str, job: Job) -> None:
        try:
            future = self.submit(worker, job)
        except BrokenExecutor as error:
            future = Future()
            future.set_exception(error)
        self._running[worker] = job, future

    def answers(self, seconds: float) -> Iterator[tuple[str, Answer]]:
        """Wait up to `seconds` for a job to finish; return the finished workers with their answers."""
        if not self._running:
            time.sleep(seconds)  # for a lock that another run holds
            return
        for worker in self.finished(seconds):
            _, future = self._running.pop(worker)
            try:
                answer = self.answer(worker, future)
            except Exception as error:
                self.forget(worker)
                by = re.search(r"\{(.+)\}", str(error))  # loky's way of naming how a process ended
                answer = Died(f"{ENDED} ({by[1]})" if by else str(error) or ENDED)
            yield worker, answer

    def finished(self, seconds: float) -> list[str]:
        wait_for([future for _, future in self._running.values()], seconds, FIRST_COMPLETED)
        return [worker for worker, (_, future) in self._running.items() if future.done()]

    def answer(self, worker: str, future: "Future[Any]") -> Answer:
        """Return the answer of a worker that has finished. Raises an error if it has died."""
        answer: Answer = future.result()
        return answer

    def forget(self, worker: str) -> None:  # noqa: B027  # a worker that is this process doesn't end
        """Replace or drop a worker that has died."""

    @abstractmethod
    def close(self) -> None:
        """Stop immediately, even while jobs run."""


# This process


class Inline(Workers):
    def __init__(self, display: Display) -> None:
        super().__init__(display)
        self._context = WorkerContext(alone=True)

    def names(self) -> Sequence[str]:
        return ("this process",)

    def submit(self, worker: str, job: Job) -> "Future[Answer]":
        future: Future[Answer] = Future()
        future.set_result(self._context.perform(job, partial(self._display.say, worker)))
        return future

    def close(self) -> None: ...


# Processes here


class Processes(Workers):
    """A number of processes that share the free memory; each is started when first needed."""

    def __init__(self, display: Display, count: int) -> None:
        super().__init__(display)
        self._names = [str(number) for number in range(1, count + 1)]
        self._memory = free_memory()
        threads = max(1, (os.cpu_count() or 1) // count)  # of BLAS; what is measured is measured with one
        self._environment = {name: str(threads) for name in THREADS if name not in os.environ}
        self._here: dict[str, tuple[Executor, Connection]] = {}

    def names(self) -> Sequence[str]:
        return self._names

    def admits(self, worker: str, need: int) -> bool:
        return not self._running or sum(job.need for job, _ in self._running.values()) + need <= self._memory

    def submit(self, worker: str, job: Job) -> "Future[Answer]":
        if worker not in self._here:
            self._start(worker)
        with ctrl_c_deferred():  # so that it is known to `close`
            future = self._here[worker][0].submit(_perform, job)
            self._running[worker] = job, future
        return future

    def _start(self, worker: str) -> None:
        from joblib.externals.loky import ProcessPoolExecutor

        listening, speaking = Pipe(duplex=False)
        executor = ProcessPoolExecutor(
            1, initializer=_start_worker, initargs=(speaking, os.getpid()), env=self._environment
        )
        self._here[worker] = executor, listening
        with ctrl_c_deferred():
            executor.submit(_nothing)  # starts the process
        speaking.close()  # the process has its own end, and reading stops when that closes

    def finished(self, seconds: float) -> list[str]:
        done = super().finished(seconds)
        for worker, (_, listening) in self._here.items():  # last, so that messages come before the answer
            with suppress(EOFError, OSError):
                while listening.poll():
                    self._display.say(worker, listening.recv())
        return done

    def forget(self, worker: str) -> None:
        executor, listening = self._here.pop(worker)
        executor.shutdown(wait=True)
        listening.close()

    def close(self) -> None:
        """Kill all processes, after waiting for jobs not sent yet, on which loky would stumble."""
        for _, future in self._running.values():
            until = time.monotonic() + SENDING_S
            while not (future.running() or future.done()) and time.monotonic() < until:
                time.sleep(SENDING_S / 100)
        for executor, listening in self._here.values():
            executor.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]  # loky's own
            listening.close()
        self._here.clear()


def free_memory() -> int:
    import psutil

    return int(SPARED * psutil.virtual_memory().available)


_speaking: Connection | None = None  # connection from a worker process to its parent


def _start_worker(speaking: Connection, parent: int) -> None:
    global _speaking
    _speaking = speaking
    end_with(parent)
    from joblib.externals.loky import process_executor

    # loky ends a process that has grown by 300 MB, as leaking. Here a library such as PyTorch is what makes it grow.
    process_executor._USE_PSUTIL = False


def _nothing() -> None: ...


def _perform(job: Job) -> Answer:
    assert _speaking is not None
    return _context().perform(job, _speaking.send)


@cache
def _context() -> WorkerContext:
    return WorkerContext()


# A Dask cluster. A scheduler and its workers run what they are sent: connect to none but your own.

TIMEOUT_S = 10.0
ANSWER_S = 60.0  # maximum time until an answer has come from its worker
LOOK_S = 1.0  # interval between checks for workers
LEFT = "it left the cluster"
ONE_AT_A_TIME = threading.Lock()  # for workers with several threads, or used by two commands


def connected(address: str, display: Display) -> "Cluster":
    """Return a cluster's workers. Raises InputError: there is no scheduler, or Dask isn't installed here."""
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError("--scheduler needs Dask, which the extra `cluster` brings: helix-atlas[cluster].") from error
    try:
        return Cluster(display, Client(address, timeout=TIMEOUT_S, set_as_default=False))
    except (OSError, ValueError, TypeError) as error:  # OSError: of any kind; the others: not an address
        raise InputError(f"There is no Dask scheduler at {address!r}: {error}.") from error


class Cluster(Workers):
    """The workers of a cluster, with Dask's futures: one waits forever if its worker has left."""

    writes_here = False

    def __init__(self, display: Display, client: Any) -> None:
        super().__init__(display)
        self._client = client
        self._limits: dict[str, float] = {}
        self._looked = float("-inf")

    def names(self) -> Sequence[str]:
        """Return the current workers and record the memory of each."""
        if time.monotonic() - self._looked >= LOOK_S:
            found = self._client.scheduler_info(n_workers=-1)["workers"]
            self._limits = {name: float(worker["memory_limit"] or float("inf")) for name, worker in found.items()}
            self._looked = time.monotonic()
        return list(self._limits)

    def admits(self, worker: str, need: int) -> bool:
        """Return whether a job fits into a worker's memory, or no other worker has more."""
        limit = self._limits[worker]
        return need <= SPARED * limit or limit == max(self._limits.values())

    def submit(self, worker: str, job: Job) -> "Future[Any]":
        future: Future[Any] = self._client.submit(_perform_there, job, workers=[worker], pure=False)
        return future

    def finished(self, seconds: float) -> list[str]:
        from distributed import wait

        with suppress(TimeoutError, CancelledError), self._client.as_current():
            wait([future for _, future in self._running.values()], seconds, "FIRST_COMPLETED")
        there = self.names()
        return [worker for worker, (_, future) in self._running.items() if future.done() or worker not in there]

    def answer(self, worker: str, future: "Future[Any]") -> Answer:
        if not future.done():
            future.cancel()
            raise BrokenExecutor(LEFT)
        answer, lines = future.result(timeout=ANSWER_S)
        for line in lines:
            self._display.say(worker, line)
        return answer

    def close(self) -> None:
        """Drop all running jobs: workers finish them, but their results are ignored."""
        self._client.close()


def _perform_there(job: Job) -> tuple[Answer, list[str]]:
    """Do a job; return its answer, and the complete lines that it reported."""
    said: list[Any] = []
    with ONE_AT_A_TIME:
        answer = _context().perform(job, said.append)
    return answer, [line for line in said if isinstance(line, str) and "\n" in line]
