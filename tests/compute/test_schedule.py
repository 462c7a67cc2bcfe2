"""Several jobs at a time give what one after another gives, and no trouble of one costs another anything."""

import shutil
from collections import Counter

import pytest

from generators.base.display import Display
from generators.base.errors import AtlasError
from generators.base.interrupts import Stopped
from generators.checkpoint.registry import Model, PackageSource
from generators.checkpoint.sources import Places
from generators.compute import jobs, running
from generators.compute.jobs import Measure, Prepare
from generators.compute.results import Store
from generators.compute.schedule import compute_model, compute_models
from generators.compute.verify import verify
from generators.findings.inputs import RUN
from generators.runner import CannotRunError
from tests import synthetic
from tests.checkpoints import write_checkpoint
from tests.compute.harness import FINDINGS, MEASURED, Recorded, computed, in_folders, model_in, raising, stored
from tests.findings.stand_in import StandIn
from tests.toy_findings import toy


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return in_folders(tmp_path_factory.mktemp("models"), 3)


@pytest.fixture(scope="module")
def whole(models, tmp_path_factory):
    """Return the folder of results that computing one model after another leaves."""
    store = Store(tmp_path_factory.mktemp("results"))
    compute_models(models, Places(), store, named=True, findings=FINDINGS)
    return store.root


@pytest.fixture
def expected(whole):
    return stored(whole)


ARCH = synthetic.architecture(n_ctx=64, d_model=24, n_layer=2)


def without(results, start):
    return {name: data for name, data in results.items() if not name.startswith(start)}


def let_run(monkeypatch):
    """Have a stand-in run in place of any model."""
    monkeypatch.setattr(running, "why_not", lambda files, checkpoint, device: None)
    monkeypatch.setattr(running, "depends_on", lambda files, checkpoint: {"weights": 1})
    monkeypatch.setattr(running, "opened_model", lambda files, checkpoint, device: StandIn(ARCH, None))


def dies_of(model: str, what: str, times: int):
    """Return whether a worker dies of a job: of this one, so many times."""
    left = Counter({(model, what): times})

    def dies(job):
        which = job.request.model.name, job.what
        left[which] -= 1
        return left[which] >= 0

    return dies


@pytest.mark.parametrize("count", [1, 2, 5])
def test_results_are_those_of_one_after_another(models, expected, store, count):
    workers = Recorded(count)
    summary = computed(models, store, workers)
    assert summary.sentences == []
    assert stored(store.root) == expected
    assert sorted(workers.measured()) == sorted((model.name, name) for model in models for name in MEASURED)
    assert workers.most == count
    assert workers.closed


def test_only_what_is_damaged_is_measured(models, expected, whole, store):
    shutil.copytree(whole, store.root)
    (store.root / "model-1" / "norms.json").write_text("{}")
    workers = Recorded(2)
    computed(models, store, workers)
    assert workers.measured() == [("model-1", "norms")]
    assert stored(store.root) == expected


def test_a_worker_goes_on_with_the_model_it_has_open(models, store):
    workers = Recorded(2)
    computed(models[:2], store, workers)
    first, second = ([name for name, _ in workers.measured()][i::2] for i in (0, 1))
    assert len(set(first)) == len(set(second)) == 1


@pytest.mark.parametrize("memory", ["for one at a time", "for none"])
def test_jobs_wait_for_memory_and_those_too_large_are_done_alone(models, expected, store, memory):
    alone = Recorded(1)
    computed(models, Store(store.root.parent / "alone"), alone)
    workers = Recorded(3, memory=int(1.5 * alone.used) if memory == "for one at a time" else 1)
    computed(models, store, workers)
    assert workers.most == 1
    assert workers.used <= 1.5 * alone.used
    assert stored(store.root) == expected


@pytest.mark.parametrize("what", ["opening", "reading weights", "positions"])
def test_a_job_whose_worker_dies_is_begun_again(models, expected, store, what):
    workers = Recorded(2, dies=dies_of("model-1", what, 1))
    assert computed(models, store, workers).sentences == []
    again = [line for line in workers.lines if "begun again" in line]
    assert again == [f"model-1: {what} is begun again: its process ended (SIGKILL)"]
    assert stored(store.root) == expected
    assert max(Counter(workers.measured()).values()) == 1


@pytest.mark.parametrize("what", ["positions", "reading weights"])
def test_a_job_that_kills_twice_fails_and_costs_no_other(models, expected, store, what):
    summary = computed(models, store, Recorded(2, dies=dies_of("model-1", what, 2)))
    reason = "It was begun 2 times, and each time its process ended (SIGKILL)."
    assert summary.sentences == [f"model-1: {what} failed: {reason}"]
    assert summary.failed == ["model-1"]
    lost = "model-1/positions" if what == "positions" else "model-1/"
    assert without(stored(store.root), lost) == without(expected, lost)
    computed(models, store, Recorded(2))
    assert stored(store.root) == expected


def test_models_that_cannot_be_had_or_used_are_shown_as_one_after_another(models, store, tmp_path):
    (tmp_path / "config.json").write_text("{")
    away = Model(name="away", title="Away", sources=(PackageSource(package="no-such-package-here"),))
    wanted = [model_in(tmp_path, "damaged"), away, models[0]]
    other = Store(tmp_path / "other")
    expected = compute_models(wanted, Places(), other, named=True, findings=FINDINGS)
    found = computed(wanted, store, Recorded(2))
    for said in ("unavailable", "bad_input", "failed", "sentences"):
        assert getattr(found, said) == getattr(expected, said)
    assert expected.bad_input == ["damaged"]
    assert expected.failed == ["away"]
    assert stored(store.root) == stored(other.root)


