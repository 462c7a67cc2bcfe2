"""Several runs at once: of one model, of different models, and pages made beside them."""

import shutil
import subprocess

import pytest

from generators.compute.judged import judged_model
from generators.compute.results import Store
from generators.compute.verify import verify
from tests.checkpoints import write_checkpoint
from tests.compute.harness import ATLAS, SIZES, compute, project, started, stored
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make a project with two models, results `old` of the weights that they had, and `new` of those they have."""
    place = tmp_path_factory.mktemp("project")
    names = project(place, 2)
    compute(place, "old")
    for seed, name in enumerate(names, 7):
        write_checkpoint(place / name, sizes=SIZES, seed=seed)
    compute(place, "new")
    return place


@pytest.fixture
def place(made):
    shutil.rmtree(made / "results", ignore_errors=True)
    shutil.copytree(made / "old", made / "results")
    return made


def test_runs_side_by_side_leave_what_one_after_another_leave(place):
    shutil.rmtree(place / "results")
    runs = [started(place, "results", name) for name in ("model-0", "model-0", "model-0", "model-1")]
    said = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0] * len(runs), said
    assert stored(place / "results") == stored(place / "new")


def test_what_is_read_beside_a_run_is_whole(place):
    store, looks = Store(place / "results"), 0
    with started(place, "results") as run:
        while run.poll() is None:
            for name in ("model-0", "model-1"):
                judged = judged_model(store, name)
                assert judged is not None
                assert judged.damaged == []
            assert list(verify(store)) == []
            looks += 1
        assert run.returncode == 0, run.stderr.read()
    assert looks > 3
    assert stored(place / "results") == stored(place / "new")


def test_pages_are_made_beside_a_run(place):
    shutil.copy(ROOT / "mkdocs.yml", place)
    shutil.copytree(ROOT / "site_src" / "assets", place / "site_src" / "assets")
    shutil.copy(ROOT / "site_src" / "add-a-model.md", place / "site_src")
    with started(place, "results") as run:
        subprocess.run([*ATLAS, "render"], cwd=place, check=True, capture_output=True)
        said = run.stderr.read()
    assert run.returncode == 0, said
    for name in ("model-0", "model-1"):
        assert (place / "site" / "models" / name / "index.html").is_file()
