"""Of two stores of results, what is missing, older or damaged in one is taken over from the other.

Those computed here lie over those that git tracks: shown in their place, and moved to them when asked.
"""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from generators.base.errors import InputError
from generators.checkpoint.sources import Places
from generators.compute import verify as room
from generators.compute.records import StoredFinding, TensorEntry
from generators.compute.results import MODEL, Store
from generators.compute.schedule import compute_model
from generators.compute.verify import adopt, move, verify
from tests.checkpoints import write_checkpoint
from tests.compute.harness import contents, model_in
from tests.compute.test_results import MEASURED, NEW, OLD, TINY, damage, record_of, same_arrays
from tests.toy_findings import toy

TODAY, OLDER = 1, 0  # versions of a finding


@pytest.fixture(autouse=True)
def _of_version_today(monkeypatch):
    monkeypatch.setattr(room, "FINDINGS", (toy("toy"), toy("other")))


@pytest.fixture
def other(tmp_path) -> Store:
    store = Store(tmp_path / "cache")
    store.save_model(TINY)
    return store


def result_after(kept: Store, other: Store) -> str | None:
    adopt(kept, other)
    found = kept.load("tiny", "toy")
    return None if found is None else found[0].key


@pytest.mark.parametrize(
    ("ours", "theirs"), [(None, TODAY), (None, OLDER), (OLDER, TODAY), (TODAY, TODAY), (TODAY, OLDER), (OLDER, OLDER)]
)
def test_what_is_missing_or_older_is_taken_over(store, other, ours, theirs):
    store.save_model(TINY)
    if ours is not None:
        store.save_finding("tiny", record_of(OLD, version=ours), MEASURED.arrays)
    other.save_finding("tiny", record_of(NEW, version=theirs), {"more": np.ones(3)})
    assert (result_after(store, other) == NEW) == (ours is None or ours < theirs)
    assert list(verify(store)) == []


@pytest.mark.parametrize(
    ("key", "day", "taken"),
    [(NEW, "2026-01-03", True), (NEW, "2026-01-02", False), (NEW, "2026-01-01", False), (OLD, "2026-01-03", False)],
)
def test_of_two_results_of_one_version_the_later_one_is_taken_if_it_is_of_other_weights(
    store, other, key, day, taken
):
    store.save_model(TINY)
    store.save_finding("tiny", record_of(OLD, version=TODAY), MEASURED.arrays)
    theirs = record_of(key, version=TODAY).model_copy(update={"computed_on": day})
    other.save_finding("tiny", theirs, MEASURED.arrays)
    assert adopt(store, other) == ["tiny/toy"] * taken


def test_results_of_two_weights_are_not_mixed(store, other):
    def measured(where: Store, finding: str, digest: str, key: str) -> None:
        tensors = {"E": TensorEntry(name="wte", shape=(64, 24), dtype="F32", sha256=digest)}
        record = record_of(key, version=OLDER).model_copy(update={"finding": finding, "tensors": tensors})
        where.save_finding("tiny", record, {})

    store.save_model(TINY)
    measured(store, "kept", "a" * 64, OLD)
    measured(other, "more", "b" * 64, NEW)
    other.save_model(TINY.model_copy(update={"name": "zero"}))
    other.save_finding("zero", record_of(NEW, version=TODAY), {})
    with pytest.raises(InputError, match="results of tiny that were measured from other weights"):
        adopt(store, other)
    assert store.finding_names("tiny") == ["kept"]
    assert store.finding_names("zero") == ["toy"]
    with pytest.raises(InputError, match="results of tiny that were measured from other weights"):
        move(other, store)
    assert (store.finding_names("tiny"), other.finding_names("tiny")) == (["kept"], ["more"])
    measured(other, "more", "a" * 64, NEW)
    assert adopt(store, other) == ["tiny/more"]


def test_why_nothing_was_measured_is_taken_over_in_the_words_of_the_other(store, other):
    for where, reason in ((store, "It was too large."), (other, "It is too large.")):
        where.save_model(TINY)
        where.save_finding("tiny", StoredFinding(finding="toy", status="missing", reason=reason), {})
    assert adopt(store, other) == ["tiny/toy"]
    assert adopt(store, other) == []
    other.save_finding("tiny", record_of(OLD, version=OLDER), MEASURED.arrays)
    assert adopt(store, other) == []


def test_a_damaged_result_is_replaced_and_never_taken(store, other):
    for where, key in ((store, OLD), (other, NEW)):
        where.save_model(TINY)
        where.save_finding("tiny", record_of(key, version=TODAY), MEASURED.arrays)
    damage(other.root / "tiny" / "toy.json", "bit")
    assert result_after(store, other) == OLD
    store.remove_finding("tiny", "toy")
    assert result_after(store, other) is None
    store.save_finding("tiny", record_of(OLD, version=TODAY), MEASURED.arrays)
    other.save_finding("tiny", record_of(NEW, version=OLDER), MEASURED.arrays)
    damage(store.root / "tiny" / "toy.json", "bit")
    assert result_after(store, other) == NEW
    assert list(verify(store)) == []


# Layers


