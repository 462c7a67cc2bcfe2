"""Several jobs at a time give what one after another gives, and no trouble of one costs another anything."""

import shutil
from collections import Counter

import pytest

from generators.base.errors import AtlasError
from generators.checkpoint.registry import Model, PackageSource
from generators.checkpoint.sources import Places
from generators.compute import fleet
from generators.compute.jobs import Measure, Prepare
from generators.compute.results import Store
from generators.compute.several import compute_models
from generators.compute.verify import verify
from tests.compute.fleets import FINDINGS, MEASURED, Inline, computed, in_folders, stored


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return three models, and the folder of results that computing one after another leaves."""
    place = tmp_path_factory.mktemp("fleet")
    models = in_folders(place, 3)
    store = Store(place / "results")
    compute_models(models, Places(), store, lambda line: None, lambda: None, named=True, findings=FINDINGS)
    return models, place / "results"


@pytest.fixture
def models(made):
    return made[0]


@pytest.fixture
def expected(made):
    return stored(made[1])


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def dies_of(model: str, what: str, times: int):
    """Return whether a worker dies of a job: of this one, so many times."""
    left = Counter({(model, what): times})

    def dies(job):
        which = job.given.model.name, job.what
        left[which] -= 1
        return left[which] >= 0

    return dies


@pytest.mark.parametrize("count", [1, 2, 5])
def test_results_are_those_of_one_after_another(models, expected, store, count):
    workers = Inline(count)
    tally = computed(models, store, workers)
    assert tally.sentences == []
    assert stored(store.root) == expected
    assert sorted(workers.measured()) == sorted((model.name, name) for model in models for name in MEASURED)
    assert workers.most == count
    assert workers.closed


def test_nothing_is_measured_twice_nor_written(models, made, store):
    shutil.copytree(made[1], store.root)
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*.*")}
    workers = Inline(2)
    computed(models, store, workers)
    assert workers.measured() == []
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*.*")} == before


def test_only_what_is_damaged_is_measured(models, expected, made, store):
    shutil.copytree(made[1], store.root)
    (store.root / "model-1" / "gains.json").write_text("{}")
    workers = Inline(2)
    computed(models, store, workers)
    assert workers.measured() == [("model-1", "gains")]
    assert stored(store.root) == expected


def test_a_worker_goes_on_with_the_model_it_has_open(models, store):
    workers = Inline(2)
    computed(models[:2], store, workers)
    first, second = ([name for name, _ in workers.measured()][i::2] for i in (0, 1))
    assert len(set(first)) == len(set(second)) == 1


def test_jobs_wait_for_memory(models, expected, store):
    alone = Inline(1)
    computed(models, Store(store.root.parent / "alone"), alone)
    limit = int(1.5 * alone.used)
    workers = Inline(3, memory=limit)
    computed(models, store, workers)
    assert workers.most == 1
    assert workers.used <= limit
    assert stored(store.root) == expected


def test_a_job_too_large_for_the_memory_is_done_alone(models, expected, store):
    workers = Inline(3, memory=1)
    computed(models, store, workers)
    assert workers.most == 1
    assert stored(store.root) == expected


@pytest.mark.parametrize("what", ["opening", "reading weights", "positions"])
def test_a_job_whose_worker_dies_is_begun_again(models, expected, store, what):
    workers, lines = Inline(2, dies=dies_of("model-1", what, 1)), []
    tally = computed(models, store, workers, lines)
    assert tally.sentences == []
    again = [line for line in lines if "begun again" in line]
    assert again == [f"model-1: {what} is begun again: of the process that did it, it was ended by SIGKILL"]
    assert stored(store.root) == expected
    assert max(Counter(workers.measured()).values()) == 1


def test_a_job_that_kills_twice_fails_and_costs_no_other(models, expected, store):
    tally = computed(models, store, Inline(2, dies=dies_of("model-1", "positions", 2)))
    reason = "The process that did it ended 2 times: it was ended by SIGKILL."
    assert tally.sentences == [f"model-1: positions failed: {reason}"]
    assert tally.failed == ["model-1"]
    assert store.finding("model-1", "positions").status == "failed"
    others = {name: data for name, data in expected.items() if not name.startswith("model-1/positions")}
    assert {name: data for name, data in stored(store.root).items() if name in others} == others
    computed(models, store, Inline(2))
    assert stored(store.root) == expected


def test_a_model_that_kills_when_it_is_read_fails_and_costs_no_other(models, expected, store):
    tally = computed(models, store, Inline(2, dies=dies_of("model-0", "reading weights", 2)))
    assert tally.failed == ["model-0"]
    assert "reading weights failed" in tally.sentences[0]
    assert stored(store.root) == {name: data for name, data in expected.items() if not name.startswith("model-0/")}


def test_models_that_cannot_be_had_or_used_are_told_as_one_after_another(models, store, tmp_path):
    folder = tmp_path / "damaged"
    folder.mkdir()
    (folder / "config.json").write_text("{")
    damaged = models[0].model_copy(
        update={"name": "damaged", "sources": (models[0].sources[0].model_copy(update={"folder": folder}),)}
    )
    away = Model(name="away", title="Away", sources=(PackageSource(package="no-such-package-here"),))
    wanted, lines = [damaged, away, models[0]], []
    other = Store(tmp_path / "other")
    expected = compute_models(wanted, Places(), other, lambda line: None, lambda: None, named=True, findings=FINDINGS)
    assert computed(wanted, store, Inline(2), lines) == expected
    assert expected.bad_input == ["damaged"]
    assert expected.failed == ["away"]
    assert stored(store.root) == stored(other.root)


def test_weights_that_change_meanwhile_are_not_taken_for_what_they_were(models, store, tmp_path):
    [model] = in_folders(tmp_path / "weights", 1)

    class Changing(Inline):
        def begin(self, worker, job):
            if isinstance(job, Measure) and not self.at_work and not self.done[2:]:
                in_folders_again(tmp_path / "weights")
            super().begin(worker, job)

    tally = computed([model], store, Changing(1))
    assert tally.bad_input == ["model-0"]
    assert "changed while" in tally.sentences[0]
    assert store.finding_names("model-0") == ["relative"]  # which needs no weights to say that it is missing


def in_folders_again(place):
    from tests.checkpoints import write_checkpoint

    write_checkpoint(place / "model-0", seed=99)


def test_a_model_whose_results_another_writes_comes_later(models, expected, store, monkeypatch):
    lock = store.locked("model-0")
    lock.__enter__()
    free_after = 2
    workers, lines = Inline(1), []
    begin = workers.begin

    def begun(worker, job):
        nonlocal free_after
        if isinstance(job, Prepare) and job.given.model.name != "model-0":
            free_after -= 1
            if not free_after:
                lock.__exit__(None, None, None)
        begin(worker, job)

    monkeypatch.setattr(workers, "begin", begun)
    computed(models, store, workers, lines)
    assert lines.count("model-0: another run writes its results; it comes later") == 1
    assert workers.measured()[0][0] == "model-1"
    assert stored(store.root) == expected


def test_a_disk_that_is_full_ends_all_and_frees_locks(models, store, monkeypatch):
    def full(*arguments):
        raise AtlasError("Results can't be written to there: the disk is full.")

    monkeypatch.setattr(fleet.run, "save", full)
    workers = Inline(2)
    with pytest.raises(AtlasError, match="disk is full"):
        computed(models, store, workers)
    assert workers.closed
    assert not any(store.is_held(model.name) for model in models)
    assert list(verify(store)) == []
