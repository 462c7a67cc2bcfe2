"""Mutants of each kind, faults of each kind, and the figures of the other harnesses; and that harnesses notice."""

import errno
import json
import shutil

import pytest

from generators.base.errors import InputError
from generators.base.files import replace_file
from generators.site import quality_reports
from tests.checkpoints import Sizes
from tests.conftest import ROOT
from tests.torture import costs, crash, fuzz, sites
from tests.torture.kinds import KINDS, Kind
from tests.torture.processes import GIBI, in_child

TINY = Sizes(n_layer=1, n_head=1, d_model=32, n_ctx=64, vocab_size=400)
WAYS = [(kind, way) for kind, each in KINDS.items() for way in range(len(each.ways) if each.files else 1)]
MODEL = "all-minilm-l6-v2"  # in which nearly everything is measured


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_mutant_gives_a_result_or_a_sentence(kind, way):
    ended = fuzz.mutant(kind, 0, way)
    assert ended.is_sound, ended.said


def endless(folder, rng):
    while True:
        pass


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda folder, rng: 1 / 0, "ZeroDivisionError"),
        (endless, "ended by signal"),
        (lambda folder, rng: bytearray(3 * GIBI), "MemoryError"),
        (lambda folder, rng: print("a" * 10**6), "aaa"),
    ],
)
def test_what_breaks_or_takes_too_much_is_shown(monkeypatch, write, said):
    monkeypatch.setattr(fuzz, "SECONDS", 1 if write is endless else fuzz.SECONDS)
    monkeypatch.setitem(KINDS, "of the harness", Kind(write=write))
    ended = fuzz.mutant("of the harness", 0)
    assert not ended.is_sound
    assert said in ended.said


# Faults


def test_nothing_is_lost(monkeypatch):
    commands = dict(list(crash.COMMANDS.items())[:2])  # `make crash` tries all
    monkeypatch.setattr(crash, "COMMANDS", commands)
    found = crash.tried(0, 1, most=25)
    assert {one.kind for one in found} == {f"{name}: {fault}" for name in commands for fault in crash.FAULTS}
    assert {one.outcome for one in found} == {"killed", "sentence", "finished"}


def test_damage_is_noticed(tmp_path):
    world, command = crash.world(tmp_path), next(iter(crash.COMMANDS.values()))
    new, folder = world.stored(["new"]), tmp_path / "results" / "model"
    world.start(command)
    path = next(folder.glob("*.npz"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(AssertionError):
        world.check_stored(command, new)
    world.start(command)
    path = folder / "gains.json"
    path.write_text(json.dumps(json.loads(path.read_text())))  # whole, but neither old nor new: other white space
    with pytest.raises(AssertionError, match="neither old nor new"):
        world.check_stored(command, new)
    path.unlink()
    with pytest.raises(AssertionError, match="is gone"):
        world.check_stored(command, new)


@pytest.mark.parametrize("fault", crash.FAULTS)
def test_disk_fails_as_it_should(tmp_path, fault):
    """A fault that never struck would prove nothing. Steps: a folder, a file opened, its bytes synced, its place."""
    (tmp_path / "old").write_text("before")

    def act():
        crash.FailingDisk(tmp_path, 2, fault).install()
        try:
            replace_file(tmp_path / "old", b"afterwards")
        except OSError as error:
            return errno.errorcode[error.errno]

    ended = in_child(act, crash.SECONDS, GIBI)
    expected = crash.FAULTS[fault]
    assert bool(ended.signal) == (expected is None)
    assert ended.gave == (expected and errno.errorcode[expected])
    left = [path.read_bytes() for path in tmp_path.iterdir() if path.name.startswith(".old")]
    assert left == ([b"afterwards"[: crash.HALF]] if fault == "killed halfway through a write" else [])
    assert (tmp_path / "old").read_text() == "before"


# Figures


def test_figures_are_stored_and_read(tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "RESULTS", tmp_path)
    monkeypatch.setattr(fuzz, "RESULTS", tmp_path / "fuzz.json")
    monkeypatch.setitem(costs.SHAPES, "tiny", (1, TINY))
    costs.large(["tiny"], ["gains"], write=True)
    took = json.loads((tmp_path / "large.json").read_text())["findings"]["gains"]["tiny"]
    assert (took["status"], took["mib"] > 50) == ("computed", True)
    assert costs.growth({"base": 2.0, "layers": 32.0}) == "2.0 s, layers x 4 32.0 s (power 2.0)"
    shutil.copy(ROOT / "results" / "fuzz.json", tmp_path)
    fuzz.fuzz(mutants=2, jobs=2, kind=["config"], write=True)
    assert sum(quality_reports.read(tmp_path, "fuzz").kinds["config"].values()) == 2


def test_two_builds_of_a_model_are_alike(tmp_path):
    built = []
    for name, circumstances in zip(("first", "second, longer/in it"), sites.CIRCUMSTANCES, strict=True):
        project = sites.copied(tmp_path / name, ("mkdocs.yml", "site_src", f"results/{MODEL}"))
        (project / "models.yml").write_text("[]")
        shutil.rmtree(project / "site_src" / "notebooks")  # executed by `make reproducible`, which takes minutes
        built.append(sites.rendered(project, circumstances))
    assert len(built[0]) > 60
    assert sites.differing(*built) == []
    assert sites.differing({"a": b"1", "b": b"2", "c": b"3"}, {"a": b"1", "b": b"0", "d": b"3"}) == ["b", "c", "d"]


@pytest.mark.parametrize("name", quality_reports.REPORTS)
def test_every_report_can_be_read_and_damage_is_a_sentence(tmp_path, name):
    assert quality_reports.read(ROOT / "results", name) is not None
    assert quality_reports.read(tmp_path, name) is None
    (tmp_path / f"{name}.json").write_text(json.dumps({"date": "1"}))
    with pytest.raises(InputError, match=f"make {name}"):
        quality_reports.read(tmp_path, name)