@pytest.fixture
def tracked(store) -> Store:
    store.save_model(TINY)
    for name in ("toy", "other"):
        store.save_finding("tiny", record_of(OLD, name, version=TODAY), MEASURED.arrays)
    return store


@pytest.fixture
def local(tracked) -> Store:
    return Store(tracked.root / "local", under=tracked.root)


def test_what_nobody_computed_here_is_read_below(local, tracked):
    assert local.names() == ["tiny"]
    assert local.model("tiny") == TINY
    assert local.finding_names("tiny") == ["other", "toy"]
    record, arrays = local.load("tiny", "toy")
    assert record.key == OLD
    same_arrays(arrays, MEASURED.arrays)
    assert not local.root.exists()


def test_what_is_written_leaves_the_tracked_results_alone(local, tracked):
    before = contents(tracked.root / "tiny")
    with local.locked("tiny"):
        local.save_finding("tiny", record_of(NEW, version=TODAY), {})
    assert contents(tracked.root / "tiny") == before
    assert local.finding("tiny", "toy").key == NEW
    assert local.finding("tiny", "other").key == OLD  # copied: a model is read from one folder
    assert list(verify(local)) == []


def test_a_lock_under_which_nothing_new_was_written_leaves_no_copy(local):
    with local.locked("tiny"):
        assert local.finding("tiny", "toy").key == OLD
    assert contents(local.root / "tiny") == {}


@pytest.mark.parametrize(("link", "to"), [("local", "."), ("local/tiny", "../tiny")])
def test_a_link_to_the_tracked_results_loses_none(local, tracked, link, to):
    before = contents(tracked.root / "tiny")
    (tracked.root / link).parent.mkdir(exist_ok=True)
    (tracked.root / link).symlink_to(to)
    with local.locked("tiny"):
        local.save_finding("tiny", local.finding("tiny", "toy"), MEASURED.arrays)
    assert contents(tracked.root / "tiny") == before


def test_a_copy_that_was_cut_short_counts_as_none(local, tracked):
    (local.root / "tiny").mkdir(parents=True)
    shutil.copy(tracked.root / "tiny" / "toy.json", local.root / "tiny")
    assert local.folder("tiny") == tracked.root / "tiny"
    with local.locked("tiny"):
        local.save_finding("tiny", record_of(NEW, version=TODAY), {})
    assert local.finding("tiny", "other").key == OLD


def test_damage_below_is_found_although_it_is_not_shown(local, tracked):
    with local.locked("tiny"):
        local.save_finding("tiny", record_of(NEW, version=TODAY), {})
    (tracked.root / "tiny" / "other.json").write_text("{}")
    assert [name for name, _ in verify(local)] == ["tiny"]


def test_up_to_date_results_below_are_not_computed_again(tmp_path, store):
    model = model_in(write_checkpoint(tmp_path / "models" / "model"), "model")
    assert compute_model(model, Places(), store, findings=[toy("toy")]).computed == ("toy",)
    local = Store(store.root / "local", under=store.root)
    assert compute_model(model, Places(), local, findings=[toy("toy")]).stored == ("toy",)
    assert not (local.root / "model" / MODEL).exists()


@pytest.mark.parametrize(("version", "kept"), [(TODAY, NEW), (OLDER, OLD)])
def test_what_is_moved_replaces_what_is_no_newer(local, tracked, version, kept):
    with local.locked("tiny"):
        local.save_finding("tiny", record_of(NEW, version=version), {})
    assert move(Store(local.root), tracked) == ["tiny/toy"] * (kept == NEW)
    assert tracked.finding("tiny", "toy").key == kept
    assert tracked.finding("tiny", "other").key == OLD
    assert contents(local.root / "tiny") == {}
    assert list(verify(tracked)) == []


def test_arrays_that_a_killed_move_has_replaced_are_removed_by_the_next(local, tracked):
    with local.locked("tiny"):
        local.save_finding("tiny", record_of(NEW, version=TODAY), MEASURED.arrays)
    (before,) = (tracked.root / "tiny").glob("toy.*.npz")
    old = before.read_bytes()
    with tracked.locked("tiny"):
        tracked.save_finding("tiny", *local.load("tiny", "toy"))
    before.write_bytes(old)
    assert move(Store(local.root), tracked) == []
    assert not before.exists()


def test_results_that_are_being_removed_are_not_damaged(tracked):
    def remove() -> None:
        with tracked.locked("tiny"):
            (tracked.root / "tiny" / MODEL).unlink()
            begun.set()
            looked.wait()
            tracked.remove_model("tiny")

    begun, looked = Event(), Event()
    with ThreadPoolExecutor() as pool:
        removed = pool.submit(remove)
        begun.wait()
        pool.submit(lambda: time.sleep(0.2) or looked.set())
        assert list(verify(tracked)) == []
        removed.result()


def test_what_is_damaged_is_not_moved(local, tracked):
    with local.locked("tiny"):
        local.save_finding("tiny", record_of(NEW, version=TODAY), {})
    (local.root / "tiny" / "toy.json").write_text("{}")
    with pytest.raises(InputError, match="damaged"):
        move(Store(local.root), tracked)
    assert (local.root / "tiny" / MODEL).is_file()
    assert tracked.finding("tiny", "toy").key == OLD
