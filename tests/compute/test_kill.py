"""A run may be killed at any moment: what is stored stays readable, and the next run finishes the work."""

import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from generators.compute.results import ModelFindings, Store
from generators.compute.run import stored_result
from tests.checkpoints import SMALL, Sizes, write_checkpoint

SLOWER = Sizes(n_layer=3, n_head=2, d_model=64, n_ctx=512)
KILLS = 10
SEED = 138
REPLACEMENTS = 10  # of files in one run: two for each of four findings, the last findings.json, the pruned arrays
RUN = "from generators.cli import main; main()"
RUN_UNTIL_REPLACEMENT = """
import os, pathlib, signal, sys
left, replace = int(sys.argv.pop(1)), pathlib.Path.replace
def killed(path, target):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(path, target)
pathlib.Path.replace = killed
"""


def computing(results: str, code: str = RUN, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments, "compute", "./model", "--results", results]


@dataclass(frozen=True)
class Template:
    """A folder with a model, results `old` of the weights that it had, and results `new` of those it has."""

    project: Path
    run_time: float

    def copied(self, project: Path, had_results: bool) -> Store:
        shutil.copytree(self.project, project)
        if had_results:
            shutil.copytree(project / "old", project / "results")
        return Store(project / "results")


def template(project: Path, sizes: Sizes) -> Template:
    (project / "models.yml").write_text("[]")
    run_times = []
    for seed, results in enumerate(("old", "new")):
        write_checkpoint(project / "model", sizes=sizes, seed=seed)
        began = time.monotonic()
        subprocess.run(computing(results), cwd=project, check=True, capture_output=True)
        run_times.append(time.monotonic() - began)
    return Template(project, min(run_times))


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return template(tmp_path_factory.mktemp("quick"), SMALL)


@pytest.fixture(scope="module")
def slower(tmp_path_factory):
    return template(tmp_path_factory.mktemp("slower"), SLOWER)


def judged(findings: ModelFindings) -> dict[str | None, list[tuple[str, str, str]]]:
    """Return the claims of each finding by the key of what it was computed from."""
    return {
        record.key: [(claim.id, claim.verdict, claim.answer) for claim in findings.claims if claim.finding == name]
        for name, record in findings.findings.items()
    }


def assert_readable(store: Store, *possible: Store) -> bool:
    """Check that whatever is stored is whole, and is of the possible results; return whether anything is."""
    left = store.load("model")
    if left is None:
        return False
    expected = {key: claims for other in possible for key, claims in judged(other.load("model")).items()}
    for key, claims in judged(left).items():
        assert claims == expected[key]
    for record in left.findings.values():
        assert stored_result(store, "model", record).arrays
    return True


def assert_next_run_finishes(atlas, store: Store, new: Store) -> None:
    assert atlas("compute", "./model").code == 0
    assert judged(store.load("model")) == judged(new.load("model"))
    assert_readable(store, new)
    left = {path.name for path in (store.root / "model").iterdir()}
    assert left == {".lock", "arrays.npz", "findings.json"}


@pytest.mark.parametrize("number", range(KILLS))
def test_killed_at_any_moment(slower, number, tmp_path, atlas, monkeypatch):
    had_results = number % 2 == 0
    store = slower.copied(tmp_path / "project", had_results)
    monkeypatch.chdir(tmp_path / "project")
    old, new = Store(Path("old")), Store(Path("new"))
    moment = (number + random.Random(SEED + number).random()) / KILLS * slower.run_time
    with subprocess.Popen(computing("results"), stderr=subprocess.DEVNULL) as process:
        time.sleep(moment)
        process.kill()
    was_running = process.returncode == -signal.SIGKILL
    assert was_running or number  # the first is killed while Python starts
    anything = assert_readable(store, new, *([old] if had_results else []))
    assert anything or (was_running and not had_results)
    assert_next_run_finishes(atlas, store, new)


@pytest.mark.parametrize("number", range(1, REPLACEMENTS + 1))
def test_killed_before_each_replacement_of_a_file(quick, number, tmp_path, atlas, monkeypatch):
    store = quick.copied(tmp_path / "project", had_results=True)
    monkeypatch.chdir(tmp_path / "project")
    old, new = Store(Path("old")), Store(Path("new"))
    run = computing("results", RUN_UNTIL_REPLACEMENT + RUN, str(number))
    process = subprocess.run(run, check=False, stderr=subprocess.DEVNULL)
    assert process.returncode == -signal.SIGKILL
    assert list((store.root / "model").glob(".*.tmp"))  # half-way indeed
    assert assert_readable(store, old, new)
    assert_next_run_finishes(atlas, store, new)
