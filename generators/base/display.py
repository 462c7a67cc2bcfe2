"""What workers are doing: a table on a terminal; elsewhere one plain line now and then."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from generators.base.progress import REPORT_EVERY, Progress, Report, in_minutes, printable, to_stderr

if TYPE_CHECKING:
    from rich.table import Table

FIRST_AFTER = 1.0  # seconds: the first line comes sooner than later ones


@dataclass
class Tally:
    """How far a model has come, the `number`-th of so many: how many of its findings are done."""

    model: str
    number: int = 1
    of: int = 1
    findings: int = 0
    done: int = 0

    @property
    def name(self) -> str:
        return self.model if self.of == 1 else f"{self.model} ({self.number} of {self.of})"

    @property
    def so_far(self) -> str:
        return f", {self.done} of {self.findings} findings" if self.findings else ""


@dataclass
class Row:
    tally: Tally
    what: str
    begun: float
    measures: bool = True
    said: str = ""
    progress: Progress | None = None

    @property
    def in_words(self) -> str:
        left = "" if self.progress is None else f" ({in_minutes(self.progress.seconds_left)} left)"
        return self.said or f"{self.what}{left}"


class Display:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.rows: dict[str, Row] = {}
        self._waiting, self._reported, self._last = set[str](), set[str](), ""

    def begin(self, worker: str, tally: Tally, what: str, *, measures: bool = True) -> None:
        self.rows[worker] = Row(tally, what, time.monotonic(), measures)

    def say(self, worker: str, said: str | Progress) -> None:
        """Record what a worker says; complete lines are reported immediately, and once each."""
        row = self.rows.get(worker)
        if isinstance(said, str) and "\n" in said:
            if said not in self._reported:  # another worker with the same model may have said it already
                self._reported.add(said)
                self.report(said.rstrip("\n"))
        elif isinstance(said, str) and row is not None:
            row.said = said
        elif isinstance(said, Progress) and row is not None:
            row.progress = said

    def end(self, worker: str) -> None:
        self.rows.pop(worker, None)

    def wait_for(self, model: str) -> None:
        if model not in self._waiting:
            self._waiting.add(model)
            self.report(f"{model}: waiting for another run to finish with its results")

    def in_words(self) -> str:
        return "; ".join(
            f"{rows[0].tally.name}: {', '.join(row.in_words for row in rows)}{rows[0].tally.so_far}"
            for rows in self._by_model()
        )

    def _by_model(self) -> list[list[Row]]:
        by_model: dict[int, list[Row]] = {}
        for row in list(self.rows.values()):  # another thread adds and removes rows
            by_model.setdefault(id(row.tally), []).append(row)
        return list(by_model.values())

    def tell(self) -> None:
        """Report the current state unless it hasn't changed since the last report."""
        line = self.in_words()
        if line and line != self._last:
            self.report(line)
        self._last = line


class TableDisplay(Display):
    def table(self) -> "Table":
        from rich.table import Table
        from rich.text import Text

        so_far = [f"{rows[0].tally.name}{rows[0].tally.so_far}" for rows in self._by_model()]
        caption = Text(printable("\n".join(so_far)), justify="left")
        table = Table("model", "finding", "state", "time", caption=caption, expand=True)
        for row in list(self.rows.values()):
            state = row.said or ("computing" if row.measures else "at work")
            table.add_row(*(Text(printable(cell)) for cell in (row.tally.name, row.what, state, self._time_of(row))))
        return table

    def _time_of(self, row: Row) -> str:
        if row.progress is None:
            return f"{time.monotonic() - row.begun:.0f} s so far"
        return f"{in_minutes(row.progress.seconds_left)} left"


@contextmanager
def display() -> Iterator[Display]:
    """Yield a display on stderr: a table on a terminal; elsewhere a line at most every ten seconds."""
    if not sys.stderr.isatty():
        shown = Display(to_stderr)
        with _every(REPORT_EVERY, shown.tell):
            yield shown
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)

    def above(line: str) -> None:
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    table = TableDisplay(above)
    with Live(console=console, transient=True, refresh_per_second=4, get_renderable=table.table):
        yield table


@contextmanager
def _every(seconds: float, tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` every `seconds` from a thread, since a job may report nothing for minutes."""
    over = threading.Event()

    def tell_until_over() -> None:
        pause = FIRST_AFTER
        while not over.wait(pause):
            tell()
            pause = seconds

    thread = threading.Thread(target=tell_until_over, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
