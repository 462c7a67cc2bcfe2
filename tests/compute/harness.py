"""Models to compute side by side, and workers that a test looks at: they do their jobs in this process."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from generators.base.display import Display
from generators.checkpoint.registry import FolderSource, HubSource, Model
from generators.checkpoint.sources import Places
from generators.compute.executors import Workers
from generators.compute.jobs import Answer, Died, Job, Measure, WorkerContext
from generators.compute.plan import Opened, open_model
from generators.compute.results import Store
from generators.compute.running import AS_USUAL, RunSettings
from generators.compute.schedule import Scheduler
from generators.compute.summary import Summary
from generators.findings.contract import Finding
from tests.checkpoints import Sizes, write_checkpoint
from tests.toy_findings import toy

FINDINGS = (
    toy("positions"),
    toy("tokens", needs=("token_embedding",)),
    toy("norms", needs=("blocks.*.ln2.gain",)),
    toy("relative", needs=("blocks.0.attn.relative_bias",)),  # which these models have not
)
MEASURED = [finding.name for finding in FINDINGS[:3]]
REAL = ("channels", "gains", "position_scheme")  # processes find these by name
ATLAS = [sys.executable, "-c", "from generators.cli import main; main()"]
# The command, saying when each finding is begun: what it says to a person comes every ten seconds.
SAYING = """
from generators.base.display import Display
from generators.cli import main

begin = Display.begin

def saying(self, worker, tally, what, *, measures=True):
    if measures:
        self.report(f"{tally.model}: computing {what}")
    begin(self, worker, tally, what, measures=measures)

Display.begin = saying
main()
"""
ONLY = [part for name in REAL for part in ("--only", name)]
SIZES = Sizes(n_layer=2, n_head=2, d_model=48, n_ctx=256)


class Recorded(Workers):
    """Workers of this process. They have done what they are given, or died of it, when they are next asked.

    `dies` is asked of every job whether its worker dies of it; `most` the jobs, and `used` the bytes, at a time;
    `lines` what was reported.
    """

    def __init__(self, count: int, memory: float = float("inf"), dies: Callable[[Job], bool] = lambda job: False):
        self.lines: list[str] = []
        self.display = Display(self.lines.append)
        names = [f"worker {number}" for number in range(count)]
        super().__init__(self.display, names, memory)
        self._dies, self._contexts = dies, {name: WorkerContext(share=0.0) for name in names}
        self.done: list[Job] = []
        self.most, self.used, self.closed = 0, 0, False

    def begin(self, worker: str, job: Job) -> None:
        assert worker not in self._running
        super().begin(worker, job)
        self.most = max(self.most, len(self._running))
        self.used = max(self.used, sum(job.need for job in self._running.values()))

    def answers(self, seconds: float) -> Iterator[tuple[str, Answer]]:
        begun, self._running = self._running, {}
        for worker, job in begun.items():
            if self._dies(job):
                yield worker, Died("its process ended (SIGKILL)")
                continue
            self.done.append(job)
            yield worker, self._contexts[worker].perform(job, partial(self.display.say, worker))

    def close(self) -> None:
        self.closed = True

    def measured(self) -> list[tuple[str, str]]:
        """Return model and finding of what was measured, in order."""
        return [(job.request.model.name, job.what) for job in self.done if isinstance(job, Measure)]


def raising(error: BaseException) -> Callable[..., Any]:
    def raises(*_: Any, **__: Any) -> Any:
        raise error

    return raises


def model_in(folder: Path, name: str = "tiny", **fields: Any) -> Model:
    return Model(name=name, title=name.title(), sources=(FolderSource(folder=folder),), **fields)


def at_hub() -> Model:
    return Model(name="tiny", title="Tiny", sources=(HubSource(hub="owner/tiny"),))


def opened_in(folder: Path, settings: RunSettings = AS_USUAL, **fields: Any) -> Opened:
    return open_model(model_in(folder, **fields), Places(), settings)


def in_folders(place: Path, count: int, **options: object) -> list[Model]:
    names = [f"model-{number}" for number in range(count)]
    return [model_in(write_checkpoint(place / name, seed=i, **options), name) for i, name in enumerate(names)]


def computed(
    models: list[Model],
    store: Store,
    workers: Recorded,
    findings: Sequence[Finding[Any]] | None = FINDINGS,
    settings: RunSettings = AS_USUAL,
) -> Summary:
    summary = Summary(store, workers.lines.append, named=True)
    Scheduler(Places(), store, workers, workers.display, settings).compute(models, findings, summary.add)
    return summary


def project(place: Path, count: int) -> list[str]:
    """Write a project with models large enough to take some time; return their names."""
    models = in_folders(place, count, sizes=SIZES)
    entries = "".join(f"- {{name: {m.name}, title: {m.name}, sources: [{{folder: {m.name}}}]}}\n" for m in models)
    (place / "models.yml").write_text(entries)
    return [model.name for model in models]


def compute(place: Path, results: str) -> None:
    subprocess.run([*ATLAS, "compute", *ONLY, "--results", results], cwd=place, check=True, capture_output=True)


def with_expected(place: Path, count: int) -> Path:
    """Write a project, and in `expected` its results as computing one model after another leaves them; return it."""
    project(place, count)
    compute(place, "expected")
    return place


def stored(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file() and path.name != ".lock")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def contents(folder: Path) -> dict[str, bytes]:
    """Return the results of a model, without what the store notes beside them."""
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*") if path.is_file()}


def started(place: Path, results: str, *options: str) -> "subprocess.Popen[str]":
    """Start computing a project's models, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", SAYING, "compute", *ONLY, "--results", results, *options],
        cwd=place,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        preexec_fn=heeding_ctrl_c,
    )


def heeding_ctrl_c() -> None:
    """Begin as a command in front does: what a script starts in the background takes no notice of Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
