"""Lines on the progress: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

Report = Callable[[str], None]
REPORT_EVERY = 10.0  # seconds
MINUTE = 60.0


def silent(line: str) -> None:
    """Report to nobody."""


def printable(text: str) -> str:
    """Return text whose characters a terminal shows and none of which it obeys."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def all_shown(text: str) -> str:
    """Return a text that a terminal and a page can show as it is.

    Raises ValueError: it holds controls, escapes, or marks of direction that can't be seen.
    """
    if printable(text) != text:
        raise ValueError("it holds characters that can't be seen: controls, escapes, or marks of direction")
    return text


@dataclass(frozen=True)
class Progress:
    """How far a job has come: the share that is done, and how many seconds the rest takes at that rate."""

    share: float
    seconds_left: float


class TimeLeft:
    """Tells now and then how far something has come, from the share of it that is done."""

    def __init__(self, tell: Callable[[Progress], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._begun = self._last = clock()

    def __call__(self, share: float) -> None:
        """Tell, given the share that is done, unless that was told just now."""
        now = self._clock()
        if not 0 < share < 1 or now - self._last < REPORT_EVERY:
            return
        self._last = now
        self._tell(Progress(share, (now - self._begun) * (1 - share) / share))


def in_minutes(seconds: float) -> str:
    """Return a time in words, to the minute."""
    return "less than a minute" if seconds < MINUTE else f"about {round(seconds / MINUTE)} min"


class _OnTerminal:
    """Reports in a bar: the first line of a text stands in it, more than that is printed in full above."""

    def __init__(self, bar: "Bars", task: "TaskID") -> None:
        self.bar, self._task = bar, task

    def __call__(self, line: str) -> None:
        from rich.markup import escape

        first, *rest = printable(line).splitlines() or [""]
        self.bar.update(self._task, description=escape(first))
        if rest:
            self.bar.console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


class _Lines:
    """Reports how many bytes have come, a line now and then."""

    def __init__(self, report: Report, what: str, total: int | None, clock: Callable[[], float]) -> None:
        self._report, self._what, self._total, self._clock = report, what, total, clock
        self._come, self._last = 0, clock()
        if total is not None:
            report(f"{what}: {in_bytes(total)}")

    def __call__(self, count: int) -> None:
        self._come += count
        now = self._clock()
        if now - self._last >= REPORT_EVERY and (self._total is None or self._come < self._total):
            self._last = now
            of_all = "" if self._total is None else f" of {in_bytes(self._total)}"
            self._report(f"{self._what}: {in_bytes(self._come)}{of_all}")


@contextmanager
def transfer(
    report: Report, what: str, total: int | None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int], None]]:
    """Yield how to tell that so many bytes more have come: a bar of `total` bytes on a terminal, lines elsewhere.

    Args:
        report: as `progress` yields it, or any other, which gets lines.
        what: what is on its way.
        total: how many bytes will come, None where that isn't known.
        clock: gives seconds.
    """
    if not isinstance(report, _OnTerminal):
        yield _Lines(report, what, total, clock)
        return
    from rich.markup import escape

    bar = report.bar
    task = bar.add_task(escape(printable(what)), total=total, in_bytes=True)
    try:
        yield lambda count: bar.advance(task, count)
    finally:
        bar.remove_task(task)


def in_bytes(count: int) -> str:
    """Return a number of bytes as readers know it: `3.4 MB`."""
    from rich.filesize import decimal

    return decimal(count)


@contextmanager
def progress() -> Iterator[Report]:
    """Yield how to report a line."""
    if not sys.stderr.isatty():
        yield lambda line: print(printable(line), file=sys.stderr, flush=True)
        return
    from rich.console import Console

    with _two_kinds_of_bars(Console(stderr=True)) as bar:
        yield _OnTerminal(bar, bar.add_task("", total=None))


def _two_kinds_of_bars(console: "Console") -> "Bars":
    """Return bars of which those of bytes say how many came, how fast, and how long the rest takes."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    words = TextColumn("{task.description}")
    of_bytes = words, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()

    class TwoKinds(Progress):
        def get_renderables(self) -> "Iterator[RenderableType]":
            of_work = self.columns
            yield self.make_tasks_table([task for task in self.tasks if "in_bytes" not in task.fields])
            self.columns = of_bytes
            yield self.make_tasks_table([task for task in self.tasks if "in_bytes" in task.fields])
            self.columns = of_work

    return TwoKinds(SpinnerColumn(), words, TimeElapsedColumn(), console=console)
