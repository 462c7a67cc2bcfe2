"""What the commands that train have in common: their options, how they start, and what they say when they can't."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from models.training.corpus import Encoded, LibraryFiles, encoded, read_library

ROOT = Path(__file__).resolve().parents[2]

Device = Annotated[str, typer.Option(help="cpu, cuda or mps. The published weights were made on cpu.")]
Library = Annotated[Path | None, typer.Option(help="The folder of a standard library; this Python's own.")]
Out = Annotated[Path, typer.Option(help="Where the model is written.")]
Work = Annotated[Path, typer.Option(help="Where the checkpoint is stored.")]


@contextmanager
def sentences(console: Console) -> Iterator[None]:
    """Say in a sentence what is wrong with the text, the checkpoint or the device, and end with status 2.

    Raises:
        typer.Exit: something was.
    """
    try:
        yield
    except (FileNotFoundError, ValueError, RuntimeError, AssertionError) as problem:
        # AssertionError: how a PyTorch that was built without CUDA says so
        console.print(str(problem))
        raise typer.Exit(2) from problem


def steady(threads: int, device: str) -> None:
    """Let nothing but the recipe decide the numbers, as far as `device` can."""
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=device != "cpu")


def read(library: Path | None, console: Console) -> tuple[LibraryFiles, Encoded]:
    """Return the standard library's text and its tokens, and say how much that is.

    Raises:
        FileNotFoundError: `library` is not a whole one.
    """
    corpus = read_library(library)
    text = encoded(corpus)
    console.print(
        f"{len(corpus.trained)} files, {len(text.trained):,} tokens; "
        f"{(text.counts == 0).sum()} of {len(text.counts)} tokens never seen."
    )
    return corpus, text
