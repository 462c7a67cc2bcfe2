"""`atlas render`: the whole site from stored results alone."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places
from generators.compute.results import Store
from generators.compute.schedule import compute_model
from generators.findings.gains import FINDING as GAINS
from generators.site.data import as_csv
from tests.checkpoints import write_checkpoint
from tests.conftest import ROOT

SOME_FAILED = 1


@pytest.fixture(scope="module")
def rendered_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("project")
    folder = write_checkpoint(project / "little")
    little = Model(name="little", title="Little", sources=(FolderSource(folder=folder),))
    compute_model(little, Places(), Store(project / "results"), findings=[GAINS])
    shutil.rmtree(folder)
    (project / "models.yml").write_text("- {name: little, title: Little, sources: [{folder: little}]}\n")
    shutil.copy(ROOT / "mkdocs.yml", project)
    shutil.copytree(ROOT / "site_src", project / "site_src", ignore=shutil.ignore_patterns("notebooks"))
    return project


@pytest.fixture
def project(rendered_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SITE_URL", raising=False)
    monkeypatch.delenv("REPO_URL", raising=False)
    project = shutil.copytree(rendered_once, tmp_path / "project")
    monkeypatch.chdir(project)
    return project


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_render_builds_the_whole_site_without_weights(atlas, project):
    before = {name: files_of(project / name) for name in ("results", "site_src")}
    run = atlas("render")
    assert run.code == 0, run.err
    assert run.out == "The site is in site/; view it with: python -m http.server --directory site\n"
    for page in ("", "models/little/", "questions/channels/", "add-a-model/", "compare/"):
        assert (project / "site" / page / "index.html").is_file(), page
    text = (project / "site/models/little/index.html").read_text()
    assert "The first norm turns position channels down" in text
    assert "It has not been computed for this model yet." in text
    claims = json.loads((project / "site/data/little/findings.json").read_text())["claims"]
    assert {claim["finding"] for claim in claims if claim["verdict"] != "untested"} == {"gains"}
    assert {name: files_of(project / name) for name in before} == before, "nothing is written among what is kept"
    assert sorted(path.name for path in project.iterdir()) == [
        ".cache", ".pages", "mkdocs.yml", "models.yml", "results", "site", "site_src"
    ]  # fmt: skip


def test_a_damaged_result_is_a_sentence_and_exit_1_and_the_site_is_built_without_it(atlas, project):
    gains = project / "results/little/gains.json"
    gains.write_text(gains.read_text().replace('"status": "computed"', '"status": "missing"'))
    run = atlas("render")
    assert run.code == SOME_FAILED
    sentence = "The stored results results/little/gains.json are damaged: their digest is another one."
    assert run.err.splitlines()[-1] == f"atlas: {sentence}"
    assert sentence in (project / "site/models/little/index.html").read_text()
    claims = json.loads((project / "site/data/little/findings.json").read_text())["claims"]
    assert {claim["verdict"] for claim in claims} == {"untested"}


def test_csv_keeps_values_and_runs_no_formula() -> None:
    text = as_csv(("a", "b"), [(1, '=HYPERLINK("x")'), (None, "plain, with comma"), ([1, 2], "+1")])
    assert list(csv.reader(io.StringIO(text))) == [
        ["a", "b"],
        ["1", '\'=HYPERLINK("x")'],
        ["", "plain, with comma"],
        ["1 2", "'+1"],
    ]
