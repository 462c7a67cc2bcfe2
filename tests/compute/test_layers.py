"""Results computed here lie over those that git tracks: shown in their place, and moved to them when asked."""

import shutil
from pathlib import Path

import pytest

from generators.base.errors import InputError
from generators.checkpoint.sources import Places
from generators.compute import verify as room
from generators.compute.results import MODEL, Store
from generators.compute.schedule import compute_model
from generators.compute.verify import move, verify
from tests.checkpoints import write_checkpoint
from tests.compute.harness import model_in
from tests.compute.test_adopt import OLDER, TODAY
from tests.compute.test_results import MEASURED, NEW, OLD, TINY, record_of, same_arrays
from tests.toy_findings import toy


@pytest.fixture
def tracked(tmp_path) -> Store:
    store = Store(tmp_path / "results")
    store.save_model(TINY)
    for name in ("toy", "other"):
        store.save_finding("tiny", record_of(OLD, name, version=TODAY), MEASURED.arrays)
    return store


@pytest.fixture
def local(tracked) -> Store:
    return Store(tracked.root / "local", under=tracked.root)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name[0] != "."}


def test_what_nobody_computed_here_is_read_below(local, tracked):
    assert local.names() == ["tiny"]
    assert local.model("tiny") == TINY
    assert local.finding_names("tiny") == ["other", "toy"]
    record, arrays = local.load("tiny", "toy")
    assert record.key == OLD
    same_arrays(arrays, MEASURED.arrays)
    assert not local.root.exists()


def test_what_is_written_leaves_the_tracked_results_alone(local, tracked):
    before = files_of(tracked.root / "tiny")
    with local.locked("tiny"):
        local.save_finding("tiny", record_of(NEW, version=TODAY), {})
    assert files_of(tracked.root / "tiny") == before
    assert local.finding("tiny", "toy").key == NEW
    assert local.finding("tiny", "other").key == OLD  # copied: a model is read from one folder
    assert list(verify(local)) == []


def test_a_lock_under_which_nothing_new_was_written_leaves_no_copy(local):
    with local.locked("tiny"):
        assert local.finding("tiny", "toy").key == OLD
    assert not (local.root / "tiny").exists()


@pytest.mark.parametrize(("link", "to"), [("local", "."), ("local/tiny", "../tiny")])
def test_a_link_to_the_tracked_results_loses_none(local, tracked, link, to):
    before = files_of(tracked.root / "tiny")
    (tracked.root / link).parent.mkdir(exist_ok=True)
    (tracked.root / link).symlink_to(to)
    with local.locked("tiny"):
        local.save_finding("tiny", local.finding("tiny", "toy"), MEASURED.arrays)
    assert files_of(tracked.root / "tiny") == before


def test_results_of_another_model_behind_a_link_stay(tracked):
    before = files_of(tracked.root / "tiny")
    (tracked.root / "mine").symlink_to("tiny")
    with pytest.raises(InputError, match="are those of 'tiny'"), tracked.locked("mine"):
        pass
    assert files_of(tracked.root / "tiny") == before


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


def test_up_to_date_results_below_are_not_computed_again(tmp_path):
    folder = write_checkpoint(tmp_path / "models" / "model")
    model = model_in(folder, "model")
    tracked = Store(tmp_path / "results")
    assert compute_model(model, Places(), tracked, findings=[toy("toy")]).computed == ("toy",)
    local = Store(tracked.root / "local", under=tracked.root)
    assert compute_model(model, Places(), local, findings=[toy("toy")]).stored == ("toy",)
    assert not (local.root / "model" / MODEL).exists()


@pytest.fixture
def of_version_one(monkeypatch):
    monkeypatch.setattr(room, "FINDINGS", (toy("toy"), toy("other")))


@pytest.mark.parametrize(("version", "kept"), [(TODAY, NEW), (OLDER, OLD)])
def test_what_is_moved_replaces_what_is_no_newer(local, tracked, of_version_one, version, kept):
    with local.locked("tiny"):
        local.save_finding("tiny", record_of(NEW, version=version), {})
    assert move(Store(local.root), tracked) == ["tiny/toy"] * (kept == NEW)
    assert tracked.finding("tiny", "toy").key == kept
    assert tracked.finding("tiny", "other").key == OLD
    assert not (local.root / "tiny").exists()
    assert list(verify(tracked)) == []


def test_what_is_damaged_is_not_moved(local, tracked, of_version_one):
    with local.locked("tiny"):
        local.save_finding("tiny", record_of(NEW, version=TODAY), {})
    (local.root / "tiny" / "toy.json").write_text("{}")
    with pytest.raises(InputError, match="damaged"):
        move(Store(local.root), tracked)
    assert (local.root / "tiny" / MODEL).is_file()
    assert tracked.finding("tiny", "toy").key == OLD