def test_weights_that_change_meanwhile_are_not_taken_for_what_they_were(models, store, tmp_path):
    [model] = in_folders(tmp_path / "weights", 1)

    def dies(job):
        if isinstance(job, Measure):
            write_checkpoint(tmp_path / "weights" / "model-0", seed=99)
        return False

    summary = computed([model], store, Recorded(1, dies=dies))
    assert summary.bad_input == ["model-0"]
    assert "changed while" in summary.sentences[0]
    assert store.finding_names("model-0") == ["relative"]  # which needs no weights to say that it is missing


def test_a_model_whose_results_another_writes_comes_later(models, expected, store):
    lock = store.locked("model-0")
    lock.__enter__()

    def dies(job):
        if isinstance(job, Prepare) and job.request.model.name == "model-2":
            lock.__exit__(None, None, None)
        return False

    workers = Recorded(1, dies=dies)
    computed(models, store, workers)
    assert sum(line.startswith("model-0: waiting for another run") for line in workers.lines) == 1
    assert workers.measured()[0][0] == "model-1"
    assert stored(store.root) == expected


def test_waiting_too_long_for_one_model_costs_no_other(models, expected, tmp_path):
    impatient = Store(tmp_path / "results", wait=0)
    with impatient.locked("model-1"):
        summary = compute_models(models, Places(), impatient, named=True, findings=FINDINGS)
        found = without(stored(impatient.root), "model-1/")
    assert summary.failed == ["model-1"]
    [sentence] = summary.sentences
    assert sentence.startswith("model-1: The results of model-1 are being written by another run: ")
    assert found == without(expected, "model-1/")


@pytest.mark.parametrize("broken", ["open_model", "prepare"])
def test_an_error_that_nobody_foresaw_costs_its_model_alone(models, expected, store, monkeypatch, capsys, broken):
    whole = getattr(jobs, broken)

    def breaking(given, *more):
        if "model-1" in str(given):
            raise ZeroDivisionError("a bug")
        return whole(given, *more)

    monkeypatch.setattr(jobs, broken, breaking)
    summary = compute_models(models, Places(), store, named=True, findings=FINDINGS)
    what = {"open_model": "opening", "prepare": "reading weights"}[broken]
    assert summary.sentences == [f"model-1: {what} failed: ZeroDivisionError: a bug"]
    assert summary.failed == ["model-1"]
    assert "Traceback (most recent call last)" in capsys.readouterr().err
    assert stored(store.root) == without(expected, "model-1/")


@pytest.mark.parametrize(("count", "at"), [(1, 0), (1, 6), (2, 4)])
def test_after_ctrl_c_the_next_run_goes_on(models, expected, store, count, at):
    class Pressed(Recorded):
        def answers(self, seconds):
            yield from super().answers(seconds)
            if sum(len(store.finding_names(model.name)) for model in models) == at:
                raise KeyboardInterrupt

    with pytest.raises(Stopped, match="the same command goes on"):
        computed(models, store, Pressed(count))
    assert not any(store.is_held(model.name) for model in models)
    computed(models, store, Recorded(1))
    assert stored(store.root) == expected


@pytest.mark.parametrize(
    ("workers", "order"), [(1, ["weights", "short", "longest"]), (2, ["longest", "short", "weights"])]
)
def test_what_runs_the_model_longest_begins_first_beside_others_and_last_where_it_would_keep_them_waiting(
    models, store, monkeypatch, workers, order
):
    let_run(monkeypatch)
    runs = ("position_embedding", RUN)
    findings = (toy("short", needs=runs, passes=1.0), toy("weights"), toy("longest", needs=runs, passes=9.0))
    recorded = Recorded(workers)
    computed(models[:1], store, recorded, findings)
    assert [name for _, name in recorded.measured()] == order


@pytest.mark.parametrize("said", [CannotRunError("The model does not fit into memory."), MemoryError()])
def test_a_stored_result_stays_where_memory_is_short_now(models, store, monkeypatch, said):
    findings = (toy("weights"), toy("runs", needs=("position_embedding", RUN), passes=1.0))
    let_run(monkeypatch)
    compute_model(models[0], Places(), store, findings=findings)
    before = stored(store.root)
    assert store.finding("model-0", "runs").status == "computed"

    monkeypatch.setattr(running, "opened_model", raising(said))
    monkeypatch.setattr(running, "depends_on", lambda files, checkpoint: {"weights": 2})  # it would be measured anew
    lines = []
    outcome = compute_model(models[0], Places(), store, Display(lines.append), findings)
    assert outcome.stored == ("weights", "runs")
    assert stored(store.root) == before
    assert any("memory" in line and line.endswith("Its stored result stays.") for line in lines)
    (store.root / "model-0" / "runs.json").unlink()
    compute_model(models[0], Places(), store, findings=findings)
    assert store.finding("model-0", "runs").status == "missing"


def test_a_disk_that_is_full_ends_all_and_frees_locks(models, store, monkeypatch):
    monkeypatch.setattr(Store, "save_finding", raising(AtlasError("Results can't be written: the disk is full.")))
    workers = Recorded(2)
    with pytest.raises(AtlasError, match="disk is full"):
        computed(models, store, workers)
    assert workers.closed
    assert not any(store.is_held(model.name) for model in models)
    assert list(verify(store)) == []
