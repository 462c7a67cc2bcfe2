"""Faults in more commands than `atlas compute`, for `make crash`: two processes, adopting, a report, a site."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml

from generators import findings as all_findings
from generators.compute.results import HOLDER, LOCK, Store
from generators.compute.verify import verify
from tests.crash import MODEL, NAMES, Ended, World, places, run_of

ROOT = Path(__file__).parents[1]
ONLY = tuple(part for name in NAMES for part in ("--only", name))
MARK = "ATLAS_CRASH"  # in the environment of a command and of the processes that it starts
PATIENCE_S = 20  # for these to end


@dataclass(frozen=True)
class Command:
    """A command: in which folder its steps count, what is there before, and where results may be afterwards.

    `few` findings are enough for it, unless it makes the pages of all.
    """

    argv: tuple[str, ...]
    folder: str
    before: tuple[tuple[str, str], ...]  # copies: from, to
    stored: tuple[str, ...]
    few: bool = True


COMMANDS = {
    "compute --jobs 2": Command(
        ("compute", f"./{MODEL}", *ONLY, "--jobs", "2", "--results", "results"),
        "results",
        (("old", "results"),),
        ("results",),
    ),
    "adopt": Command(("adopt", "new", "--results", "results"), "results", (), ("results",)),
    "report": Command(
        ("report", f"./{MODEL}", "--skip-runs", "--output", "out/report"),
        "out",
        (("old", "out/report/.results"),),
        ("out/report/.results", "out/.report.old/.results"),
    ),
    "render": Command(("render", "--results", "new"), ".", (), ("new",), few=False),
}


def prepared(world: World) -> World:
    """Give a project what a site is made from: a registry, and hand-written pages without notebooks."""
    entry = {"name": MODEL, "title": "Model", "sources": [{"folder": MODEL}]}
    (world.project / "models.yml").write_text(yaml.safe_dump([entry]))
    shutil.copy(ROOT / "mkdocs.yml", world.project)
    shutil.copytree(
        ROOT / "site_src",
        world.project / "site_src",
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("notebooks"),
    )
    return world


def start(world: World, command: Command) -> None:
    """Put what a command shall find in place."""
    for name in ("results", "out", "site", ".pages", ".cache"):
        shutil.rmtree(world.project / name, ignore_errors=True)
    (world.project / "out").mkdir()
    for source, to in command.before:
        shutil.copytree(world.project / source, world.project / to)


def ran(world: World, command: Command, at: int = 0, fault: str | None = None) -> Ended:
    """Run a command with a fault at one step, or none, with few findings where these are enough.

    What it started must end with it.

    Raises AssertionError: a process of it is left.
    """
    mark = f"{os.getpid()}-{time.monotonic_ns()}"

    def prepare() -> None:
        os.environ[MARK] = mark
        if not command.few:
            return
        every = all_findings.FINDINGS
        chosen = tuple(finding for finding in every if finding.name in NAMES)
        for module in list(sys.modules.values()):
            if getattr(module, "FINDINGS", None) is every:
                module.FINDINGS = chosen  # type: ignore[attr-defined]

    ended = run_of(world.project, command.argv, command.folder, at, fault, prepare)
    _, left = psutil.wait_procs(_marked(mark), timeout=PATIENCE_S)
    for process in left:
        process.kill()
    assert not left, f"{len(left)} processes outlived the command"
    return ended


def _marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                found.append(process)
        except psutil.Error:
            continue
    return found


def stored(world: World, command: Command) -> dict[str, bytes]:
    """Return what is stored of the model, wherever it is, but for what belongs to the lock."""
    for place in command.stored:
        folder = world.project / place / MODEL
        if (folder / "model.json").is_file():
            kept = (path for path in folder.rglob("*") if path.is_file() and path.name not in (LOCK, HOLDER))
            return {path.relative_to(folder).as_posix(): path.read_bytes() for path in kept}
    return {}


def outcome(world: World, command: Command, expected: dict[str, bytes], at: int, fault: str) -> str:
    """Let one step go wrong; return what came of it: `killed`, `sentence` or `finished`.

    Raises:
        AssertionError: a stored result is lost or damaged, a process is left, or the next run doesn't finish.
    """
    start(world, command)
    ended = ran(world, command, at, fault)
    if ended.signal is not None:
        assert ended.signal == signal.SIGKILL
        what = "killed"
    else:
        assert "Traceback" not in ended.said, ended.said
        what = "finished" if ended.code == 0 else "sentence"
        assert what == "finished" or ended.said.strip(), "it failed without a word"
    there = [world.project / place for place in command.stored if (world.project / place).is_dir()]
    for place in there[:1]:  # a later one is what the command was about to remove
        problems = [sentence for _, sentence in verify(Store(place))]
        assert problems == [], problems
    if command.before:
        assert {f"{name}.json" for name in NAMES} <= {*stored(world, command)}, "a finding is gone"
    again = ran(world, command)
    assert again.code == 0, again.said
    assert stored(world, command) == expected, "the next run's results are others"
    return what


def tried(world: World, name: str, most: int) -> list[tuple[str, str]]:
    """Return (fault, outcome) of at most so many faults, spread over a command's steps; what broke is printed."""
    command = COMMANDS[name]
    start(world, command)
    first = ran(world, command)
    assert first.code == 0, first.said
    expected, every = stored(world, command), places(first.steps)
    found = []
    for at, fault in spread(every, most):
        try:
            what = outcome(world, command, expected, at, fault)
        except AssertionError as error:
            what = "broke"
            print(f"--- {fault}, step {at}, {name}: {error}", flush=True)
        found.append((fault, what))
    return found


def spread(every: Sequence[tuple[int, str]], most: int) -> list[tuple[int, str]]:
    """Return at most so many, evenly spaced."""
    return [every[i * len(every) // most] for i in range(most)] if len(every) > most else list(every)
