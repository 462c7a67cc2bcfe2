"""Lines on the progress: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[str], None]
TOLD_EVERY = 10.0  # seconds
MINUTE = 60.0


def silent(line: str) -> None:
    """Report to nobody."""


def printable(text: str) -> str:
    """Return text whose characters a terminal shows and none of which it obeys."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


class TimeLeft:
    """Reports how long something still takes, from how much of it is done; now and then."""

    def __init__(self, report: Report, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._report, self._what, self._clock = report, what, clock
        self._begun = self._told = clock()

    def __call__(self, share: float) -> None:
        """Report, given the share that is done, unless that was reported just now."""
        now = self._clock()
        if not 0 < share < 1 or now - self._told < TOLD_EVERY:
            return
        self._told = now
        self._report(f"{self._what}, {_minutes((now - self._begun) * (1 - share) / share)} left")


def _minutes(seconds: float) -> str:
    return "less than a minute" if seconds < MINUTE else f"about {round(seconds / MINUTE)} min"


@contextmanager
def progress(total: int | None) -> Iterator[tuple[Report, Callable[[], None]]]:
    """Yield how to report a line and how to advance by one of `total`."""
    if not sys.stderr.isatty():
        yield lambda line: print(printable(line), file=sys.stderr, flush=True), lambda: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)

        def report(line: str) -> None:
            first, *rest = printable(line).splitlines() or [""]
            bar.update(task, description=escape(first))
            if rest:
                bar.console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

        yield report, lambda: bar.advance(task)
