"""What workers are doing: a table on a terminal; elsewhere one plain line now and then."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from generators.base.progress import REPORT_EVERY, Progress, Report, in_minutes, printable, to_stderr

if TYPE_CHECKING:
    from rich.table import Table

FIRST_AFTER = 1.0  # seconds: the first line comes sooner than later ones


@dataclass
class Tally:
    """How far a model has come, the `number`-th of so many: how many of its findings are done, and what is left.

    `left` has the seconds that each finding is likely to take, by name. `runs` are those that run the model: their
    times say nothing about the others', and are mostly shorter than expected.
    """

    model: str
    number: int = 1
    of: int = 1
    findings: int = 0
    done: int = 0
    left: dict[str, float] = field(default_factory=dict)
    runs: frozenset[str] = frozenset()
    _expected: dict[bool, float] = field(default_factory=lambda: {True: 0.0, False: 0.0})
    _took: dict[bool, float] = field(default_factory=lambda: {True: 0.0, False: 0.0})

    @property
    def name(self) -> str:
        return self.model if self.of == 1 else f"{self.model} ({self.number} of {self.of})"

    def took(self, finding: str, seconds: float) -> None:
        if finding in self.left:
            self._expected[finding in self.runs] += self.left.pop(finding)
            self._took[finding in self.runs] += seconds

    def seconds_of(self, finding: str) -> float:
        kind = finding in self.runs
        scale = self._took[kind] / self._expected[kind] if self._expected[kind] else 1.0
        return scale * self.left.get(finding, 0.0)


@dataclass
class Row:
    tally: Tally
    what: str
    begun: float
    measures: bool = True
    said: str = ""
    progress: Progress | None = None


class Display:
    def __init__(self, report: Report, clock: Callable[[], float] = time.monotonic) -> None:
        self.report = report
        self.rows: dict[str, Row] = {}
        self._clock, self._waiting, self._reported, self._last = clock, set[str](), set[str](), ""

    def begin(self, worker: str, tally: Tally, what: str, *, measures: bool = True) -> None:
        self.rows[worker] = Row(tally, what, self._clock(), measures)

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
        row = self.rows.pop(worker, None)
        if row is not None and row.measures:
            row.tally.took(row.what, self._clock() - row.begun)

    def wait_for(self, model: str) -> None:
        if model not in self._waiting:
            self._waiting.add(model)
            self.report(f"{model}: waiting for another run to finish with its results")

    def in_words(self) -> str:
        return "; ".join(
            f"{rows[0].tally.name}: {', '.join(row.said or row.what for row in rows)}{self._so_far(rows)}"
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

    def _so_far(self, rows: list[Row]) -> str:
        tally = rows[0].tally
        if not tally.findings:
            return ""
        return f", {tally.done} of {tally.findings} findings, {in_minutes(self._seconds_left(tally, rows))} left"

    def _seconds_left(self, tally: Tally, rows: list[Row]) -> float:
        at_work = {row.what: row for row in rows if row.measures}
        waiting = sum(tally.seconds_of(finding) for finding in list(tally.left) if finding not in at_work)
        now = [self._seconds_of(row) for row in at_work.values()]
        return max([waiting / max(1, len(rows)) + sum(now) / max(1, len(now)), *now])

    def _seconds_of(self, row: Row) -> float:
        if row.progress is not None:
            return row.progress.seconds_left
        return max(0.0, row.tally.seconds_of(row.what) - (self._clock() - row.begun))


class TableDisplay(Display):
    def table(self) -> "Table":
        from rich.table import Table
        from rich.text import Text

        so_far = [f"{rows[0].tally.name}{self._so_far(rows)}" for rows in self._by_model()]
        caption = Text(printable("\n".join(so_far)), justify="left")
        table = Table("model", "finding", "state", "time", caption=caption, expand=True)
        for row in list(self.rows.values()):
            state = row.said or ("computing" if row.measures else "at work")
            table.add_row(*(Text(printable(cell)) for cell in (row.tally.name, row.what, state, self._time_of(row))))
        return table

    def _time_of(self, row: Row) -> str:
        if row.progress is None:
            return f"{self._clock() - row.begun:.0f} s so far"
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
