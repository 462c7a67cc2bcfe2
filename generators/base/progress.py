"""Lines on the progress: a bar on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[str], None]


def silent(line: str) -> None:
    """Report to nobody."""


def printable(text: str) -> str:
    """Return text whose characters a terminal shows and none of which it obeys."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


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
