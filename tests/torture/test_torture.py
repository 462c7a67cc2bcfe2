"""Mutants of each kind, faults of each kind, and the figures of the other harnesses; and that harnesses notice."""

import itertools
import json

import pytest

from generators.base.errors import InputError
from generators.site import quality_reports
from tests.checkpoints import Sizes
from tests.conftest import ROOT
from tests.torture import costs, crash, fuzz
from tests.torture.kinds import KINDS, Kind
from tests.torture.processes import GIBI

TINY = Sizes(n_layer=1, n_head=1, d_model=32, n_ctx=64, vocab_size=400)
WAYS = [(kind, way) for kind, each in KINDS.items() for way in range(len(each.ways))]


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_mutant_gives_a_result_or_a_sentence(kind, way):
    ended = fuzz.mutant(kind, 0, way)
    assert ended.is_sound, ended.said


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda folder, rng: 1 / 0, "ZeroDivisionError"),
        (lambda folder, rng: all(itertools.repeat(True)), "ended by signal"),
        (lambda folder, rng: bytearray(3 * GIBI), "MemoryError"),
        (lambda folder, rng: print("a" * 10**6), "aaa"),
    ],
)
def test_what_breaks_or_takes_too_much_is_shown(monkeypatch, write, said):
    monkeypatch.setattr(fuzz, "SECONDS", 1 if said == "ended by signal" else fuzz.SECONDS)
    monkeypatch.setitem(KINDS, "of the harness", Kind(("models.yml",), write))
    ended = fuzz.mutant("of the harness", 0)
    assert not ended.is_sound
    assert said in ended.said


# Faults


def test_nothing_is_lost_whatever_fails(monkeypatch):
    monkeypatch.setattr(crash, "COMMANDS", dict(list(crash.COMMANDS.items())[:2]))  # `make crash` tries all
    found = list(crash.tried(most=25))
    for fault, error in crash.FAULTS.items():
        outcomes = {outcome for kind, outcome in found if kind.endswith(f": {fault}")}
        assert outcomes == {"killed"} if error is None else {"sentence"} <= outcomes <= {"sentence", "finished"}


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


# Figures


def test_figures_are_stored_and_read(tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "RESULTS", tmp_path)
    monkeypatch.setattr(fuzz, "RESULTS", tmp_path / "fuzz.json")
    monkeypatch.setitem(costs.SHAPES, "tiny", (1, TINY))
    costs.large(["tiny"], ["gains"], write=True)
    took = json.loads((tmp_path / "large.json").read_text())["findings"]["gains"]["tiny"]
    assert (took["status"], took["mib"] > 50) == ("computed", True)
    assert costs.growth({"base": 2.0, "layers": 32.0}) == "2.0 s, layers x 4 32.0 s (power 2.0)"
    monkeypatch.setattr(fuzz, "KINDS", {"config": KINDS["config"]})
    fuzz.fuzz(mutants=2, jobs=2, kind=["config"], write=True)
    assert sum(quality_reports.read(tmp_path, "fuzz").kinds["config"].values()) == 2


@pytest.mark.parametrize("name", quality_reports.REPORTS)
def test_every_report_can_be_read_and_damage_is_a_sentence(tmp_path, name):
    assert quality_reports.read(ROOT / "results", name) is not None
    assert quality_reports.read(tmp_path, name) is None
    (tmp_path / f"{name}.json").write_text(json.dumps({"date": "1"}))
    with pytest.raises(InputError, match=f"make {name}"):
        quality_reports.read(tmp_path, name)
