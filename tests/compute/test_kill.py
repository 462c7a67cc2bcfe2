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

from generators.compute.judged import judged_model
from generators.compute.results import Store
from generators.compute.verify import verify
from tests.checkpoints import SMALL, Sizes, write_checkpoint

SLOWER = Sizes(n_layer=3, n_head=2, d_model=64, n_ctx=512)
KILLS = 10
SEED = 138
MOMENTS = 12  # three for each of the first four findings: its arrays, its JSON, the arrays of what was there before
RUN = "from generators.cli import main; main()"
RUN_UNTIL_MOMENT = """
import os, pathlib, signal, sys
left, replace, unlink = int(sys.argv.pop(1)), pathlib.Path.replace, pathlib.Path.unlink
def come():
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
def replaced(path, target):
    come()
    return replace(path, target)
def unlinked(path, **options):
    if path.suffix == ".npz":
        come()
    return unlink(path, **options)
pathlib.Path.replace, pathlib.Path.unlink = replaced, unlinked
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


def judged(store: Store) -> dict[str, list[tuple[str, str, str]]] | None:
    """Return the claims of each finding that is stored by the key of what it was computed from."""
    model = judged_model(store, "model")
    if model is None:
        return None
    assert model.damaged == []
    return {
        found.stored.key or found.finding.name: [(claim.id, claim.verdict, claim.answer) for claim in found.claims]
        for found in model.findings
        if found.stored is not None
    }


def arrays_in(store: Store) -> set[str]:
    return {path.name for path in (store.root / "model").glob("*.npz")}


def assert_readable(store: Store, *possible: Store) -> bool:
    """Check that whatever is stored is whole, and is of the possible results; return whether anything is."""
    left = judged(store)
    assert list(verify(store)) == []
    if left is None:
        return False
    expected = {key: claims for other in possible for key, claims in (judged(other) or {}).items()}
    for key, claims in left.items():
        assert claims == expected[key]
    for finding in store.finding_names("model"):
        assert store.arrays("model", store.finding("model", finding))
    return True


def assert_next_run_finishes(atlas, store: Store, new: Store) -> None:
    assert atlas("compute", "./model").code == 0
    assert judged(store) == judged(new)
    assert_readable(store, new)
    left = {path.name for path in (store.root / "model").iterdir()}
    named = {f"{name}.json" for name in ("model", *store.finding_names("model"))}
    assert left == {".lock"} | named | arrays_in(new)
    assert len(arrays_in(new)) == len(named) - 1  # one for each finding, and none of what was there before


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


@pytest.mark.parametrize("number", range(1, MOMENTS + 1))
def test_killed_before_each_replacement_and_removal_of_a_file(quick, number, tmp_path, atlas, monkeypatch):
    store = quick.copied(tmp_path / "project", had_results=True)
    monkeypatch.chdir(tmp_path / "project")
    old, new = Store(Path("old")), Store(Path("new"))
    run = computing("results", RUN_UNTIL_MOMENT + RUN, str(number))
    process = subprocess.run(run, check=False, stderr=subprocess.DEVNULL)
    assert process.returncode == -signal.SIGKILL
    half_written = list((store.root / "model").glob(".*.tmp"))
    assert half_written or len(arrays_in(store)) > len(arrays_in(old))  # half-way indeed
    assert assert_readable(store, old, new)
    assert_next_run_finishes(atlas, store, new)
