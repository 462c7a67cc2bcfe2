"""Jobs: what one process does at a time of one model, and what comes of it. None writes results: who asks does.

A model is looked at (what will its jobs need?), then prepared (every tensor read and checked, every finding planned),
then measured, one finding a job. A process keeps the model open that it had last.
"""

import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy import ndarray as Array

from generators.base.errors import AtlasError, InputError
from generators.base.progress import Report, silent
from generators.checkpoint.registry import Model
from generators.checkpoint.sources import Places
from generators.compute import code, memory
from generators.compute.plan import Opened, Plan
from generators.compute.records import StoredFinding
from generators.compute.run import Prepared, answer, open_model, prepare
from generators.compute.running import Settings
from generators.findings.contract import Finding

Answer = Any  # of a job: what its `perform` returns, an AtlasError, or `Broken`


@dataclass(frozen=True)
class Given:
    """What all jobs of a model have in common. `session` is one run of the command: nothing is kept beyond it."""

    session: str
    model: Model
    places: Places
    settings: Settings


@dataclass(frozen=True)
class Needs:
    """How many bytes of memory it takes to plan a model's findings, and to measure each, by name."""

    to_plan: int
    to_measure: dict[str, int]


@dataclass(frozen=True, eq=False)
class Look:
    """Open a model and tell what its other jobs will need. Gives `Needs`."""

    given: Given
    findings: Sequence[Finding[Any]]
    need: int = memory.BASE
    what: str = field(default="opening", init=False)

    def perform(self, opened: Opened, report: Report) -> Needs:
        """Read the headers of its files."""
        each = {finding.name: memory.to_measure(finding, opened) for finding in self.findings}
        return Needs(memory.to_plan(self.findings, opened), each)


@dataclass(frozen=True, eq=False)
class Prepare:
    """Read and check every tensor of a model and plan its findings. Gives `Prepared`."""

    given: Given
    findings: Sequence[Finding[Any]]
    need: int
    what: str = field(default="reading weights", init=False)

    def perform(self, opened: Opened, report: Report) -> Prepared:
        """Read them."""
        return prepare(opened, self.findings, report)


@dataclass(frozen=True, eq=False)
class Measure:
    """Measure one finding. Gives its record and its arrays.

    `unfinished` is the folder for what a run of the model has got to, None where the process can't write there.
    """

    given: Given
    planned: Plan
    need: int
    unfinished: Path | None = None

    @property
    def what(self) -> str:
        """Return the finding's name."""
        return self.planned.finding.name

    def perform(self, opened: Opened, report: Report) -> tuple[StoredFinding, dict[str, Array]]:
        """Measure it, of just the weights and by just the code that it was planned for."""
        finding = self.planned.finding
        if code.digest(finding.measure.__module__) != self.planned.code:
            raise AtlasError(
                f"{finding.name} can't be measured there: that process has another version of the atlas."
            )
        with tempfile.TemporaryDirectory() as elsewhere:
            found = answer(self.planned, opened, self.unfinished or Path(elsewhere), report)
        planned = {tensor.name: tensor.sha256 for tensor in self.planned.tensors.values()}
        changed = opened.checkpoint.changed_since(planned)
        if changed is not None:
            raise InputError(f"{changed} changed while {finding.name} was measured; compute it again.")
        return found


Job = Look | Prepare | Measure


@dataclass(frozen=True)
class Broken:
    """A job that broke: a bug, and no sentence about the user's input."""

    sentence: str
    where: str


class Bench:
    """What a process has before it: the model that it opened last."""

    def __init__(self) -> None:
        self._open: tuple[tuple[str, Model], Opened] | None = None

    def perform(self, job: Job, report: Report = silent) -> Answer:
        """Do a job; whatever goes wrong is part of the answer."""
        try:
            opened = self._opened(job.given)
            try:
                return job.perform(opened, report)
            finally:
                _let_go(opened)
        except AtlasError as error:
            self._open = None
            return error
        except Exception as error:
            self._open = None
            return Broken(f"{type(error).__name__}: {error}", traceback.format_exc())

    def _opened(self, given: Given) -> Opened:
        which = given.session, given.model
        if self._open is None or self._open[0] != which:
            self._open = None  # before another one takes its place in memory
            self._open = which, open_model(given.model, given.places, given.settings)
        return self._open[1]


def _let_go(opened: Opened) -> None:
    """Keep nothing large of a model between two jobs: neither a tensor nor the model ready to be run."""
    opened.checkpoint.let_go()
    opened.__dict__.pop("run", None)
