"""Who does jobs: this process, several processes here, or the workers of a Dask cluster.

Each worker is an executor that does one job at a time, so that it is known which job ended a process, and so that a
worker's next job can be of the model that it has open. Results are the same whoever does them.
"""

import os
import re
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cache, partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from generators.base.allocation import MEBI, keep_freed_memory
from generators.base.display import Display
from generators.base.errors import InputError
from generators.base.interrupts import ctrl_c_deferred, end_with
from generators.base.progress import Progress
from generators.compute.jobs import Answer, Died, Failed, Job, WorkerContext

GB = 1_000_000_000
SPARED = 0.9  # share of free memory that jobs may take
FILES, FILES_OF_A_PROCESS = 24, 8  # open files needed in all and per process; with fewer, loky breaks
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
ENDED = "its process ended"
# Bytes of the largest array that may leave its memory to the next one: glibc settles on this value where arrays come
# and go. Dask has its workers give everything back; clearing the pages anew made findings take half as long again.
TRIMS = "MALLOC_TRIM_THRESHOLD_"  # glibc's setting
NOT_TRIMMED = 32 * MEBI
SENDING_S = 1.0  # maximum wait until a job has been sent to its process


@dataclass(frozen=True)
class Choice:
    """A number of local processes with a memory limit in bytes (None: what is free), or a cluster's workers."""

    jobs: int = 1
    scheduler: str | None = None
    memory: int | None = None

    def workers(self, display: Display) -> "Workers":
        if self.scheduler is not None:
            return connected(self.scheduler, display)
        return Inline(display) if self.jobs == 1 else Processes(display, self.jobs, self.memory)


def chosen(jobs: int, scheduler: str | None, memory_gb: float | None) -> Choice:
    if scheduler is not None and (jobs != 1 or memory_gb is not None):
        raise InputError("--scheduler goes with neither --jobs nor --memory: the cluster's workers have their own.")
    if memory_gb is not None and not 0 < memory_gb < float("inf"):
        raise InputError(f"--memory is a number of gigabytes above 0, not {memory_gb:g}.")
    if jobs > 1 and (allowed := open_files()) < (needed := FILES + FILES_OF_A_PROCESS * jobs):
        raise InputError(f"--jobs {jobs} takes {needed} open files, and {allowed} are allowed: ulimit -n {needed}.")
    return Choice(jobs, scheduler, None if memory_gb is None else int(memory_gb * GB))


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
        wait_for([future for _, future in self._running.values()], seconds, FIRST_COMPLETED)
        done = [worker for worker, (_, future) in self._running.items() if future.done()]
        self.listen()  # last, so that messages sent before an answer are shown before it
        for worker in done:
            _, future = self._running.pop(worker)
            error = future.exception()
            if isinstance(error, BrokenExecutor):
                self.forget(worker)
            yield worker, future.result() if error is None else _lost(error)

    def listen(self) -> None:  # noqa: B027  # who is displayed directly has nothing to hear
        """Display messages of workers."""

    def forget(self, worker: str) -> None:  # noqa: B027  # a worker that is this process doesn't end
        """Replace or drop a worker that has died."""

    @abstractmethod
    def close(self) -> None:
        """Stop immediately, even while jobs run."""

    def _said(self, worker: str, said: str | Progress) -> None:
        if worker not in self._running:
            return
        if isinstance(said, str):
            self._display.say(worker, said)
        else:
            self._display.advance(worker, said)


def _lost(error: BaseException) -> Died | Failed:
    if not isinstance(error, BrokenExecutor):
        return Failed(f"{type(error).__name__}: {error}", "")
    by = re.search(r"\{(.+)\}", str(error))  # loky's way of naming how a process ended
    return Died(f"{ENDED} ({by[1]})" if by else str(error) or ENDED)


# This process


class Inline(Workers):
    def __init__(self, display: Display) -> None:
        super().__init__(display)
        self._context = WorkerContext(alone=True)

    def names(self) -> Sequence[str]:
        return ("this process",)

    def submit(self, worker: str, job: Job) -> "Future[Answer]":
        future: Future[Answer] = Future()
        say, advance = (partial(tell, worker) for tell in (self._display.say, self._display.advance))
        future.set_result(self._context.perform(job, say, advance))
        return future

    def close(self) -> None: ...


# Processes here


