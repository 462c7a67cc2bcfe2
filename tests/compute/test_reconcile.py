"""A model is passed over where all is as it was when nothing was left to do; where anything isn't, it is opened."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from generators import findings as all_findings
from generators.base.errors import AtlasError
from generators.checkpoint.registry import Model
from generators.compute import jobs, reconcile
from generators.compute.results import UP_TO_DATE, Store
from generators.compute.running import RunSettings
from tests.checkpoints import config_of, write_checkpoint, write_json
from tests.compute.harness import Recorded, computed, model_in, raising
from tests.compute.test_results import damage
from tests.toy_findings import toy

FINDINGS = (toy("positions"), toy("norms", needs=("blocks.*.ln2.gain",)))
COUNTS = "counts.npy"


@pytest.fixture(autouse=True)
def _findings(monkeypatch):
    monkeypatch.setattr(all_findings, "FINDINGS", FINDINGS)


@pytest.fixture
def looked_at(monkeypatch):
    names, open_model = [], jobs.open_model

    def opened(model, *given):
        names.append(model.name)
        return open_model(model, *given)

    monkeypatch.setattr(jobs, "open_model", opened)
    return names


@pytest.fixture
def place(tmp_path):
    write_checkpoint(tmp_path / "tiny", "gpt2")
    (tmp_path / COUNTS).write_bytes(b"counts of the tokens")
    return tmp_path


def tiny(place: Path, **fields) -> Model:
    return model_in(place / "tiny", **fields)


def asked(place: Path, settings: RunSettings | None = None, findings=None, **fields) -> list[str]:
    """Compute the model; return the lines that tell of it."""
    workers = Recorded(1)
    computed([tiny(place, **fields)], Store(place / "results"), workers, findings, settings or RunSettings())
    return workers.lines


def test_it_is_opened_once_and_again_where_nothing_is_remembered(place, looked_at):
    assert asked(place) == ["tiny: computed positions, norms"]
    assert asked(place) == ["tiny: already stored: positions, norms"] == asked(place)
    assert looked_at == ["tiny"]
    asked(place)
    (place / "results" / "tiny" / UP_TO_DATE).unlink()
    assert asked(place) == asked(place)
    assert looked_at == ["tiny", "tiny"]


RESULT = "results/tiny/norms.json"
CHANGES = {  # a file, and what becomes of it
    "a weight": ("tiny/model.safetensors", lambda path: damage(path, "bit")),
    "the config": ("tiny/config.json", lambda path: write_json(path, {**config_of("gpt2"), "more": None})),
    "another file": ("tiny/tokenizer.json", lambda path: path.write_text("{}")),
    "a result": (RESULT, lambda path: damage(path, "bit")),
    "a result lost": (RESULT, Path.unlink),
    "a result too many": (RESULT, lambda path: shutil.copy(path, path.with_name("more.json"))),
    "what is remembered": (f"results/tiny/{UP_TO_DATE}", lambda path: path.write_text("{}")),
    "what is remembered, to nonsense": (f"results/tiny/{UP_TO_DATE}", lambda path: path.write_bytes(b"\xff")),
}


@pytest.mark.parametrize(("name", "change"), CHANGES.values(), ids=CHANGES)
def test_what_changed_is_looked_at(place, looked_at, name, change):
    asked(place)
    change(place / name)
    asked(place)
    assert looked_at == ["tiny", "tiny"]
    assert json.loads((place / RESULT).read_text())["status"] == "computed"


def test_other_settings_entries_counts_code_and_findings_by_name_are_looked_at(place, looked_at, monkeypatch):
    counts = {"counts": place / COUNTS}
    asked(place, **counts)
    asked(place, **counts)
    assert len(looked_at) == 1
    asked(place, RunSettings(budget_s=7), **counts)
    asked(place, notes="What else is known.", **counts)
    (place / COUNTS).write_bytes(b"other counts")
    asked(place, notes="What else is known.", **counts)
    assert len(looked_at) == 4
    monkeypatch.setattr(reconcile.digests, "of_code", lambda: "other code")
    asked(place, notes="What else is known.", **counts)
    assert len(looked_at) == 5
    asked(place, findings=FINDINGS[:1], notes="What else is known.", **counts)
    assert len(looked_at) == 6


def test_a_finding_that_failed_is_tried_again(place, looked_at, monkeypatch):
    broken = toy("positions", measure=raising(RuntimeError("broken")))
    monkeypatch.setattr(all_findings, "FINDINGS", (broken,))
    asked(place)
    asked(place)
    assert len(looked_at) == 2


def test_where_it_cannot_be_remembered_results_stay(place, looked_at, monkeypatch):
    monkeypatch.setattr(Store, "remember", raising(AtlasError("The disk is full.")))
    asked(place)
    assert asked(place) == ["tiny: already stored: positions, norms"]
    assert len(looked_at) == 2


def test_nothing_that_measures_is_imported(tmp_path):
    write_checkpoint(tmp_path / "tiny", "gpt2")
    script = """
import sys
from generators.cli import app
try:
    app(["compute", "./tiny", "--skip-runs"])
except SystemExit as end:
    assert not end.code
print("measures", "generators.findings.helix" in sys.modules)
"""
    said = [
        subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert "measures True" in said[0]
    assert "measures False" in said[1]
