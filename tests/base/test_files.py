"""Files are the old or the new, are brought to the disk, and what killed processes left half written goes."""

import errno
import os
from pathlib import Path
from threading import get_ident

import pytest

from generators.base.files import recover_folder, replace_file, replacing, swap_folder, sweep, write_if_changed


def on_disk(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """Note what is brought to the disk, and what is put in place, in order."""
    noted: list[tuple[str, Path]] = []
    fsync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        noted.append(("fsync", on_disk(descriptor)))
        fsync(descriptor)

    def replaced(path: Path, target: Path) -> Path:
        noted.append(("replace", path))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    return noted


def test_the_file_is_brought_to_the_disk_before_it_is_put_in_place_and_its_folder_after(tmp_path, calls):
    folder = tmp_path / "made" / "on the way"
    replace_file(folder / "file", b"new")
    temporary = folder / f".file.{os.getpid()}.{get_ident()}.tmp"
    assert calls == [("fsync", temporary), ("replace", temporary), ("fsync", folder)]
    assert (folder / "file").read_bytes() == b"new"


def test_where_a_folder_cannot_be_brought_to_the_disk_the_file_is_written_all_the_same(tmp_path, monkeypatch):
    def folders_refused(descriptor: int) -> None:
        if on_disk(descriptor).is_dir():
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", folders_refused)
    replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_what_goes_wrong_leaves_the_old_file_alone(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")

    def refused(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "file") as temporary:
        temporary.write_bytes(b"half")
        raise ZeroDivisionError
    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError, match="Input/output"):
        replace_file(tmp_path / "file", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"old")]


def test_an_unchanged_file_is_left_alone(tmp_path, calls):
    assert write_if_changed(tmp_path / "file", b"one")
    calls.clear()
    assert not write_if_changed(tmp_path / "file", b"one")
    assert calls == []
    assert write_if_changed(tmp_path / "file", b"other")
    assert (tmp_path / "file").read_bytes() == b"other"


def test_a_sweep_takes_what_was_left_half_written_and_nothing_else(tmp_path):
    stored = {"file", "file.tmp", ".hidden", ".lock", ".notes.mine.tmp"}
    for name in (*stored, ".file.4711.tmp", ".other.json.1.tmp"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / ".inner.1.tmp").write_text("another folder's")
    sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*stored, "folder"}
    assert (tmp_path / "folder" / ".inner.1.tmp").exists()


@pytest.fixture(params=["one disk", "two disks"])
def disks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let renaming from one folder to another fail, as from disk to disk."""
    rename = os.rename

    def renamed(source: Path, target: Path) -> None:
        if Path(source).parent != Path(target).parent:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target)

    if request.param == "two disks":
        monkeypatch.setattr(os, "rename", renamed)


@pytest.mark.usefixtures("disks")
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("left_behind", [True, False])
def test_a_finished_folder_takes_the_place_of_the_current_one(tmp_path, there, left_behind):
    new, current = tmp_path / "cache" / "new", tmp_path / "place" / "site"
    new.mkdir(parents=True)
    (new / "page").write_text("new")
    if there:
        current.mkdir(parents=True)
        (current / "page").write_text("old")
        (current / "gone").write_text("old")
    if left_behind:  # by a process that was killed half-way
        for name in (".site.old", ".site.new"):
            current.with_name(name).mkdir(parents=True)
            (current.with_name(name) / "page").write_text("older")
    swap_folder(new, current)
    assert [(path.name, path.read_text()) for path in current.iterdir()] == [("page", "new")]
    assert [path.name for path in current.parent.iterdir()] == ["site"]
    assert not new.exists()


def test_a_folder_that_was_moved_away_when_the_process_was_killed_comes_back(tmp_path, monkeypatch):
    current, new = tmp_path / "report", tmp_path / "new"
    for folder, content in ((current, "old"), (new, "new")):
        folder.mkdir()
        (folder / "a").write_text(content)
    rename = Path.rename

    def killed(path, target):
        if path.name == ".report.new":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        swap_folder(new, current)
    assert not current.exists()
    recover_folder(current)
    assert (current / "a").read_text() == "old"
