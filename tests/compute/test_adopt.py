"""Of two stores of results, what is missing, older or damaged in one is taken over from the other."""

import numpy as np
import pytest

from generators.base.errors import InputError
from generators.compute import verify as room
from generators.compute.records import StoredFinding, TensorEntry
from generators.compute.results import Store
from generators.compute.verify import adopt, move, verify
from tests.compute.test_results import MEASURED, NEW, OLD, TINY, damage, record_of
from tests.toy_findings import toy

TODAY, OLDER = 1, 0  # versions of a finding


@pytest.fixture
def other(tmp_path, monkeypatch) -> Store:
    """Return another store; the atlas's one finding is `toy`, of version TODAY."""
    monkeypatch.setattr(room, "FINDINGS", (toy("toy"),))
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
