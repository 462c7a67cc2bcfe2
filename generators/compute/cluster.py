"""Workers that are those of a Dask cluster: each does one job at a time, on weights that it finds itself.

Each job is bound to its worker, so that who has a model open does its next one, and no two share a process:
threads of BLAS are the process's. A scheduler and its workers run what they are sent: connect to none but your own.
"""

import ctypes
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from generators.base.errors import InputError
from generators.compute.jobs import Answer, Bench, Job
from generators.compute.processes import SPARED
from generators.compute.workers import Died, Done, Event, Told

TIMEOUT_S = 10.0
ONE_AT_A_TIME = threading.Lock()  # in a worker that has more threads, or that two commands use
LEFT = "it left the cluster"
TRIMS = "MALLOC_TRIM_THRESHOLD_"  # glibc's setting
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
KEPT = 32 * 2**20  # bytes: what glibc comes to by itself where arrays come and go


def connected(address: str) -> "Cluster":
    """Return the workers of the cluster whose scheduler has this address.

    Raises:
        InputError: there is no scheduler, or Dask isn't installed here.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError("--scheduler needs Dask, which the extra `cluster` brings: helix-atlas[cluster].") from error
    try:
        return Cluster(Client(address, timeout=TIMEOUT_S, set_as_default=False))
    except (OSError, ValueError, TypeError) as error:  # OSError: of whatever kind; the others: it is no address
        raise InputError(f"There is no Dask scheduler at {address!r}: {error}.") from error


class Cluster:
    """The workers of a cluster, as they come and go; `client` is a distributed.Client."""

    writes_here = False

    def __init__(self, client: Any) -> None:
        self._client = client
        self._topic = f"atlas-{uuid4().hex}"
        self._said: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._at_work: dict[str, Any] = {}  # futures, by the worker's address
        self._limits = self._found()
        client.subscribe_topic(self._topic, lambda event: self._said.put(event[1]))

    def idle(self) -> Sequence[str]:
        """Return those that are there and have nothing to do."""
        self._limits = self._found()
        return [name for name in self._limits if name not in self._at_work]

    def admits(self, worker: str, need: int) -> bool:
        """Return whether a job fits into a worker's memory, or there is none that has more."""
        limit = self._limits[worker]
        return need <= SPARED * limit or limit == max(self._limits.values())

    def begin(self, worker: str, job: Job) -> None:
        """Have a worker do a job, and no other worker."""
        future = self._client.submit(
            _do, job, self._topic, key=f"atlas-{uuid4().hex}", workers=[worker], allow_other_workers=False, pure=False
        )
        self._at_work[worker] = future
        future.add_done_callback(lambda done: self._said.put((worker, done)))

    def events(self, seconds: float) -> Iterator[Event]:
        """Return what workers said, or that they are gone."""
        with suppress(Empty):
            yield from self._heard(*self._said.get(timeout=seconds))
            while True:
                yield from self._heard(*self._said.get_nowait())
        self._limits = self._found()
        for name in set(self._at_work) - set(self._limits):
            yield self._gone(name, LEFT)

    def close(self) -> None:
        """Drop what is being done: workers end the jobs that they are at, for nobody."""
        self._client.cancel(list(self._at_work.values()), force=True)
        self._at_work.clear()
        self._client.close()

    def _found(self) -> dict[str, float]:
        """Return the workers that are there, with the bytes of memory that each has."""
        found = self._client.scheduler_info(n_workers=-1)["workers"]
        return {name: float(worker["memory_limit"] or float("inf")) for name, worker in found.items()}

    def _heard(self, name: str, said: Any) -> Iterator[Event]:
        if isinstance(said, str):
            yield Told(name, said)
        elif said is self._at_work.get(name):
            yield self._ended(name, said)

    def _ended(self, name: str, future: Any) -> Event:
        """Have the answer brought here, as long as the worker that holds it is there."""
        while future.status == "finished" and name in self._found():
            with suppress(TimeoutError):
                answer = future.result(timeout=TIMEOUT_S)
                del self._at_work[name]
                return Done(name, answer)
        how = LEFT if future.status != "error" else f"it broke: {future.exception()}"
        return self._gone(name, how)

    def _gone(self, name: str, how: str) -> Died:
        self._client.cancel([self._at_work.pop(name)], force=True)
        return Died(name, how)


@cache
def _bench() -> Bench:
    """Return what this process has before it."""
    _keep_freed_memory()
    return Bench()


def _keep_freed_memory() -> None:
    """Let what an array leaves serve the next, as in any process: Dask has its workers give it back at once.

    Every page is cleared anew then, which made findings take half as long again.
    """
    if TRIMS in os.environ:
        with suppress(OSError, AttributeError):  # another C library than glibc
            libc = ctypes.CDLL(None)
            libc.mallopt(M_MMAP_THRESHOLD, KEPT)
            libc.mallopt(M_TRIM_THRESHOLD, 2 * KEPT)


def _do(job: Job, topic: str) -> Answer:
    """Do a job in a worker of a cluster."""
    from distributed import get_worker

    worker = get_worker()
    with ONE_AT_A_TIME:
        return _bench().perform(job, lambda line: worker.log_event(topic, (worker.address, line)))
