"""What workers are doing: a table or a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from generators.base.progress import Progress, Report, in_minutes, printable, progress

if TYPE_CHECKING:
    from rich.table import Table


@dataclass
class Row:
    """One job that is being done."""

    model: str
    what: str
    begun: float
    state: str = "at work"
    progress: Progress | None = None


class Display:
    """Shows who does what, in lines.

    `total` is how many findings there are to look at, `done` how many were dealt with.
    """

    def __init__(self, report: Report, clock: Callable[[], float] = time.monotonic) -> None:
        self.report, self.total, self.done = report, 0, 0
        self.rows: dict[str, Row] = {}
        self._clock, self._begun, self._waiting = clock, clock(), set[str]()

    def begin(self, worker: str, model: str, what: str, *, measures: bool = True) -> None:
        """A worker begins with something of a model: it measures a finding, or opens or reads files."""
        self.rows[worker] = Row(model, what, self._clock(), "computing" if measures else "at work")
        if measures:
            self._line(f"{model}: computing {what}")

    def say(self, worker: str, line: str) -> None:
        """A worker says what it does."""
        self.report(line)

    def advance(self, worker: str, done: Progress) -> None:
        """A worker gets on with its job."""
        row = self.rows[worker]
        row.progress = done
        self._line(f"{row.model}: computing {row.what}, {in_minutes(done.seconds_left)} left")

    def end(self, worker: str) -> None:
        """A worker is done with its job, well or not."""
        self.rows.pop(worker, None)

    def wait_for(self, model: str, holder: str) -> None:
        """A model waits until another run has written its results; that is said once."""
        if model not in self._waiting:
            self._waiting.add(model)
            self.report(f"{model}: waiting for another run to finish with its results ({holder})")

    def draw(self) -> None:
        """Show the state of all jobs; lines have said it."""

    def in_words(self) -> str:
        """Return how much is done, and how long the rest takes at the rate so far."""
        said = f"{self.done} of {self.total} findings"
        if not 0 < self.done < self.total:
            return said
        rest = (self._clock() - self._begun) * (self.total - self.done) / self.done
        return f"{said}, {in_minutes(rest)} left"

    def time_of(self, row: Row) -> str:
        """Return how long a job still takes, or where it doesn't say, how long it took so far."""
        if row.progress is None:
            return f"{self._clock() - row.begun:.0f} s so far"
        return f"{in_minutes(row.progress.seconds_left)} left"

    def _line(self, line: str) -> None:
        """Report what a table shows in a row."""
        self.report(line)


class TableDisplay(Display):
    """A table on a terminal; texts of several lines are printed above it."""

    def __init__(self, report: Report, show: Callable[["Table"], None]) -> None:
        super().__init__(report)
        self._show = show

    def say(self, worker: str, line: str) -> None:
        """Show a line as the state of the worker's job; more than a line is printed."""
        if "\n" in line:
            self.report(line)
        else:
            self.rows[worker].state = line

    def draw(self) -> None:
        """Draw the table anew."""
        from rich.table import Table
        from rich.text import Text

        table = Table("model", "finding", "state", "time", caption=self.in_words(), caption_justify="left")
        for row in self.rows.values():
            table.add_row(*(Text(printable(cell)) for cell in (row.model, row.what, row.state, self.time_of(row))))
        self._show(table)

    def _line(self, line: str) -> None:
        """The row shows it."""


@contextmanager
def display(*, table: bool) -> Iterator[Display]:
    """Yield a display on the error stream: of several workers in a table, of one in a bar."""
    if not table or not sys.stderr.isatty():
        with progress() as report:
            yield Display(report)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(console=console, transient=True, refresh_per_second=4) as live:

        def above(line: str) -> None:
            console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

        yield TableDisplay(above, live.update)
