"""`make crash`: the disk fails, or the process ends, at every step of a run that writes; nothing stored is lost.

A small model's results, old ones or none, are computed anew while one step after another goes wrong (see
`tests/faults.py`). Then what is stored must be whole, each finding as it was or as it should be, and the next run
must finish the work, with the same bytes as an undisturbed one. `results/crash.json` keeps what came out, and
`tests/test_crash.py` tries a few.
"""

import argparse
import contextlib
import io
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

from generators import cli
from generators.compute.results import HOLDER, LOCK, Store
from generators.compute.verify import verify
from tests.checkpoints import SMALL, write_checkpoint
from tests.faults import FAULTS, ONLY_WRITES, FailingDisk
from tests.nulls import today, write_record
from tests.processes import in_fork

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "crash.json"
NAMES = ("helix", "channels", "gains", "attention")  # what is added to the atlas later makes no run longer
MODEL = "model"
BEFORE = {"over old results": "old", "into an empty folder": None}  # what a run finds, and where that is


@dataclass(frozen=True)
class Ended:
    """How a process ended: by which signal if any, with which code, what it said, which steps it took."""

    signal: int | None
    code: int
    said: str
    steps: tuple[str, ...]


def in_child(act: Callable[[], dict[str, Any]]) -> Ended:
    """Run `act` in a process of its own; what it returns are fields of `Ended`."""
    found, status = in_fork(act)
    if os.WIFSIGNALED(status):
        return Ended(os.WTERMSIG(status), -1, "", ())
    return Ended(None, found["code"], found["said"], tuple(found["steps"]))


def run_of(
    project: Path,
    argv: Sequence[str],
    folder: str,
    at: int = 0,
    fault: str | None = None,
    before: Callable[[], None] = lambda: None,
) -> Ended:
    """Run a command in a process of its own, with a fault at one step that writes into a folder, or none.

    `before` is called there first.
    """

    def act() -> dict[str, Any]:
        os.chdir(project)
        before()
        disk = FailingDisk(project / folder, at, FAULTS[fault] if fault else None)
        said, code = io.StringIO(), 0
        sys.argv = ["atlas", *argv]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            disk.install()
            try:
                cli.main()
            except SystemExit as end:
                code = int(end.code or 0)
            except BaseException:  # what a terminal would show
                code = 1
                traceback.print_exc()
        return {"code": code, "said": said.getvalue()[-4000:], "steps": disk.steps}

    return in_child(act)


def computing(project: Path, results: str = "results", at: int = 0, fault: str | None = None) -> Ended:
    """Compute the model, with a fault at one step, or none; the process is one of its own."""
    only = [part for name in NAMES for part in ("--only", name)]
    return run_of(project, ["compute", f"./{MODEL}", *only, "--results", results], results, at, fault)


@dataclass(frozen=True)
class World:
    """A project with a model, results `old` of the weights that it had, and results `new` of those it has."""

    project: Path

    def files(self, results: str) -> dict[str, bytes]:
        """Return what is stored, by name."""
        folder = self.project / results / MODEL
        found = folder.rglob("*") if folder.is_dir() else ()
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found if path.is_file()}

    def start(self, before: str) -> None:
        """Put what a run shall find into `results`."""
        shutil.rmtree(self.project / "results", ignore_errors=True)
        old = BEFORE[before]
        if old is not None:
            shutil.copytree(self.project / old, self.project / "results")

    def steps(self, before: str) -> tuple[str, ...]:
        """Return the steps of an undisturbed run."""
        self.start(before)
        return computing(self.project).steps


def world(project: Path) -> World:
    """Make one. Raises AssertionError: a run without faults fails."""
    (project / "models.yml").write_text("[]")
    for seed, results in enumerate(("old", "new")):
        write_checkpoint(project / MODEL, sizes=SMALL, seed=seed)
        ended = computing(project, results)
        assert ended.code == 0, ended.said
    return World(project)


