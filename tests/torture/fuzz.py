"""`make fuzz`: damaged, hostile and absurd files, one after another; each gives a right result or a sentence.

A mutant is made from a sound project by a kind and a seed. `results/fuzz.json` keeps what came out.
"""

import atexit
import gc
import os
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import typer

from tests.torture import commands
from tests.torture.attempts import BROKE, count_up
from tests.torture.kinds import KINDS, mutate, write_project
from tests.torture.processes import GIBI, Ended, in_child

RESULTS = Path(__file__).parents[2] / "results" / "fuzz.json"
SECONDS, BYTES = 120, 2 * GIBI  # a limit of CPU so generous that a slow machine stays below it


@cache
def sound_project() -> Path:
    """Return a project's folder, made in this process: its children have all libraries and templates, then."""
    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place)
    write_project(place)
    shutil.rmtree(place / ".pages", ignore_errors=True)  # made anew sooner than copied
    gc.freeze()  # or each child would walk through all that, and so copy it
    return place


def mutant(kind: str, seed: int, way: int | None = None) -> Ended:
    """Return how a process ended that used a sound project with something damaged."""
    seeds, each = [seed, *kind.encode()], KINDS[kind]
    with tempfile.TemporaryDirectory() as folder, commands.quickly():
        sound, place = sound_project(), Path(folder, "in", "project")

        def act() -> None:
            shutil.copytree(sound, place)
            (place / ".sound").symlink_to(sound / "results")
            mutate(place, each, np.random.default_rng(seeds), way)
            each.use(place, np.random.default_rng([*seeds, 1]))

        return in_child(act, SECONDS, BYTES)


def outcome(kind: str, seed: int) -> tuple[str, str]:
    """Return a mutant's kind and what came of it; print it if it broke something."""
    end = mutant(kind, seed)
    if end.is_sound:
        return kind, "sentence" if end.code else "result"
    print(f"--- {kind}, seed {seed}\n{end.said}", flush=True)
    return kind, BROKE


def fuzz(
    mutants: int = 20,
    first: int = 0,
    jobs: int = os.cpu_count() or 1,
    kind: list[str] = typer.Option(list(KINDS)),  # noqa: B008
    write: bool = False,
) -> None:
    """MUTANTS damaged, hostile and absurd files of each kind; --write: all kinds' outcomes into results/fuzz.json."""
    tried = [(name, seed) for name in kind for seed in range(first, first + mutants)]
    with commands.quickly():
        sound_project()
        with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
            ends = pool.map(outcome, *zip(*tried, strict=True))
            path = RESULTS if write and len(kind) == len(KINDS) else None
            count_up(path, ends, limits={"seconds": SECONDS, "bytes": BYTES})
