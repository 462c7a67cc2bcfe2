"""Lines on the progress: beside a spinner on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

Report = Callable[[str], None]
REPORT_EVERY = 10.0  # seconds
SHOW_EVERY = 1.0
MINUTE = 60.0


def silent(line: str) -> None: ...


def printable(text: str) -> str:
    """Return text without terminal control characters; no-break spaces become spaces."""
    plain = text.replace("\N{NO-BREAK SPACE}", " ")
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in plain)


def all_shown(text: str) -> str:
    """Return a text as it is. Raises ValueError: it holds controls, escapes, or marks that can't be seen."""
    if printable(text) != text:
        raise ValueError("it holds characters that can't be seen: controls, escapes, or marks of direction")
    return text


@dataclass(frozen=True)
class Progress:
    """A job's progress: the share done, and the seconds that the rest takes at that rate."""

    share: float
    seconds_left: float


class TimeLeft:
    """Tells now and then how far something has come, from the share of it that is done.

    What comes before the first share, such as making a text, says nothing of the rest, and isn't counted.
    """

    def __init__(self, tell: Callable[[Progress], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._first: tuple[float, float] | None = None  # share, and when
        self._last = 0.0

    def __call__(self, share: float) -> None:
        now = self._clock()
        if self._first is None:
            self._first, self._last = (share, now), now
        at_first, begun = self._first
        if not at_first < share < 1 or now - self._last < REPORT_EVERY:
            return
        self._last = now
        self._tell(Progress(share, (now - begun) * (1 - share) / (share - at_first)))


def in_minutes(seconds: float) -> str:
    return "less than a minute" if seconds < MINUTE else f"about {round(seconds / MINUTE)} min"


class _OnTerminal:
    """Reports next to a spinner: it shows the first line of a text; longer texts are printed in full above it."""

    def __init__(self, bar: "Bars", task: "TaskID") -> None:
        self._bar, self._task = bar, task

    def __call__(self, line: str) -> None:
        from rich.markup import escape

        first, *rest = printable(line).splitlines() or [""]
        self._bar.update(self._task, description=escape(first))
        if rest:
            self._bar.console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


class _Bytes:
    """Reports bytes received and the remaining time, often enough to keep displays up to date."""

    def __init__(self, report: Report, what: str, total: int | None, clock: Callable[[], float]) -> None:
        self._report, self._what, self._total, self._clock = report, what, total, clock
        self._every = REPORT_EVERY if report is to_stderr else SHOW_EVERY  # printed lines can't be replaced, so fewer
        self._come, self._begun = 0, clock()
        self._last = self._begun
        if total is not None:
            report(f"{what}: {in_bytes(total)}")

    def __call__(self, count: int) -> None:
        self._come += count
        now = self._clock()
        if now - self._last < self._every or (self._total is not None and self._come >= self._total):
            return
        self._last = now
        if self._total is None:
            self._report(f"{self._what}: {in_bytes(self._come)}")
            return
        left = (now - self._begun) * (self._total - self._come) / max(1, self._come)
        self._report(f"{self._what}: {in_bytes(self._come)} of {in_bytes(self._total)}, {in_minutes(left)} left")


@contextmanager
def transfer(
    report: Report, what: str, total: int | None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int], None]]:
    """Yield how to tell that so many bytes more have come.

    `report` gets a line every second, which a display shows in the place of the one before; printed, every ten.
    `total` is how many bytes will come, None where that isn't known.
    """
    yield _Bytes(report, what, total, clock)


def in_bytes(count: int) -> str:
    from rich.filesize import decimal

    return decimal(count)


def to_stderr(line: str) -> None:
    sys.stderr.write(f"{printable(line)}\n")
    sys.stderr.flush()


@contextmanager
def progress() -> Iterator[Report]:
    if not sys.stderr.isatty():
        yield to_stderr
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield _OnTerminal(bar, bar.add_task("", total=None))
