"""Models, from their weights to stored results: looked at, prepared, measured, by whoever does the jobs.

Workers measure; this process alone writes. It holds a model's lock from before it decides what is left to do until
the last of its findings is stored, so nothing is computed twice, by whoever else runs beside it. Whatever goes wrong
with a model ends up here, and costs no other model anything.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from generators import findings as all_findings
from generators.base.display import Display, Tally, display
from generators.base.errors import AtlasError
from generators.base.interrupts import Stopped
from generators.base.progress import silent
from generators.checkpoint.registry import Model
from generators.checkpoint.sources import Origin, Places, locate, locate_here
from generators.compute import jobs, reconcile
from generators.compute.executors import Workers, chosen_workers
from generators.compute.plan import Prepared
from generators.compute.records import StoredFinding
from generators.compute.results import ResultsHeldError, Store
from generators.compute.running import AS_USUAL, NOT_INSTALLED, RunSettings, may_pass
from generators.compute.summary import End, Outcome, Summary, outcome_of
from generators.findings.contract import Finding
from generators.findings.inputs import RUN

TRIES = 2  # attempts per job whose worker dies
PATIENCE_S = 0.2  # interval for showing what workers say and for retrying locks
WITHOUT_RUN_S = 3.0  # assumed time of a finding that doesn't run the model, until one is done
AND_NOW = "What was measured is stored; the same command goes on."
Findings = Sequence[Finding[Any]]


@dataclass(eq=False)
class ModelRun:
    request: jobs.Request
    tally: Tally
    findings: Findings = ()
    before: reconcile.Fingerprint | None = None
    ready: deque[jobs.Job] = field(default_factory=deque)
    at_work: int = 0
    needs: jobs.MemoryNeeds | None = None
    prepared: Prepared | None = None
    known: reconcile.Reconciled | None = None
    lock: ExitStack = field(default_factory=ExitStack)
    held_since: float = 0.0
    ends: float | None = None  # when the time for running the model is over
    done: dict[str, tuple[StoredFinding, bool]] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    is_complete: bool = True  # whether nothing will be left to do, as far as is known
    trouble: AtlasError | jobs.Failed | None = None

    @property
    def name(self) -> str:
        return self.request.model.name

    @property
    def outdated(self) -> tuple[str, ...]:
        return () if self.known is None else tuple(self.known.outdated)

    def records(self) -> list[tuple[StoredFinding, bool]]:
        assert self.prepared is not None
        return [self.done[planned.finding.name] for planned in self.prepared.plans]


class Scheduler:
    def __init__(
        self, places: Places, store: Store, workers: Workers, shown: Display, settings: RunSettings = AS_USUAL
    ) -> None:
        self._places, self._store, self._workers, self._settings = places, store, workers, settings
        self._display, self._report = shown, shown.report
        self._waiting: deque[ModelRun] = deque()  # not started yet
        self._under_way: list[ModelRun] = []
        self._held: list[ModelRun] = []  # prepared, waiting for another run to stop writing their results
        self._at_work: dict[str, tuple[ModelRun, jobs.Job]] = {}  # by worker name
        self._last: dict[str, ModelRun] = {}  # worker -> the model it has open

    def compute(
        self, models: Sequence[Model], findings: Findings | None, ended: Callable[[Model, End], None]
    ) -> None:
        """Compute every finding of every model that is not stored yet.

        Each finding is saved as soon as it is measured, so that a killed run loses one per worker at the most; of one
        that runs the model, one run over its text.

        `ended` is called when a model comes to its end, with what it came to; without `findings` it is all of them.
        Raises AtlasError: results can't be written. Stopped: by Ctrl-C.
        """
        self._findings, self._ended = findings, ended
        for number, model in enumerate(models, 1):
            request = jobs.Request(model, self._places, self._settings)
            self._waiting.append(ModelRun(request, Tally(model.name, number, len(models))))
        try:
            while self._waiting or self._under_way or self._held:
                self._step()
        except KeyboardInterrupt:
            raise Stopped(AND_NOW) from None
        finally:
            self._workers.close()
            for run in (*self._under_way, *self._held):
                run.lock.close()

    def _step(self) -> None:
        self._take_up_held()
        for worker in self._workers.idle():
            self._look_ahead()
            found = next(self._open_to(worker), None)
            if found is not None:
                self._begin(worker, *found)
        if self._at_work:
            for worker, answer in self._workers.answers(PATIENCE_S):
                self._answered(worker, answer)
        elif self._held:
            time.sleep(PATIENCE_S)

    # Choosing jobs

    def _look_ahead(self) -> None:
        while self._waiting and not self._waiting[0].ready:
            run = self._waiting[0]
            stored = self._up_to_date(run) if self._findings is None else None
            if stored is not None:
                self._waiting.popleft()
                self._ended(run.request.model, Outcome(run.name, (), stored, {}))
                continue
            run.findings = self._chosen(run.name)
            run.ready.append(jobs.Look(run.request, run.findings))

    def _up_to_date(self, run: ModelRun) -> tuple[str, ...] | None:
        model = run.request.model
        try:
            files = locate_here(model, self._places.models_dirs)
            if files is None and self._store.up_to_date(run.name) is not None:
                files = locate(model, self._places.models_dirs, self._places.hub)  # one request
            if files is not None:
                run.before = reconcile.fingerprint(model, files, self._store, self._settings)
            return None if run.before is None else reconcile.up_to_date(run.before, self._store)
        except Exception:  # opening it reports the error and the place
            return None

    def _chosen(self, name: str) -> list[Finding[Any]]:
        """Return the findings to consider: without those that run the model if runs are skipped and results exist."""
        stored = self._store.finding_names(name) if self._settings.skip else []
        wanted = all_findings.FINDINGS if self._findings is None else self._findings
        return [finding for finding in wanted if not (RUN in finding.needs and finding.name in stored)]

    def _open_to(self, worker: str) -> Iterator[tuple[ModelRun, jobs.Job]]:
        """Yield jobs that a worker may do now: of the model it has open, of new models, of all others.

        A model that nobody has open comes before one on which somebody is busy: its files are read once that way.
        """
        last = self._last.get(worker)
        mine = [last] if last is not None and last in self._under_way else []
        new = [self._waiting[0]] if self._waiting else []
        for run in (*mine, *new, *self._under_way):
            yield from ((run, job) for job in run.ready if self._workers.admits(job.need))

    def _begin(self, worker: str, run: ModelRun, job: jobs.Job) -> None:
        run.ready.remove(job)
        if self._waiting and run is self._waiting[0]:
            self._under_way.append(self._waiting.popleft())
        run.at_work += 1
        if self._settings.ends_on_time and jobs.runs(job):
            run.ends = run.ends or time.time() + self._settings.budget_s
            job = replace(job, ends=run.ends)
        self._at_work[worker], self._last[worker] = (run, job), run
        self._display.begin(worker, run.tally, job.what, measures=isinstance(job, jobs.Measure))
        self._workers.begin(worker, job)

    # Results

    def _answered(self, worker: str, answer: jobs.Answer) -> None:
        run, job = self._at_work.pop(worker)
        run.at_work -= 1
        self._display.end(worker)
        if isinstance(answer, jobs.Died):
            self._last.pop(worker, None)
            self._died(run, job, answer)
        elif isinstance(answer, jobs.Failed):
            self._failed(run, job, answer)
        elif isinstance(answer, AtlasError):
            self._stop(run, answer)
        elif isinstance(answer, jobs.MemoryNeeds):
            run.needs = answer
            run.ready.append(jobs.Prepare(run.request, run.findings, answer.to_plan))
        elif isinstance(answer, Prepared):
            self._prepared(run, answer)
        elif isinstance(answer, jobs.Measured):
            self._measured(run, job.what, answer)
        self._ended_perhaps(run)

    def _died(self, run: ModelRun, job: jobs.Job, answer: jobs.Died) -> None:
        """Retry a job whose worker died, but only once: the job may be the cause."""
        tries = run.tries[job.what] = run.tries.get(job.what, 1) + 1
        if tries <= TRIES and run.trouble is None:
            self._report(f"{run.name}: {job.what} is begun again: {answer.how}")
            run.ready.appendleft(job)
        else:
            self._failed(run, job, jobs.Failed(f"It was begun {TRIES} times, and each time {answer.how}.", ""))

    def _failed(self, run: ModelRun, job: jobs.Job, answer: jobs.Failed) -> None:
        if answer.where:
            self._report(f"{run.name}: {job.what} failed\n{answer.where}")
        if isinstance(job, jobs.Measure):
            self._save(run, jobs.Measured(StoredFinding(finding=job.what, status="failed", reason=answer.sentence)))
        else:
            self._stop(run, jobs.Failed(f"{job.what} failed: {answer.sentence}", ""))

    def _stop(self, run: ModelRun, trouble: AtlasError | jobs.Failed) -> None:
        run.trouble = run.trouble or trouble
        run.ready.clear()

    def _prepared(self, run: ModelRun, prepared: Prepared) -> None:
        run.prepared, origin = prepared, Origin(**prepared.record.source.model_dump())
        run.before = reconcile.at_commit(run.request.model, origin, self._store, self._settings) or run.before
        run.is_complete = not any(planned.here and may_pass(planned.reason) for planned in prepared.plans)
        if any(planned.reason == NOT_INSTALLED for planned in prepared.plans):
            self._report(f"{run.name}: {NOT_INSTALLED}")
        run.known = reconcile.reconcile(prepared, self._settings, self._store)
        if run.known.is_done:
            self._take_stored(run, run.known)
        else:
            self._under_way.remove(run)
            self._held.append(run)
            run.held_since = time.monotonic()

    def _take_up_held(self) -> None:
        wait = float("inf") if self._store.wait is None else self._store.wait
        for run in list(self._held):
            try:
                run.lock.enter_context(self._store.locked(run.name, 0))
            except ResultsHeldError as error:
                self._display.wait_for(run.name)
                if time.monotonic() - run.held_since < wait:
                    continue
                run.trouble = error
            self._held.remove(run)
            self._under_way.append(run)
            if run.trouble is None:
                self._plan(run)
            self._ended_perhaps(run)

    def _plan(self, run: ModelRun) -> None:
        """Make a job of each finding that isn't stored.

        Those that run the model longest come first, so that nobody is idle while they end. Where one worker does
        all, or time is short, they come last, so that a run that is stopped soon has something to show.
        """
        assert run.prepared is not None and run.needs is not None
        run.known = known = reconcile.reconcile(run.prepared, self._settings, self._store)  # another may have written
        for sentence in known.damaged:
            self._report(sentence)
        if known.record is not None:
            self._store.save_model(known.record)
        for name in known.unknown:
            self._store.remove_finding(run.name, name)
        self._take_stored(run, known)
        for planned in known.left:
            name = planned.finding.name
            if planned.key is None:
                reason = StoredFinding(finding=name, status=planned.status, reason=planned.reason)
                self._save(run, jobs.Measured(reason))
                continue
            unfinished = self._store.unfinished(run.name, name, planned.key)
            run.ready.append(jobs.Measure(run.request, planned, run.needs.to_measure[name], unfinished))
        longest_first = len(self._workers.names) > 1 and not self._settings.ends_on_time
        run.ready = deque(sorted(run.ready, key=_passes, reverse=longest_first))
        self._expect(run, [planned.finding for planned in known.left if planned.key is not None])

    def _expect(self, run: ModelRun, left: Findings) -> None:
        runs = frozenset(finding.name for finding in left if RUN in finding.needs)
        budget = self._settings.budget_s
        run.tally.findings, run.tally.runs = len(run.findings), runs
        run.tally.left = {
            finding.name: budget * jobs.part_of_budget(finding) if finding.name in runs else WITHOUT_RUN_S
            for finding in left
        }

    def _take_stored(self, run: ModelRun, known: reconcile.Reconciled) -> None:
        for name, record in known.stored.items():
            run.done[name] = record, False
            if not known.is_done:
                self._store.drop_unfinished(run.name, name)
                self._store.drop_older_arrays(run.name, record)
        run.tally.done = len(run.done)

    def _measured(self, run: ModelRun, finding: str, measured: jobs.Measured) -> None:
        """Store a measurement, unless this machine can't run the model now and a result is stored."""
        whole = self._store.load_or_none(run.name, finding) if measured.here else None
        stored = whole[0] if whole is not None and whole[0].status == "computed" else None
        if measured.here:
            run.is_complete &= stored is None and not may_pass(measured.record.reason)
        if stored is None:
            self._save(run, measured)
            return
        self._report(f"{run.name}: {finding}: {measured.record.reason} Its stored result stays.")
        run.done[finding] = stored, False
        run.tally.done = len(run.done)

    def _save(self, run: ModelRun, measured: jobs.Measured) -> None:
        record = self._store.save_finding(run.name, measured.record, measured.arrays)
        if not measured.here:
            self._store.drop_unfinished(run.name, record.finding)
        run.is_complete &= record.status != "failed"
        run.done[record.finding] = record, True
        run.tally.done = len(run.done)

    def _ended_perhaps(self, run: ModelRun) -> None:
        if run.ready or run.at_work or run not in self._under_way:
            return
        if run.trouble is None:
            self._remember(run)
        run.lock.close()
        self._under_way.remove(run)
        self._ended(run.request.model, run.trouble or outcome_of(run.name, run.records(), run.outdated))

    def _remember(self, run: ModelRun) -> None:
        assert run.known is not None
        all_stored = sorted(run.done) == self._store.finding_names(run.name)
        if run.before is None or not run.is_complete or run.outdated or not all_stored:
            return
        records = [record for record, _ in run.records()]
        if self._store.is_tidy(run.name, records):
            computed = tuple(record.finding for record in records if record.status == "computed")
            reconcile.remember(run.before, computed, self._store, written=not run.known.is_done)


