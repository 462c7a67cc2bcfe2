"""Jobs: what one process does at a time of one model, and its answer. None writes results: the scheduler does.

A model is looked at (what will its jobs need?), then prepared (every tensor read and checked, every finding planned),
then measured, one finding a job. A process keeps the model open that it had last.
"""

import math
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeGuard

from numpy import ndarray as Array
from pydantic import ValidationError
from threadpoolctl import threadpool_limits

from generators import findings as all_findings
from generators.base import notices
from generators.base.allocation import give_back_freed_memory
from generators.base.errors import AtlasError, InputError, WeightsUnavailableError, raise_unless_panic
from generators.base.plain import plain
from generators.base.progress import Progress, TimeLeft
from generators.checkpoint.registry import Model
from generators.checkpoint.sources import Places
from generators.compute import memory
from generators.compute.judged import read_metrics
from generators.compute.plan import Opened, Plan, Prepared, inputs, open_model, prepare
from generators.compute.records import StoredFinding, table_records
from generators.compute.running import CUT_TO, GIB, OUT_OF_TIME, RunSettings
from generators.findings.contract import Finding
from generators.findings.inputs import RUN, NotApplicableError
from generators.runner import CannotRunError

OVERFLOW = "What is measured of these weights is infinity or no number at all: they are too large, or too much alike."
MOST_KEPT = 1 / 3  # of the memory: what jobs of all processes may need together whose running models stay open
FIRST_SHARE = 0.1  # of a run, from which on its progress tells when it ends
MEASURING_THREADS = 1  # BLAS threads: sums in another order differ in their last digits
Say = Callable[[str | Progress], None]  # called with lines that a job reports, and with its progress


@dataclass(frozen=True)
class Request:
    """Common to all jobs of a model."""

    model: Model
    places: Places
    settings: RunSettings


# Answers


@dataclass(frozen=True)
class MemoryNeeds:
    to_plan: int
    to_measure: dict[str, int]


@dataclass(frozen=True)
class Measured:
    """One finding as it was measured: its record and its arrays.

    `here` says that it is this machine that can't run the model now, and not the weights: a stored result stays.
    """

    record: StoredFinding
    arrays: dict[str, Array] = field(default_factory=dict)
    here: bool = False


@dataclass(frozen=True)
class Failed:
    """A job that failed by a bug, not by the user's input. `where` is its traceback."""

    sentence: str
    where: str


@dataclass(frozen=True)
class Died:
    """A job whose worker died; how, in half a sentence."""

    how: str


Answer = MemoryNeeds | Prepared | Measured | AtlasError | Failed | Died


# Jobs


@dataclass(frozen=True, eq=False)
class Look:
    request: Request
    findings: Sequence[Finding[Any]]
    need: int = memory.BASE
    what: str = field(default="opening", init=False)

    def perform(self, opened: Opened, say: Say) -> MemoryNeeds:
        each = {finding.name: memory.to_measure(finding, opened) for finding in self.findings}
        needs = MemoryNeeds(memory.to_plan(self.findings, opened), each)
        largest = max(
            needs.to_plan, *(each[finding.name] for finding in self.findings if RUN not in finding.needs), 0
        )
        if largest > memory.of_machine():
            needed, there = largest / GIB, memory.of_machine() / GIB
            raise WeightsUnavailableError(
                f"It needs {needed:.1f} GiB of memory, and this machine has {there:.1f} GiB."
            )
        return needs


@dataclass(frozen=True, eq=False)
class Prepare:
    request: Request
    findings: Sequence[Finding[Any]]
    need: int
    what: str = field(default="reading weights", init=False)

    def perform(self, opened: Opened, say: Say) -> Prepared:
        return prepare(opened, self.findings, say)


@dataclass(frozen=True, eq=False)
class Measure:
    """Measure one finding.

    `unfinished` is the folder for what a run of the model has got to; `ends` is when the time for running the model
    is over (`time.time()`).
    """

    request: Request
    planned: Plan
    need: int
    unfinished: Path
    ends: float = math.inf

    @property
    def what(self) -> str:
        return self.planned.finding.name

    def perform(self, opened: Opened, say: Say) -> Measured:
        measured = measure(self.planned, opened, self.unfinished, say, self.ends)
        planned = {tensor.name: tensor.sha256 for tensor in self.planned.tensors.values()}
        changed = opened.checkpoint.changed_since(planned)
        if changed is not None:
            raise InputError(f"{changed} changed while {self.what} was measured; compute it again.")
        return measured


Job = Look | Prepare | Measure