def outcome(world: World, before: str, at: int, fault: str) -> str:
    """Let one step of a run go wrong; return what came of it: `killed`, `sentence` or `finished`.

    Raises:
        AssertionError: something stored is damaged or neither old nor new, or the next run doesn't finish the work.
    """
    world.start(before)
    ended = computing(world.project, at=at, fault=fault)
    if ended.signal is not None:
        assert ended.signal == signal.SIGKILL
        what = "killed"
    else:
        assert "Traceback" not in ended.said, ended.said
        what = "finished" if ended.code == 0 else "sentence"
        assert what == "finished" or ended.said.strip(), "it failed without a word"
    check_stored(world, before)
    again = computing(world.project)
    assert again.code == 0, again.said
    expected, left = world.files("new"), world.files("results")
    for of_the_lock in (LOCK, HOLDER):  # no result; who held the lock last may stay where nothing is left to do
        for files in (expected, left):
            files.pop(of_the_lock, None)
    assert {*left} == {*expected}, f"missing, or left behind: {sorted({*left} ^ {*expected})}"
    assert left == expected, "the next run's results are others"
    return what


def check_stored(world: World, before: str) -> None:
    """Check that whatever is stored is whole, and old or new. Raises AssertionError."""
    store = Store(world.project / "results")
    problems = [sentence for _, sentence in verify(store)]
    assert problems == []
    old = BEFORE[before]
    whole = [*world.files("new").items(), *(world.files(old).items() if old else ())]
    for name, content in world.files("results").items():
        if name.endswith(".json"):
            assert (name, content) in whole, f"{name} is neither old nor new"
    if old is not None:
        assert store.model(MODEL) is not None, "the model is gone"
        assert {*NAMES} <= {*store.finding_names(MODEL)}, "a finding is gone"


def places(steps: Iterable[str]) -> list[tuple[int, str]]:
    """Return every (step, fault) that can be tried on a run of these steps."""
    numbered = list(enumerate(steps, 1))
    return [(at, fault) for fault in FAULTS for at, kind in numbered if kind == "write" or fault not in ONLY_WRITES]


def tried(every: int = 1, most: int = 0) -> dict[str, Counter[str]]:
    """Return how often each outcome came of each fault, at every step or at some; what broke is printed.

    `most`: of each command beside `compute`.
    """
    from tests import crash_commands as others

    found: dict[str, Counter[str]] = {fault: Counter() for fault in FAULTS}
    with tempfile.TemporaryDirectory() as folder:
        made = world(Path(folder))
        for before in BEFORE:
            for at, fault in places(made.steps(before))[::every]:
                try:
                    what = outcome(made, before, at, fault)
                except AssertionError as error:
                    what = "broke"
                    print(f"--- {fault}, step {at}, {before}: {error}", flush=True)
                found[fault][what] += 1
            print(f"{before}: { ({fault: dict(count) for fault, count in found.items()}) }", flush=True)
        for name in others.COMMANDS if most else ():
            came = others.tried(others.prepared(made), name, most)
            for fault, what in came:
                found[fault][what] += 1
            print(f"{name}: {dict(Counter(what for _, what in came))}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="try only every so many of the faults")
    parser.add_argument("--most", type=int, default=40, help="faults of each of the other commands")
    parser.add_argument("--write", action="store_true", help="keep the figures in results/crash.json")
    chosen = parser.parse_args()
    began = time.monotonic()
    found = tried(chosen.every, chosen.most)
    if chosen.write:
        outcomes = ("killed", "sentence", "finished", "broke")
        faults = {fault: {what: count[what] for what in outcomes} for fault, count in found.items()}
        write_record(RESULTS, {**today(), "kinds": faults})
    print(f"{sum(sum(count.values()) for count in found.values())} faults in {time.monotonic() - began:.0f} s")
    sys.exit(1 if any(count["broke"] for count in found.values()) else 0)


if __name__ == "__main__":
    main()
