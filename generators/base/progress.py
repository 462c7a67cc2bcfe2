"""Lines on the progress: beside a spinner on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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


@contextmanager
def transfer(
    report: Report, what: str, total: int | None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int], None]]:
    """Yield how to tell that so many bytes more have come.

    `report` gets a line every second, which a display shows in the place of the one before; printed, every ten.
    `total` is how many bytes will come, None where that isn't known.
    """
    every = REPORT_EVERY if report is to_stderr else SHOW_EVERY  # printed lines can't be replaced, so fewer
    begun = last = clock()
    come = 0
    if total is not None:
        report(f"{what}: {in_bytes(total)}")

    def came(count: int) -> None:
        nonlocal come, last
        come += count
        now = clock()
        if now - last < every or (total is not None and come >= total):
            return
        last = now
        if total is None:
            report(f"{what}: {in_bytes(come)}")
            return
        left = (now - begun) * (total - come) / max(1, come)
        report(f"{what}: {in_bytes(come)} of {in_bytes(total)}, {in_minutes(left)} left")

    yield came


def in_bytes(count: int) -> str:
    from rich.filesize import decimal

    return decimal(count)


def to_stderr(line: str) -> None:
    sys.stderr.write(f"{printable(line)}\n")
    sys.stderr.flush()


@contextmanager
def progress() -> Iterator[Report]:
    """Yield what reports lines: on a terminal the first of a text beside a spinner, and longer texts above it."""
    if not sys.stderr.isatty():
        yield to_stderr
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)

        def show(line: str) -> None:
            first, *rest = printable(line).splitlines() or [""]
            bar.update(task, description=escape(first))
            if rest:
                bar.console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

        yield show