class Processes(Workers):
    """A number of processes that share a memory limit; each is started when first needed."""

    def __init__(self, display: Display, count: int, memory: int | None = None) -> None:
        super().__init__(display)
        self._names = [str(number) for number in range(1, count + 1)]
        self._memory = free_memory() if memory is None else memory
        threads = max(1, (os.cpu_count() or 1) // count)  # of BLAS; what is measured is measured with one
        self._environment = {name: str(threads) for name in THREADS if name not in os.environ}
        self._here: dict[str, tuple[Executor, Connection]] = {}
        self._given: dict[str, Future[Answer]] = {}  # worker -> its last job

    def names(self) -> Sequence[str]:
        return self._names

    def admits(self, worker: str, need: int) -> bool:
        return not self._running or sum(job.need for job, _ in self._running.values()) + need <= self._memory

    def submit(self, worker: str, job: Job) -> "Future[Answer]":
        if worker not in self._here:
            self._start(worker)
        with ctrl_c_deferred():  # so that it is known to `close`
            future = self._given[worker] = self._here[worker][0].submit(_perform, job)
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

    def listen(self) -> None:
        for worker, (_, listening) in self._here.items():
            with suppress(EOFError, OSError):
                while listening.poll():
                    self._said(worker, listening.recv())

    def forget(self, worker: str) -> None:
        executor, listening = self._here.pop(worker)
        executor.shutdown(wait=True)
        listening.close()

    def close(self) -> None:
        """Kill all processes, after waiting for jobs not sent yet, on which loky would stumble."""
        for future in self._given.values():
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


def open_files() -> int:
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:  # Windows
        return sys.maxsize
    soft, _ = getrlimit(RLIMIT_NOFILE)
    return sys.maxsize if soft == RLIM_INFINITY else soft


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
    return _context().perform(job, _speaking.send, _speaking.send)


@cache
def _context() -> WorkerContext:
    if TRIMS in os.environ:
        keep_freed_memory(NOT_TRIMMED)
    return WorkerContext()


# A Dask cluster. A scheduler and its workers run what they are sent: connect to none but your own.

TIMEOUT_S = 10.0
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


class OnCluster(Executor):
    """One worker of a cluster: each job is bound to it, so the worker holding a model gets its next job.

    (Dask's own executor waits forever for the answer of a worker that has left.)
    """

    def __init__(self, client: Any, worker: str, is_there: Callable[[str], bool]) -> None:
        self._client, self._worker, self._is_there = client, worker, is_there
        self._thread = ThreadPoolExecutor(1)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        return self._thread.submit(self._answer, fn, args)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._thread.shutdown(wait, cancel_futures=cancel_futures)

    def _answer(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        bound = {"workers": [self._worker], "allow_other_workers": False}
        future = self._client.submit(fn, *args, key=f"atlas-{uuid4().hex}", pure=False, **bound)
        try:
            while True:
                with suppress(TimeoutError):
                    return future.result(timeout=LOOK_S)
                if not self._is_there(self._worker):
                    raise BrokenExecutor(LEFT)
        except BrokenExecutor:
            future.cancel(force=True)
            raise
        except Exception as error:
            raise BrokenExecutor(f"it broke: {error}") from error


class Cluster(Workers):
    writes_here = False

    def __init__(self, display: Display, client: Any) -> None:
        super().__init__(display)
        self._client = client
        self._topic = f"atlas-{uuid4().hex}"
        self._heard: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._executors: dict[str, OnCluster] = {}
        self._limits: dict[str, float] = {}
        self._looked = float("-inf")
        client.subscribe_topic(self._topic, lambda event: self._heard.put(event[1]))

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

    def submit(self, worker: str, job: Job) -> "Future[Answer]":
        if worker not in self._executors:
            self._executors[worker] = OnCluster(self._client, worker, lambda name: name in self._limits)
        return self._executors[worker].submit(_perform_there, job, self._topic)

    def listen(self) -> None:
        with suppress(Empty):
            while True:
                worker, said = self._heard.get_nowait()
                self._said(worker, said if isinstance(said, str) else Progress(*said))

    def forget(self, worker: str) -> None:
        self._executors.pop(worker).shutdown(wait=False)

    def close(self) -> None:
        """Drop all running jobs: workers finish them, but their results are ignored."""
        self._client.close()
        for executor in self._executors.values():
            executor.shutdown(wait=False, cancel_futures=True)


def _perform_there(job: Job, topic: str) -> Answer:
    from distributed import get_worker

    worker = get_worker()

    def say(said: Any) -> None:
        worker.log_event(topic, (worker.address, said))

    with ONE_AT_A_TIME:
        return _context().perform(job, say, lambda done: say(astuple(done)))
