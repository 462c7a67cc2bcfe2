"""`make fuzz`: damaged, hostile and absurd files, one after another; each gives a right result or a sentence.

A mutant is made from a sound project by a kind and a seed. `results/fuzz.json` keeps what came out.
"""

import atexit
import gc
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import typer

from tests.nulls import today, write_record
from tests.torture import commands
from tests.torture.kinds import KINDS, PROJECTS, Kind, mutate
from tests.torture.processes import GIBI, Ended, Taken, in_all, in_child

RESULTS = Path(__file__).parents[2] / "results" / "fuzz.json"
SECONDS, BYTES = 120, 2 * GIBI  # a limit of CPU so generous that a slow machine stays below it
SOUND = Kind(use=commands.compute_all)


@cache
def sound_projects() -> Path:
    """Return a folder of projects, made in this process: its children have all libraries and templates, then."""
    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place)
    for name, write in PROJECTS.items():
        (place / name).mkdir()
        write(place / name)
        shutil.rmtree(place / name / ".pages", ignore_errors=True)  # made anew sooner than copied
    gc.freeze()  # or each child would walk through all that, and so copy it
    return place


def ended(change: Callable[[Path], Any], kind: Kind = SOUND, seed: Sequence[int] = (0,)) -> Ended:
    """Return how a process ended that used a sound project, changed."""
    with tempfile.TemporaryDirectory() as folder, commands.quickly():
        sound, place = sound_projects(), Path(folder, "in", "project")

        def act() -> None:
            shutil.copytree(sound / kind.project, place)
            (place / ".sound").symlink_to(sound / "one" / "results")
            change(place)
            kind.use(place, np.random.default_rng([*seed, 1]))

        return in_child(act, SECONDS, BYTES)


def mutant(kind: str, seed: int, way: int | None = None) -> Ended:
    seeds = [seed, *kind.encode()]
    change = partial(mutate, kind=KINDS[kind], rng=np.random.default_rng(seeds), way=way)
    return ended(change, KINDS[kind], seeds)


def outcome(kind: str, seed: int) -> tuple[str, Taken]:
    """Return what came of one mutant and what it took; print it if it broke something."""
    end = mutant(kind, seed)
    if not end.is_sound:
        print(f"--- {kind}, seed {seed}\n{end.said}", flush=True)
    return "broke" if not end.is_sound else "sentence" if end.code else "result", end.taken


def fuzz(
    mutants: int = 20,
    first: int = 0,
    jobs: int = os.cpu_count() or 1,
    kind: list[str] = typer.Option(list(KINDS)),  # noqa: B008
    write: bool = False,
) -> None:
    """MUTANTS damaged, hostile and absurd files of each kind; --write keeps what came out in results/fuzz.json."""
    begin, taken, kinds = time.monotonic(), [], {}
    with commands.quickly():
        sound_projects()
        with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
            for name in kind:
                tried = range(first, first + mutants)[:: KINDS[name].one_in]
                ends = list(pool.map(outcome, repeat(name), tried))
                count, seconds = Counter(what for what, _ in ends), sum(each.seconds for _, each in ends)
                kinds[name] = {what: count[what] for what in ("result", "sentence", "broke")}
                taken += [each for _, each in ends]
                print(f"{name}: {kinds[name]}, {seconds / len(ends):.2f} s each", flush=True)
    record = {**today(), "limits": {"seconds": SECONDS, "bytes": BYTES}, **in_all(begin, jobs, taken), "kinds": kinds}
    if write and len(kind) < len(KINDS):  # the others stay, and the commit of those tried anew is noted
        stored = json.loads(RESULTS.read_text("utf-8"))
        renewed = stored.get("renewed", {}) | dict.fromkeys(kind, record["commit"])
        record = stored | {"kinds": stored["kinds"] | record["kinds"], "renewed": renewed}
    if write:
        write_record(RESULTS, record)
    if any(count["broke"] for count in record["kinds"].values()):
        raise typer.Exit(1)
