"""Who does jobs: processes here (`processes.py`), or the workers of a cluster (`cluster.py`)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from generators.compute.jobs import Answer, Job


@dataclass(frozen=True)
class Told:
    """A line on the progress of a worker's job."""

    worker: str
    line: str


@dataclass(frozen=True)
class Done:
    """A worker's job is done."""

    worker: str
    answer: Answer


@dataclass(frozen=True)
class Died:
    """A worker ended, and its job with it; how, in half a sentence."""

    worker: str
    how: str


Event = Told | Done | Died


class Workers(Protocol):
    """Workers that do one job at a time each."""

    writes_here: bool  # whether what they write is on this machine's disk

    def idle(self) -> Sequence[str]:
        """Return those that have nothing to do, by name."""

    def admits(self, worker: str, need: int) -> bool:
        """Return whether there is memory for a job of so many bytes, now and there.

        Where nothing else is done a job is admitted whatever it needs.
        """

    def begin(self, worker: str, job: Job) -> None:
        """Have a worker that is idle do a job."""

    def events(self, seconds: float) -> Iterable[Event]:
        """Return what happened, once something did or so many seconds have passed."""

    def close(self) -> None:
        """End at once, whatever is being done."""
