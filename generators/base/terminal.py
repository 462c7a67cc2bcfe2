"""What stands on a terminal: tables, sentences, verdicts in colour. Text from elsewhere is shown, never obeyed."""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from generators.base.progress import printable
from generators.base.verdicts import LOOKS

LONGEST = 4000  # characters per sentence: a checkpoint's config may put a megabyte into one
INTERRUPTED = 130  # the exit code after Ctrl-C
# Red is for errors: that a claim fails is a result.


def make_outputs_take_everything() -> None:
    """Write nowhere in place of a closed stderr, and question marks for signs that an output's encoding lacks."""
    if len(width := os.environ.get("COLUMNS", "")) > 4 or not width.isdecimal():  # Rich fills lines up to it
        os.environ.pop("COLUMNS", None)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # closed ones, and those of tests, are none
            stream.reconfigure(errors="replace")


def line(text: str = "") -> None:
    typer.echo(printable(text))


def note(text: str) -> None:
    typer.echo(printable(text), err=True)


def sentence(error: object) -> None:
    said = str(error)
    if len(said) > LONGEST:
        said = f"{said[: LONGEST // 2]} … {said[-LONGEST // 2 :]}"
    typer.echo(typer.style("atlas: ", fg="red") + printable(said), err=True)


def verdict(kind: str, symbol: str, in_words: str, statement: str, answer: str) -> None:
    """Print a claim: its verdict, the statement, and the sentence about this model."""
    word = typer.style(f"{symbol} {in_words:<8}", fg=LOOKS[kind].terminal, bold=True)
    typer.echo(f"\n{word}  {printable(statement)}")
    typer.echo(f"            {printable(answer)}")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not sys.stdout.isatty():
        for row in rows:
            typer.echo("\t".join(map(printable, row)))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(*columns)
    for row in rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    Console().print(drawn)


class Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            note(f"Stopped. {stop}".rstrip())
            raise typer.Exit(INTERRUPTED) from None
