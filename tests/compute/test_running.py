"""Findings that run the model: what their time is, when more of it is a reason to run again, and when none is run."""

from collections import Counter

import pytest
import torch

from generators import findings as all_findings
from generators.base.errors import InputError
from generators.base.progress import Progress
from generators.checkpoint.sources import Places
from generators.compute import jobs, running
from generators.compute.running import CUT_TO, RunSettings, chosen, has_time_for_more
from generators.compute.schedule import compute_model
from generators.findings import FINDINGS
from generators.findings.inputs import RUN, NotApplicableError
from generators.findings.measured import Measurements
from generators.runner import budget
from tests import synthetic
from tests.checkpoints import write_checkpoint
from tests.compute.harness import contents, model_in, raising
from tests.findings.stand_in import StandIn
from tests.toy_findings import toy

ARCH = synthetic.architecture(n_ctx=64, d_model=24, n_layer=2)
SECONDS_A_WINDOW = 1.0


class Timed(StandIn):
    """A model that takes a second for each window."""

    def begin(self, budget_s, watch=None, unfinished=None):
        super().begin(budget_s, watch, unfinished)
        self.watch = watch

    def affordable(self, count, length, passes):
        found = budget.affordable(count, SECONDS_A_WINDOW, self.budget_s, 1.0)
        self.was_cut |= found < count
        return found


@pytest.fixture
def folder(tmp_path):
    return write_checkpoint(tmp_path / "tiny")


@pytest.fixture
def ran(monkeypatch):
    """Have two findings that run the model, and one that doesn't; return how often each was measured."""
    runs: Counter[str] = Counter()

    def read(inputs):
        windows = inputs.run.windows(40, 0)
        return Measurements({"sum": float(len(windows.ids))})

    found = (
        toy("weights", runs=runs),
        toy("much", needs=(RUN,), measure=read, runs=runs, passes=30.0),
        toy("little", needs=(RUN,), measure=read, runs=runs, passes=10.0),
    )
    monkeypatch.setattr(all_findings, "FINDINGS", found)
    monkeypatch.setattr(running, "why_not", lambda files, checkpoint, device: None)
    monkeypatch.setattr(running, "opened_model", lambda files, checkpoint, device: Timed(ARCH, None))
    return runs


def compute(folder, store, settings=running.AS_USUAL, findings=None):
    return compute_model(model_in(folder), Places(), store, findings=findings, settings=settings)


def windows_of(store):
    found = {name: store.finding("tiny", name) for name in ("much", "little")}
    return {name: record.metrics["sum"] for name, record in found.items()}


def test_a_models_time_is_shared_by_what_findings_would_run(folder, store, ran):
    compute(folder, store, RunSettings(budget_s=40))
    assert windows_of(store) == {"much": 30, "little": 10}
    before = contents(store.root / "tiny")
    for no_more in (40, 20):
        assert compute(folder, store, RunSettings(budget_s=no_more)).computed == ()
        assert contents(store.root / "tiny") == before


@pytest.mark.parametrize(("share", "left", "is_done"), [(0.5, 15.0, True), (0.5, 25.0, False), (0.05, 1e6, True)])
def test_what_would_not_end_in_time_is_left_out_and_measured_with_more(
    folder, store, ran, monkeypatch, share, left, is_done
):
    """The time is 20 seconds; what a run's first shares took foretells nothing."""
    monkeypatch.setattr(jobs, "TimeLeft", lambda tell: lambda done: tell(Progress(done, left)))
    windows = Timed.windows

    def some_way(self, *args):
        self.unfinished.mkdir(parents=True, exist_ok=True)
        (self.unfinished / "a loss").touch()
        self.watch(share)
        return windows(self, *args)

    monkeypatch.setattr(Timed, "windows", some_way)
    in_time, whole = RunSettings(budget_s=20, ends_on_time=True), RunSettings(budget_s=20)
    assert compute(folder, store, in_time).computed == (("weights", "much", "little") if is_done else ("weights",))
    assert (not is_done) == any(store.root.rglob("a loss")), "what was run so far is there for the next time"
    reason = store.finding("tiny", "much").reason
    assert reason == (None if is_done else running.OUT_OF_TIME)
    assert compute(folder, store, whole).computed == (() if is_done else ("much", "little"))
    before = contents(store.root / "tiny")
    assert compute(folder, store, in_time).computed == ()
    assert contents(store.root / "tiny") == before


