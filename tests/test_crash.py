"""A few faults of each kind: nothing stored is lost by them. `make crash` tries every step."""

import errno
import json

import pytest

from generators.base.files import replace_file
from tests import crash
from tests.faults import FAULTS, FailingDisk, Fault

EVERY = 89  # coprime to the number of faults: each kind is met
EVERY_KILL = 4


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return crash.world(tmp_path_factory.mktemp("crash"))


@pytest.mark.parametrize("before", crash.BEFORE)
def test_nothing_is_lost(world, before):
    chosen = crash.places(world.steps(before))[::EVERY]
    assert {fault for _, fault in chosen} >= {"killed before", "killed after", "disk full", "error of the disk"}
    found = {crash.outcome(world, before, at, fault) for at, fault in chosen}
    assert {"killed", "sentence"} <= found


def test_a_kill_before_a_replacement_or_removal_of_a_file_loses_nothing(world):
    before = next(iter(crash.BEFORE))
    moments = [at for at, kind in enumerate(world.steps(before), 1) if kind in ("replace", "unlink")]
    assert len(moments) > 2 * len(crash.NAMES)
    assert {crash.outcome(world, before, at, "killed before") for at in moments[::EVERY_KILL]} == {"killed"}


@pytest.mark.parametrize("fault", [name for name in FAULTS if not name.startswith("killed")])
def test_the_disk_fails_as_it_should(tmp_path, fault):
    """A fault that never struck would prove nothing."""
    (tmp_path / "old").write_text("before")

    def act():
        disk = FailingDisk(tmp_path, at=3, fault=FAULTS[fault])  # a folder, a file opened, and its bytes
        disk.install()
        said = "nothing"
        try:
            replace_file(tmp_path / "old", b"after")
        except OSError as error:
            said = errno.errorcode[error.errno]
        return {"code": 0, "said": said, "steps": disk.steps}

    ended = crash.in_child(act)
    assert ended.steps[:3] == ("mkdir", "open", "write")
    assert ended.said == errno.errorcode[FAULTS[fault].code]
    assert (tmp_path / "old").read_text() == "before"


@pytest.mark.parametrize(("at", "left"), [(2, None), (3, b""), (4, b"after")])
def test_a_process_ends_where_it_should(tmp_path, at, left):
    def act():
        FailingDisk(tmp_path, at, Fault("before", None)).install()
        replace_file(tmp_path / "new", b"after")
        return {"code": 0, "said": "", "steps": []}

    assert crash.in_child(act).signal is not None
    found = [path for path in tmp_path.iterdir() if path.name.startswith(".new")]
    assert [path.read_bytes() for path in found] == ([] if left is None else [left])


def test_what_is_damaged_is_noticed(world):
    world.start("over old results")
    path = next((world.project / "results" / crash.MODEL).glob("*.npz"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(AssertionError):
        crash.check_stored(world, "over old results")
    world.start("over old results")
    path = world.project / "results" / crash.MODEL / "gains.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content))  # whole, but neither old nor new: other white space
    with pytest.raises(AssertionError, match="neither old nor new"):
        crash.check_stored(world, "over old results")
    path.unlink()
    with pytest.raises(AssertionError, match="a finding is gone"):
        crash.check_stored(world, "over old results")


def test_a_mark_that_can_t_be_removed_is_shown_in_a_sentence(world):
    """Who holds the lock is noted in a file, whose removal is the last that can fail."""
    before = next(iter(crash.BEFORE))
    removals = [at for at, kind in enumerate(world.steps(before), 1) if kind == "unlink"]
    assert crash.outcome(world, before, removals[-1], "disk full") == "sentence"
