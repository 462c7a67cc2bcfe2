"""What all attempts came to, as Methods shows it."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from tests.nulls import today, write_record

BROKE = "broke"


def count_up(path: Path | None, attempts: Iterable[tuple[str, str]], **more: Any) -> None:
    """Count outcomes by kind, and write them if there is a path. Raises typer.Exit: one broke."""
    kinds: dict[str, dict[str, int]] = defaultdict(Counter)
    for kind, outcome in attempts:
        kinds[kind][outcome] += 1
    print("\n".join(f"{kind}: {dict(count)}" for kind, count in kinds.items()))
    if path:
        write_record(path, {**today(), **more, "kinds": kinds})
    if any(count[BROKE] for count in kinds.values()):
        raise typer.Exit(1)