def _passes(job: jobs.Job) -> float:
    return job.planned.finding.passes if isinstance(job, jobs.Measure) else 0


def compute_models(
    models: Sequence[Model],
    places: Places,
    store: Store,
    processes: int = 1,
    settings: RunSettings = AS_USUAL,
    *,
    named: bool,
    findings: Findings | None = None,
) -> Summary:
    """Compute every finding (or `findings`) of every model that is not stored yet, and show how that goes.

    `named` says that the user named these models, so that one whose weights are unavailable is a failure.
    Raises AtlasError: results can't be written. Stopped: by Ctrl-C.
    """
    with display() as shown:
        summary = Summary(store, shown.report, named=named)
        scheduler = Scheduler(places, store, chosen_workers(processes, shown), shown, settings)
        scheduler.compute(models, findings, summary.add)
        if len(models) > 1:
            shown.report(summary.in_words())
    return summary


def compute_model(
    model: Model,
    places: Places,
    store: Store,
    shown: Display | None = None,
    findings: Findings | None = None,
    settings: RunSettings = AS_USUAL,
    processes: int = 1,
) -> Outcome:
    ends: list[End] = []
    shown = shown or Display(silent)
    scheduler = Scheduler(places, store, chosen_workers(processes, shown), shown, settings)
    chosen = all_findings.FINDINGS if findings is None else findings  # findings named are opened even if up to date
    scheduler.compute([model], chosen, lambda _, end: ends.append(end))
    [end] = ends
    if isinstance(end, AtlasError):
        raise end
    if isinstance(end, jobs.Failed):
        raise RuntimeError(end.sentence)
    return end
