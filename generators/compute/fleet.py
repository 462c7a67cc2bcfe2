"""Several models, several jobs at a time, as `several.py` does them one after another: same results, same sentences.

Workers measure; this process alone writes. It holds a model's lock from before it looks what is stored until the last
of its findings is, so nothing is computed twice, by whoever else runs beside it.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from generators.base.board import Board
from generators.base.errors import AtlasError
from generators.checkpoint.registry import Model
from generators.checkpoint.sources import Places, locate_here
from generators.compute import run, settled
from generators.compute.jobs import Answer, Broken, Given, Job, Look, Measure, Needs, Prepare
from generators.compute.records import StoredFinding
from generators.compute.results import Store
from generators.compute.run import Prepared
from generators.compute.running import AS_USUAL, Settings
from generators.compute.tally import Outcome, Tally, account
from generators.compute.workers import Died, Done, Event, Told, Workers
from generators.findings.contract import Finding
from generators.findings.inputs import RUN

TRIES = 2  # of a job whose worker dies
PATIENCE_S = 1.0  # after which the board is drawn anew, and locks that others held are tried again


@dataclass(eq=False)
class Course:
    """One model on its way: what it waits for, what is being done, and what came of it."""

    given: Given
    findings: Sequence[Finding[Any]]
    may_be_settled: bool = False  # nobody has looked
    before: settled.AsItWas | None = None
    ready: deque[Job] = field(default_factory=deque)
    at_work: int = 0
    needs: Needs | None = None
    prepared: Prepared | None = None
    lock: ExitStack = field(default_factory=ExitStack)
    done: dict[str, tuple[StoredFinding, bool]] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    trouble: AtlasError | None = None

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.given.model.name


class Fleet:
    """Jobs of models, and the workers that do them.

    Args:
        places: where weights are looked for.
        store: where results are kept.
        workers: who does the jobs.
        board: shows what is being done.
        settings: how models are run.
    """

    def __init__(
        self, places: Places, store: Store, workers: Workers, board: Board, settings: Settings = AS_USUAL
    ) -> None:
        self._places, self._store, self._workers = places, store, workers
        self._board, self._report, self._settings = board, board.report, settings
        self._session = uuid4().hex
        self._waiting: deque[Course] = deque()  # nothing of them was begun
        self._under_way: list[Course] = []
        self._held: list[Course] = []  # prepared, but another run writes their results
        self._at_work: dict[str, tuple[Course, Job]] = {}  # by worker
        self._last: dict[str, Course] = {}  # whose files a worker has open
        self._tally = Tally()

    def compute(
        self, models: Sequence[Model], *, named: bool, findings: Sequence[Finding[Any]] | None = None
    ) -> Tally:
        """Compute every finding of every model that is not stored yet.

        Args:
            models: which.
            named: whether the user named these models, so that one that can't be had is a failure.
            findings: which of them; all if not given.
        """
        self._named = named
        self._waiting.extend(self._course(model, findings) for model in models)
        self._board.total = sum(len(course.findings) for course in self._waiting)
        try:
            while self._waiting or self._under_way or self._held:
                self._step()
        finally:
            self._workers.close()
            for course in (*self._under_way, *self._held):
                course.lock.close()
        return self._tally

    def _course(self, model: Model, findings: Sequence[Finding[Any]] | None) -> Course:
        given = Given(self._session, model, self._places, self._settings)
        chosen = run.touched(model.name, self._store, self._settings, findings)
        course = Course(given, chosen, may_be_settled=findings is None)
        course.ready.append(Look(given, course.findings))
        return course

    def _step(self) -> None:
        """Give everybody something to do, and take what was done."""
        self._take_up_held()
        for worker in self._workers.idle():
            self._pass_over()
            found = next(self._open_to(worker), None)
            if found is not None:
                self._begin(worker, *found)
        if self._at_work or self._waiting or self._under_way:
            for event in self._workers.events(PATIENCE_S):
                self._heard(event)
        self._board.draw()

    def _pass_over(self) -> None:
        """Pass over models at the front that are as they were when nothing was left to do."""
        while self._waiting and self._waiting[0].may_be_settled:
            course, model = self._waiting[0], self._waiting[0].given.model
            course.may_be_settled = False
            try:
                files = locate_here(model, self._places.models_dirs)
            except AtlasError:
                return  # a worker tells why
            if files is None:
                return
            course.before = settled.as_it_is(model, files, self._store, self._settings)
            known = settled.outcome(course.before, self._store)
            if known is None:
                return
            self._waiting.popleft()
            self._board.done += len(course.findings)
            account(self._tally, model, known, self._store, self._report, named=self._named)

    def _open_to(self, worker: str) -> Iterator[tuple[Course, Job]]:
        """Yield jobs that a worker may do now: of the model it has open, then of new models, then of all others.

        A model that nobody has open comes before one on which somebody is busy: its files are read once that way.
        """
        last = self._last.get(worker)
        mine = [last] if last is not None and last in self._under_way else []
        new = [self._waiting[0]] if self._waiting else []
        for course in (*mine, *new, *self._under_way):
            yield from ((course, job) for job in course.ready if self._workers.admits(worker, job.need))

    def _begin(self, worker: str, course: Course, job: Job) -> None:
        course.ready.remove(job)
        if self._waiting and course is self._waiting[0]:
            self._under_way.append(self._waiting.popleft())
        course.at_work += 1
        self._at_work[worker], self._last[worker] = (course, job), course
        self._board.begun(worker, course.name, job.what)
        self._workers.begin(worker, job)

    def _heard(self, event: Event) -> None:
        if isinstance(event, Told):
            self._board.told(event.worker, event.line)
            return
        course, job = self._at_work.pop(event.worker)
        course.at_work -= 1
        self._board.ended(event.worker)
        if isinstance(event, Done):
            self._answered(course, job, event.answer)
        else:
            self._last.pop(event.worker, None)
            self._died(course, job, event)
        self._ended_perhaps(course)

    def _answered(self, course: Course, job: Job, answer: Answer) -> None:
        if isinstance(answer, Broken):
            self._report(f"{course.name}: {job.what} failed\n{answer.where}")
            self._give_up(course, job, answer.sentence)
        elif isinstance(answer, AtlasError):
            self._stop(course, answer)
        elif isinstance(job, Look):
            course.needs = answer
            if course.trouble is None:
                course.ready.append(Prepare(course.given, course.findings, answer.to_plan))
        elif isinstance(job, Prepare):
            course.prepared = answer
            self._prepared(course, answer)
        else:
            self._save(course, *answer)

    def _prepared(self, course: Course, prepared: Prepared) -> None:
        """Go on with a model whose findings are planned; or don't, where all of it is stored."""
        stored = run.nothing_to_do(prepared, self._settings, self._store)
        if stored is not None:
            self._board.done += len(course.findings)
            settled.settle(course.before, stored.stored, self._store, written=False)
            self._finish(course, stored)
        else:
            self._under_way.remove(course)
            self._held.append(course)

    def _take_up_held(self) -> None:
        """Take up models that wait for their lock; where there is nothing else to do, wait for the first."""
        for course in list(self._held):
            others = self._at_work or self._waiting or self._under_way
            if others and self._store.is_held(course.name):
                self._board.waits(course.name)
                continue
            course.lock.enter_context(self._store.locked(course.name, self._report))
            self._held.remove(course)
            self._under_way.append(course)
            self._plan(course)
            self._ended_perhaps(course)

    def _plan(self, course: Course) -> None:
        """Make a job of each finding that isn't stored; those that run the model first, as they take longest."""
        assert course.prepared is not None and course.needs is not None
        known = run.begun(course.prepared, self._settings, self._store, self._report)
        for planned, stored in zip(course.prepared.plans, known, strict=True):
            name = planned.finding.name
            if stored is not None:
                course.done[name] = stored, False
                self._board.done += 1
            elif planned.key is None:
                self._save(course, run.without(planned), {})
            else:
                unfinished = self._store.unfinished(course.name, name, planned.key).resolve()
                here = unfinished if self._workers.writes_here else None
                course.ready.append(Measure(course.given, planned, course.needs.to_measure[name], here))
        course.ready = deque(sorted(course.ready, key=_takes_less))

    def _save(self, course: Course, record: StoredFinding, arrays: dict[str, Any]) -> None:
        course.done[record.finding] = run.save(course.name, record, arrays, self._store), True
        self._board.done += 1

    def _died(self, course: Course, job: Job, event: Died) -> None:
        """Do a job once more whose worker died; not a third time, as it may be what kills."""
        tries = course.tries[job.what] = course.tries.get(job.what, 1) + 1
        if tries <= TRIES and course.trouble is None:
            self._report(f"{course.name}: {job.what} is begun again: of the process that did it, {event.how}")
            course.ready.appendleft(job)
        else:
            self._give_up(course, job, f"The process that did it ended {TRIES} times: {event.how}.")

    def _give_up(self, course: Course, job: Job, reason: str) -> None:
        """Leave one finding; or the model, where nothing of it can be planned."""
        if isinstance(job, Measure):
            self._save(course, StoredFinding(finding=job.what, status="failed", reason=reason), {})
            return
        self._report(f"{course.name}: {job.what} failed: {reason}")
        self._tally.failed.append(course.name)
        self._tally.sentences.append(f"{course.name}: {job.what} failed: {reason}")
        self._leave(course)

    def _stop(self, course: Course, trouble: AtlasError) -> None:
        """Begin no more jobs of a model whose weights can't be used; those that are being done are stored still."""
        course.trouble = course.trouble or trouble
        course.ready.clear()

    def _ended_perhaps(self, course: Course) -> None:
        """Tell what a model came to when nothing of it is left to do."""
        if course.ready or course.at_work or course not in self._under_way:
            return
        if course.trouble is not None:
            self._finish(course, course.trouble)
        elif course.prepared is not None:
            run.drop_unknown(course.prepared, self._store)
            of_plans = [course.done[planned.finding.name] for planned in course.prepared.plans]
            run.remember(course.before, course.prepared, self._settings, self._store)
            self._finish(course, run.outcome_of(course.name, of_plans))

    def _finish(self, course: Course, came_to: Outcome | AtlasError) -> None:
        self._leave(course)
        account(self._tally, course.given.model, came_to, self._store, self._report, named=self._named)

    def _leave(self, course: Course) -> None:
        """Have done with a model; its lock is free."""
        course.lock.close()
        course.ready.clear()
        self._under_way.remove(course)


def _takes_less(job: Job) -> tuple[bool, int]:
    return not (isinstance(job, Measure) and RUN in job.planned.finding.needs), -job.need