def test_a_finding_that_is_computed_alone_reads_what_it_reads_beside_others(folder, store, ran):
    compute(folder, store, RunSettings(budget_s=40), findings=all_findings.FINDINGS[2:])
    assert store.finding("tiny", "little").metrics["sum"] == 10


def test_more_time_measures_again_what_was_cut_and_nothing_else(folder, store, ran):
    compute(folder, store, RunSettings(budget_s=54))
    assert windows_of(store) == {"much": 40, "little": 13}
    assert CUT_TO not in store.finding("tiny", "much").run
    assert float(store.finding("tiny", "little").run[CUT_TO]) == pytest.approx(54 * 2.5e10)
    assert compute(folder, store, RunSettings(budget_s=400)).computed == ("little",)
    assert windows_of(store) == {"much": 40, "little": 40}
    assert compute(folder, store, RunSettings(budget_s=4000)).computed == ()


def test_findings_that_run_say_how_much_and_a_faster_device_has_time_for_more():
    assert all((finding.passes > 0) == (RUN in finding.needs) for finding in FINDINGS)
    cut = {CUT_TO: RunSettings(600).operations}
    assert has_time_for_more(RunSettings(600, "cuda"), cut)
    assert not has_time_for_more(RunSettings(600), cut)
    assert not has_time_for_more(RunSettings(1e9), {})
    assert not has_time_for_more(RunSettings(1e9), None)


def test_skipped_findings_say_why_and_are_computed_later(folder, store, ran):
    compute(folder, store, RunSettings(skip=True))
    assert ran == {"weights": 1}
    record = store.finding("tiny", "much")
    assert (record.status, record.reason) == ("missing", running.SKIPPED)
    assert compute(folder, store).computed == ("much", "little")


@pytest.mark.parametrize("state", ["computed", "not applicable", "of other weights", "damaged"])
def test_what_is_stored_stays_to_the_byte_where_runs_are_skipped(folder, store, ran, monkeypatch, state):
    if state == "not applicable":
        monkeypatch.setattr(Timed, "windows", raising(NotApplicableError("There is nothing to run here.")))
    compute(folder, store)
    if state == "of other weights":
        write_checkpoint(folder, seed=1)
    if state == "damaged":
        (store.root / "tiny" / "much.json").write_text("{")
    before = contents(store.root / "tiny")
    compute(folder, store, RunSettings(skip=True))
    after = contents(store.root / "tiny")
    assert all(after[name] == before[name] for name in ("much.json", "little.json"))


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf")])
def test_a_budget_that_is_none_is_a_sentence(minutes):
    with pytest.raises(InputError, match="number of minutes above 0"):
        chosen(minutes, "cpu", skip=False)


def test_devices(monkeypatch):
    with pytest.raises(InputError, match="no device 'tpu'; there are cpu, cuda, auto"):
        chosen(10, "tpu", skip=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert chosen(10, "auto", skip=False) == RunSettings(600, "cpu")
    with pytest.raises(InputError, match="There is no GPU here"):
        chosen(10, "cuda", skip=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert {chosen(10, device, skip=False).device for device in ("auto", "cuda")} == {"cuda"}
    assert chosen(10, "cpu", skip=False).device == "cpu"


def test_what_is_kept_until_a_result_is_finished_has_a_folder_of_its_own_and_goes(folder, store, ran, monkeypatch):
    seen = []

    def interrupted(inputs):
        seen.append(inputs.run.unfinished)
        inputs.run.unfinished.mkdir(parents=True, exist_ok=True)
        if len(seen) == 1:
            raise KeyboardInterrupt
        return Measurements({"sum": 1.0})

    findings = (toy("much", needs=(RUN,), measure=interrupted, passes=1.0),)
    with pytest.raises(KeyboardInterrupt):
        compute(folder, store, findings=findings)
    assert not (store.root / "tiny" / "model.json").exists() or seen[0].is_dir()
    compute(folder, store, findings=findings)
    assert seen[0] == seen[1]
    assert seen[0].name.startswith("much.")
    assert not seen[0].parent.exists()


def test_what_another_key_left_unfinished_goes(store):
    folders = [store.unfinished("tiny", "much", key) for key in ("0" * 64, "1" * 64)]
    other = store.unfinished("tiny", "little", "0" * 64)
    for made in (folders[0], other):
        made.mkdir(parents=True)
    assert store.unfinished("tiny", "much", "1" * 64) == folders[1]
    assert not folders[0].exists()
    assert other.is_dir()