class WorkerContext:
    """What a process keeps between jobs: the model that it opened last, running if it is small beside memory.

    `share` is the part of this machine's memory that a job may need whose model stays open.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._open: tuple[Model, Opened] | None = None

    def perform(self, job: Job, say: Say) -> Answer:
        """Do a job. Errors are answers, too, since not every exception can be sent to another process."""
        with notices.heard_by(lambda sentence: say(f"{sentence}\n")):
            return self._perform(job, say)

    def _perform(self, job: Job, say: Say) -> Answer:
        try:
            opened = self._opened(job.request)
            if not runs(job):
                opened.__dict__.pop("run", None)
            try:
                return job.perform(opened, say)
            finally:
                self._let_go(opened, job)
        except AtlasError as error:
            self._open = None
            return error
        except BaseException as error:  # a library's panic costs only this model
            raise_unless_panic(error)
            self._open = None
            return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())

    def _opened(self, request: Request) -> Opened:
        if self._open is None or self._open[0] != request.model:
            self._open = None  # free memory before the next one is opened
            self._open = request.model, open_model(request.model, request.places, request.settings)
        return self._open[1]

    def _let_go(self, opened: Opened, job: Job) -> None:
        """Drop the last tensor, and the running model too unless there is room for it and the next job needs it."""
        opened.checkpoint.let_go()
        if not runs(job) or job.need > self._share * memory.of_machine():
            opened.__dict__.pop("run", None)
            give_back_freed_memory()


def runs(job: Job) -> TypeGuard[Measure]:
    """Return whether a job runs the model."""
    return isinstance(job, Measure) and RUN in job.planned.finding.needs


# Measuring


class OutOfTimeError(Exception):
    """What runs the model won't end in time."""


def in_time(say: Say, ends: float) -> Callable[[Progress], None]:
    """Return what passes on progress and, a tenth done, raises OutOfTimeError if the rest would end too late."""

    def told(progress: Progress) -> None:
        say(progress)
        if progress.share >= FIRST_SHARE and time.time() + progress.seconds_left > ends:
            raise OutOfTimeError

    return told


def measure(planned: Plan, opened: Opened, unfinished: Path, say: Say, ends: float = math.inf) -> Measured:
    """Measure one finding that has a key, or give the reason why not; `unfinished` stores partial runs."""
    finding = planned.finding
    record = StoredFinding(
        finding=finding.name,
        status="computed",
        key=planned.key,
        version=finding.version,
        computed_on=datetime.now(UTC).date().isoformat(),
        tensors=planned.tensors,
    )
    try:
        given = _inputs(finding, opened)
        if given.run is not None:
            if time.time() > ends:
                raise OutOfTimeError
            budget_s = opened.settings.budget_s * part_of_budget(finding)
            opened.run.begin(budget_s, TimeLeft(in_time(say, ends)), unfinished)
        with threadpool_limits(MEASURING_THREADS):
            measured = finding.measure(given)
        numbers = {"metrics": plain(measured.metrics), "tables": table_records(measured)}
        _check_finite(finding, numbers["metrics"])
        if given.run is not None:
            numbers["run"] = _record_of(opened)
        return Measured(record.model_copy(update=numbers), measured.arrays)
    except NotApplicableError as sentence:
        return Measured(record.model_copy(update={"status": "not_applicable", "reason": str(sentence)}))
    except (CannotRunError, OutOfTimeError) as error:
        reason = str(error) or OUT_OF_TIME
        return Measured(StoredFinding(finding=finding.name, status="missing", reason=reason), here=True)


def _check_finite(finding: Finding[Any], metrics: Any) -> None:
    """Raise NotApplicableError where infinity or NaN came of a number that must be one: both are stored as null."""
    try:
        read_metrics(finding.metrics, metrics)
    except ValidationError as error:
        if any(fault["input"] is None and fault["type"] != "extra_forbidden" for fault in error.errors()):
            raise NotApplicableError(OVERFLOW) from error


def _inputs(finding: Finding[Any], opened: Opened) -> Any:
    try:
        return inputs(finding, opened)
    except MemoryError as error:
        raise CannotRunError("The model can't be run here: there was not enough memory to open it.") from error


def part_of_budget(finding: Finding[Any]) -> float:
    """Return which part of the time for running a model a finding gets.

    Parts go by what all findings of the atlas would run of the model, so that none reads another number of windows
    when it is computed alone.
    """
    whole = sum(each.passes for each in all_findings.FINDINGS) or finding.passes
    return finding.passes / whole if whole else 1.0


def _record_of(opened: Opened) -> dict[str, str]:
    run = opened.run
    cut = {CUT_TO: opened.settings.operations} if run.was_cut else {}
    return {**run.record, "text": run.text.name, "text_sha256": run.text.sha256, **cut}
