"""`make crash`: the disk fails, or the process is killed, at every step that writes; nothing stored is lost.

What is stored must be whole afterwards, each finding as it was or as it should be, and the next run must finish the
work, with the same bytes as an undisturbed one. `results/crash.json` keeps what came out.
"""

import errno
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from generators import findings as all_findings
from generators.compute import schedule
from generators.compute.results import LOCK, Store
from generators.compute.verify import verify
from generators.site import build, report  # noqa: F401  # every module that looks at all findings
from tests.checkpoints import SMALL, write_checkpoint
from tests.torture.attempts import BROKE, count_up
from tests.torture.processes import GIBI, Ended, atlas, files_in, in_child

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "crash.json"
FAULTS = {
    "killed": None,
    "killed halfway through a write": None,
    "disk full": errno.ENOSPC,
    "disk full halfway through a write": errno.EFBIG,
    "error of the disk": errno.EIO,
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
HALF = 4  # bytes that a file takes before the disk is full
SECONDS = 600  # of CPU for a command
QUICK = "channels", "gains", "outliers", "position_scheme", "blurred", "position_reading", "token_svd", "zero_layer"
FEW = tuple(finding for finding in all_findings.FINDINGS if finding.name in QUICK)
MIXED = " are of different weights"  # not all are replaced yet
LONG_AGO = "2020-01-01"  # so `adopt` takes what is new for better
COMPUTE = ("compute", "./model", *(part for name in QUICK for part in ("--only", name)), "--results", "results")


def place(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


class FailingDisk:
    """Lets the step number `at` (0: none) that writes into a folder fail, or a write after it.

    Steps are: a file opened to be written, brought to the disk, renamed or removed, a folder made or removed. An
    audit hook hears of each before it is done, and can't be removed: this is for a process that ends soon.
    """

    def __init__(self, folder: Path, at: int = 0, fault: str = "killed") -> None:
        self.folder, self.at, self.fault = folder.resolve(), at, fault
        self.steps: list[str] = []

    def install(self) -> None:
        if self.fault.startswith("killed"):
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, and an error comes instead
        sync = os.fsync
        os.fsync = lambda file: (self._step("fsync", place(file)), sync(file))[1]
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike) and arguments[2] & WRITING:
            self._step("open", arguments[0])
        elif event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir"):
            folder = arguments[-1]  # shutil.rmtree names what is in a folder by the folder's descriptor
            inside = place(folder) if folder >= 0 else Path()
            self._step(event.removeprefix("os."), Path(inside, os.fsdecode(arguments[0])))

    def _step(self, kind: str, path: Any) -> None:
        if not Path(os.fsdecode(path)).absolute().is_relative_to(self.folder):
            return
        self.steps.append(kind)
        if len(self.steps) != self.at:
            return
        if "halfway" in self.fault:
            resource.setrlimit(resource.RLIMIT_FSIZE, (HALF, resource.RLIM_INFINITY))
        elif self.fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            raise OSError(FAULTS[self.fault], os.strerror(FAULTS[self.fault]), str(path))


@dataclass(frozen=True)
class Command:
    """A command: in which folder its steps count, what is copied there before, where results may be afterwards."""

    argv: tuple[str, ...]
    folder: str = "results"
    before: tuple[tuple[str, str], ...] = ()
    stored: tuple[str, ...] = ("results",)
    one_in: int = 1


COMMANDS = {
    "compute over old results": Command(COMPUTE, before=(("old", "results"),)),
    "adopt over old results": Command(("adopt", "new", "--results", "results"), before=(("old", "results"),)),
    "adopt of local results": Command(("adopt",), before=(("old", "results"), ("new", "results/local"))),
    "report": Command(
        ("report", "./model", "--skip-runs", "--jobs", "1", "--output", "out/report"),
        "out",
        (("old", "out/report/.results"),),
        ("out/report/.results", "out/.report.old/.results"),
        one_in=9,
    ),
    "render": Command(("render", "--results", "new"), ".", stored=("new",), one_in=9),
}


@dataclass(frozen=True)
class World:
    """A project with a model, results `old` of the weights that it had, and results `new` of those it has."""

    project: Path

    def start(self, command: Command) -> None:
        for name in ("results", "out", "site", ".pages", ".cache"):
            shutil.rmtree(self.project / name, ignore_errors=True)
        (self.project / "out").mkdir()
        for source, to in command.before:
            shutil.copytree(self.project / source, self.project / to)

    def ran(self, command: Command, at: int = 0, fault: str = "killed") -> Ended:
        """Run a command with a fault at one step, or none; it returns its steps."""

        def act() -> list[str]:
            os.chdir(self.project)
            schedule.all_findings = SimpleNamespace(FINDINGS=FEW)  # what `report` measures; pages show all
            disk = FailingDisk(self.project / command.folder, at, fault)
            disk.install()
            atlas(*command.argv)
            return disk.steps

        return in_child(act, SECONDS, 16 * GIBI)

    def stored(self, places: Iterable[str]) -> dict[str, bytes]:
        """Return what is stored of the model in the first place where it is, but for what belongs to the lock."""
        for folder in (self.project / place / "model" for place in places):
            if (folder / "model.json").is_file():
                return files_in(folder, LOCK)
        return {}

    def check_stored(self, command: Command, new: dict[str, bytes]) -> None:
        """Raise AssertionError if something stored is lost, damaged, or neither old nor new."""
        there = [place for place in command.stored if (self.project / place).is_dir()]
        for place in there[:1]:  # the command was about to remove a later one
            wrong = [sentence for _, sentence in verify(Store(self.project / place))]
            assert not [one for one in wrong if not command.before or MIXED not in one], wrong
        old, left = self.stored(source for source, _ in command.before), self.stored(command.stored)
        for name in (name for name in left if name.endswith(".json")):
            assert left[name] in (old.get(name), new.get(name)), f"{name} is neither old nor new"
        missing = {f"{name}.json" for name in ("model", *QUICK)} - {*left}
        assert not (command.before and missing), f"{missing} is gone"

    def attempt(self, name: str, new: dict[str, bytes], at: int, fault: str) -> tuple[str, str]:
        """Let one step of a command fail; return which, and what came of it: it broke if anything is lost."""
        command, kind = COMMANDS[name], f"{name}: {fault}"
        try:
            self.start(command)
            ended = self.ran(command, at, fault)
            assert ended.is_sound or ended.signal in (signal.SIGKILL, signal.SIGXFSZ), ended.said
            self.check_stored(command, new)
            again = self.ran(command)
            assert again.code == 0, again.said
            assert self.stored(command.stored) == new, "the next run left other files"
        except AssertionError as error:
            print(f"--- {kind}, step {at}: {error}", flush=True)
            return kind, BROKE
        return kind, "killed" if ended.signal else "sentence" if ended.code else "finished"


def world(project: Path) -> World:
    entry = {"name": "model", "title": "Model", "sources": [{"folder": "model"}]}
    (project / "models.yml").write_text(yaml.safe_dump([entry]))
    shutil.copy(ROOT / "mkdocs.yml", project)
    shutil.copytree(ROOT / "site_src", project / "site_src", ignore=shutil.ignore_patterns("notebooks"))
    made = World(project)
    for seed, results in enumerate(("old", "new")):
        write_checkpoint(project / "model", sizes=SMALL, seed=seed)
        ended = made.ran(Command((*COMPUTE[:-1], results)))
        assert ended.code == 0, ended.said
    old = Store(project / "old")
    for record, arrays in [old.load("model", finding) for finding in old.finding_names("model")]:
        old.save_finding("model", record.model_copy(update={"computed_on": LONG_AGO}), arrays)
    return made


def tried(most: int) -> Iterator[tuple[str, str]]:
    """Let MOST steps of each command fail, or fewer of those that take long."""
    with tempfile.TemporaryDirectory() as folder:
        made = world(Path(folder))
        for name, command in COMMANDS.items():
            made.start(command)
            undisturbed = made.ran(command)
            assert undisturbed.code == 0, undisturbed.said
            numbered, new = list(enumerate(undisturbed.gave, 1)), made.stored(command.stored)
            possible = [
                (at, fault) for fault in FAULTS for at, kind in numbered if kind == "open" or "half" not in fault
            ]
            chosen = possible[:: -(-len(possible) * command.one_in // most)]
            print(f"{name}: {len(chosen)} faults of {len(possible)}", flush=True)
            yield from (made.attempt(name, new, at, fault) for at, fault in chosen)


def crash(most: int = 280, write: bool = False) -> None:
    """Faults at MOST steps of each command, or at fewer of those that take long; --write: into results/crash.json."""
    count_up(RESULTS if write else None, tried(most))
