"""A folder with one good model, and what a refusal looks like."""

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from generators.compute.judged import judged_model
from generators.compute.records import ModelFindings
from generators.compute.results import UP_TO_DATE, Store
from tests.checkpoints import write_checkpoint
from tests.conftest import Run

ATLAS = Path(sysconfig.get_path("scripts")) / "atlas"
BAD_INPUT, SOME_FAILED = 2, 1


@pytest.fixture(scope="session")
def one_good_model(tmp_path_factory) -> Path:
    """Return a folder with a registry, a checkpoint called `good`, and its results."""
    project = tmp_path_factory.mktemp("project")
    write_checkpoint(project / "good")
    entry = "- name: {0}\n  title: {1}\n  sources: [{{{2}}}]\n"
    (project / "models.yml").write_text(
        entry.format("good", "Good model", "folder: good")
        + entry.format("away", "Away", "package: no-such-package-here")
        + "  adds: 'size: none'\n"
    )
    command = [ATLAS, "compute", "--results", "results", "good"]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    return project


@pytest.fixture
def project(one_good_model, tmp_path, monkeypatch) -> Path:
    """Return a copy of the folder with one good model, and work in it."""
    shutil.copytree(one_good_model, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def results_of(project: Path) -> dict[str, bytes]:
    """Return all files of results but for what they were made from, which names this folder."""
    return {
        str(path.relative_to(project)): path.read_bytes()
        for path in (project / "results").rglob("*")
        if path.is_file() and path.name != UP_TO_DATE
    }


def published(project: Path, name: str = "good") -> ModelFindings:
    judged = judged_model(Store(project / "results"), name)
    assert judged is not None
    return judged.published()


@pytest.fixture
def unharmed(project) -> Iterator[Path]:
    """Return the folder with one good model, whose results must be the same when the test ends."""
    before = results_of(project)
    yield project
    assert results_of(project) == before


def refused(run: Run, code: int = BAD_INPUT) -> str:
    """Return the sentence with which a run ended."""
    assert run.code == code
    assert is_a_sentence(run.err)
    return run.err


def is_a_sentence(err: str) -> bool:
    """Return whether the last line reads as one, in characters that do nothing to a terminal."""
    last = err.splitlines()[-1]
    printable = all(c.isprintable() or c == "\n" for c in err)
    return last.startswith("atlas: ") and "Traceback" not in err and printable


@contextmanager
def without_root() -> Iterator[None]:
    """Give up the right to read anything, if this process has it."""
    user = os.geteuid()
    os.seteuid(65534 if user == 0 else user)
    try:
        yield
    finally:
        os.seteuid(user)
