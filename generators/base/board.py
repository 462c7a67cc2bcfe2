"""What several workers are doing: a table on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from generators.base.progress import Report, in_minutes, printable

if TYPE_CHECKING:
    from rich.table import Table

LEFT = " left"  # how a line ends that tells the time that is left


@dataclass
class Row:
    """One job that is being done."""

    model: str
    what: str
    since: float
    state: str = "at work"
    left: str | None = None


class Board:
    """Who does what. This one prints lines.

    `total` is how many findings there are to look at, `done` how many were dealt with.
    """

    def __init__(self, report: Report, clock: Callable[[], float] = time.monotonic) -> None:
        self.report, self.total, self.done = report, 0, 0
        self.rows: dict[str, Row] = {}
        self._clock, self._begun, self._waiting = clock, clock(), set[str]()

    def begun(self, worker: str, model: str, what: str) -> None:
        """A worker begins with something of a model."""
        self.rows[worker] = Row(model, what, self._clock())

    def told(self, worker: str, line: str) -> None:
        """A worker tells how far it is."""
        row = self.rows.get(worker)
        head, _, tail = line.rpartition(", ")
        if row is not None and head and tail.endswith(LEFT):
            row.left = tail
        self.report(line)

    def ended(self, worker: str) -> None:
        """A worker is done with it, well or not."""
        self.rows.pop(worker, None)

    def waits(self, model: str) -> None:
        """A model waits until another run has written its results; that is told once."""
        if model not in self._waiting:
            self._waiting.add(model)
            self.report(f"{model}: another run writes its results; it comes later")

    def draw(self) -> None:
        """Show how things stand now; lines have said it."""

    def in_words(self) -> str:
        """Return how much is done, and how long the rest takes at the rate so far."""
        said = f"{self.done} of {self.total} findings"
        if not 0 < self.done < self.total:
            return said
        rest = (self._clock() - self._begun) * (self.total - self.done) / self.done
        return f"{said}, {in_minutes(rest)} left"

    def time_of(self, row: Row) -> str:
        """Return how long a job takes still, or where it doesn't tell, how long it took so far."""
        return row.left or f"{self._clock() - row.since:.0f} s so far"


class TableBoard(Board):
    """A board that is a table on a terminal; texts of several lines are printed above it."""

    def __init__(self, report: Report, show: Callable[["Table"], None]) -> None:
        super().__init__(report)
        self._show = show

    def told(self, worker: str, line: str) -> None:
        """Keep the time that is left; more than a line is printed."""
        row = self.rows.get(worker)
        head, _, tail = line.rpartition(", ")
        if "\n" in line:
            self.report(line)
        elif row is not None and head and tail.endswith(LEFT):
            row.left = tail
        elif row is not None:
            row.state = line.removeprefix(f"{row.model}: ").removesuffix(f" {row.what}")

    def draw(self) -> None:
        """Draw the table anew."""
        from rich.table import Table
        from rich.text import Text

        table = Table("model", "finding", "state", "time", caption=self.in_words(), caption_justify="left")
        for row in self.rows.values():
            table.add_row(*(Text(printable(cell)) for cell in (row.model, row.what, row.state, self.time_of(row))))
        self._show(table)


@contextmanager
def board() -> Iterator[Board]:
    """Yield a board that stands where errors go."""
    if not sys.stderr.isatty():
        yield Board(lambda line: print(printable(line), file=sys.stderr, flush=True))
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(console=console, transient=True, refresh_per_second=4) as live:

        def report(line: str) -> None:
            console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

        yield TableBoard(report, live.update)
