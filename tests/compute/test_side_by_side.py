"""Several runs at once: of one model, of different models, and pages made beside them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from generators.compute.judged import judged_model
from generators.compute.results import Store
from generators.compute.verify import verify
from tests.checkpoints import write_checkpoint
from tests.compute.harness import ATLAS, SIZES, stored
from tests.conftest import ROOT

NAMES = ("helix", "channels", "gains", "attention")
ONLY = [part for name in NAMES for part in ("--only", name)]
RUNS = ("one", "one", "one", "other")


def started(project: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen([*ATLAS, *arguments], cwd=project, env=environment, text=True, **pipes)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Make a project with two models, results `old` of the weights that they had, and `new` of those they have."""
    project = tmp_path_factory.mktemp("project")
    entries = "".join(f"- {{name: {name}, title: {name}, sources: [{{folder: {name}}}]}}\n" for name in {*RUNS})
    (project / "models.yml").write_text(entries)
    for results, seed in (("old", 0), ("new", 1)):
        for name in ("one", "other"):
            write_checkpoint(project / name, sizes=SIZES, seed=seed)
        with started(project, "compute", "one", "other", *ONLY, "--results", results) as run:
            assert run.wait() == 0, run.stdout.read()
    return project


@pytest.fixture
def over_old(project):
    shutil.rmtree(project / "results", ignore_errors=True)
    shutil.copytree(project / "old", project / "results")
    return project


def test_runs_side_by_side_leave_what_one_after_another_leave(project):
    shutil.rmtree(project / "results", ignore_errors=True)
    runs = [started(project, "compute", name, *ONLY) for name in RUNS]
    said = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0] * len(runs), said
    assert stored(project / "results") == stored(project / "new")


def test_what_is_read_beside_a_run_is_whole(over_old, project):
    store, looks = Store(project / "results"), 0
    with started(project, "compute", "one", "other", *ONLY) as run:
        while run.poll() is None:
            for name in ("one", "other"):
                judged = judged_model(store, name)
                assert judged is not None
                assert judged.damaged == []
            assert list(verify(store)) == []
            looks += 1
        assert run.returncode == 0, run.stdout.read()
    assert looks > 3
    assert stored(project / "results") == stored(project / "new")


def test_pages_are_made_beside_a_run(over_old, project):
    shutil.copy(ROOT / "mkdocs.yml", project)
    shutil.copytree(ROOT / "site_src" / "assets", project / "site_src" / "assets")
    shutil.copy(ROOT / "site_src" / "add-a-model.md", project / "site_src")
    with started(project, "compute", "one", "other", *ONLY) as run, started(project, "render") as pages:
        said = pages.communicate()[0]
        assert pages.returncode == 0, said
        assert run.wait() == 0
    for name in ("one", "other"):
        assert (project / "site" / "models" / name / "index.html").is_file()
