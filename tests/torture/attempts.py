"""What all attempts came to, as Methods shows it."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import typer

from tests.nulls import renewed, today, write_record


class Attempt(NamedTuple):
    """What an attempt of some kind came to, and the seconds and bytes that its process took."""

    kind: str
    outcome: str
    seconds: float = 0.0
    memory: int = 0


def count_up(
    path: Path | None,
    attempts: Iterable[Attempt],
    outcomes: Iterable[str],
    jobs: int,
    some: bool = False,
    **more: Any,
) -> None:
    """Count what attempts came to, by kind, and write it if there is a path.

    Where only some kinds were tried, the others stay as they were written. Raises typer.Exit: one broke.
    """
    begin, counts, longest, most = time.monotonic(), defaultdict(Counter), 0.0, 0
    for one in attempts:
        if one.kind not in counts:
            print(one.kind, flush=True)
        counts[one.kind][one.outcome] += 1
        longest, most = max(longest, one.seconds), max(most, one.memory)
    kinds = {kind: {what: count[what] for what in (*outcomes, "broke")} for kind, count in counts.items()}
    print("\n".join(f"{kind}: {count}" for kind, count in kinds.items()))
    took = {"seconds": round(time.monotonic() - begin), "processes": jobs}
    took |= {"longest_seconds": longest, "most_bytes": most}
    found = {**today(), **more, "took": took, "kinds": kinds}
    if path and some:
        stored = json.loads(path.read_text("utf-8"))
        found = stored | {"kinds": stored["kinds"] | kinds, "renewed": renewed(stored, kinds)}
    if path:
        write_record(path, found)
    if any(count["broke"] for count in kinds.values()):
        raise typer.Exit(1)
