"""What `make` and `pip` install: PyTorch's build for CPUs where its index answers, and a base without the extras."""

import importlib
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.checkpoints import Sizes, write_checkpoint
from tests.conftest import ROOT

PIN = re.search(r"^torch==.*$", (ROOT / "requirements-torch.txt").read_text("utf-8"), re.MULTILINE)[0]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture
def cpu_torch(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / ".ci")
    return importlib.import_module("cpu_torch")


@pytest.mark.parametrize(
    ("installed", "answers", "code", "asked"),
    [("", True, 0, True), ("", True, 1, True), ("", False, 0, False), (PIN.removeprefix("torch=="), True, 0, False)],
)
def test_the_build_for_cpus_comes_if_its_index_answers(
    cpu_torch, monkeypatch, capsys, installed, answers, code, asked
):
    commands = []

    def run(command, check):
        commands.append(command[-3:])
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(cpu_torch.metadata, "version", lambda name: installed)
    monkeypatch.setattr(cpu_torch, "answers", lambda url: answers and url == "http://cpu/torch/")
    monkeypatch.setattr(cpu_torch.subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["cpu_torch.py", "http://cpu/"])
    cpu_torch.main()
    assert commands == [["--index-url", "http://cpu", PIN]] * asked
    assert (f"http://cpu doesn't offer {PIN} now" in capsys.readouterr().out) == bool(code or not answers)


def test_an_index_is_not_waited_for_longer_than_three_seconds(cpu_torch, monkeypatch):
    assert cpu_torch.answers((ROOT / "Makefile").as_uri())
    assert cpu_torch.PATIENCE_S == 3
    monkeypatch.setattr(cpu_torch, "PATIENCE_S", 0.1)
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: time.sleep(5))  # as a slow name server would
    begin = time.monotonic()
    assert not cpu_torch.answers("http://127.0.0.1:1/")
    assert time.monotonic() - begin < 2


def needed(requirements: list[str]) -> set[str]:
    """Return the distributions that some requirements bring along, as they are installed here."""
    found, wanted = set(), [(Requirement(one), "") for one in requirements]
    while wanted:
        requirement, extra = wanted.pop()
        name = canonicalize_name(requirement.name)
        if name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": extra})):
            found.add(name)
            extras = [*requirement.extras, ""]
            wanted += [(Requirement(one), each) for one in metadata.requires(name) or () for each in extras]
    return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of all that the base installs, and of nothing else."""
    folder = tmp_path_factory.mktemp("base")
    for name in ("helix-atlas", *needed(PROJECT["dependencies"])):
        distribution = metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
        for top in tops:
            if not top.endswith(".pth") and not (folder / top).exists():
                (folder / top).symlink_to(distribution.locate_file(top))
    return folder


@pytest.fixture
def atlas(base: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return the command as it runs where the base is installed, in a folder with a model."""
    write_checkpoint(tmp_path / "tiny", sizes=Sizes(n_layer=2, n_head=3, d_model=48, n_ctx=256, vocab_size=160))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-S", "-c", "from generators.cli import main; main()", *arguments]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ATLAS_", "PYTHON"))}
        environment = {**kept, "PYTHONPATH": f"{base}{os.pathsep}{ROOT}"}
        return subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)

    return run


def test_the_base_without_extras_computes_weights_and_writes_a_report(base, atlas, tmp_path):
    names = {path.name for path in base.iterdir()}
    assert {"numpy", "mkdocs", "tokenizers"} <= names
    assert not names & {"torch", "transformers", "ipykernel", "jupyter_client", "mkdocs_jupyter", "pandas", "pyarrow"}
    computed = atlas("compute", "--skip-runs", "./tiny")
    assert computed.returncode == 0, computed.stderr
    reported = atlas("report", "--skip-runs", "./tiny")
    assert reported.returncode == 0, reported.stderr
    assert (tmp_path / "report" / "questions" / "channels" / "index.html").is_file()


def test_what_needs_an_extra_says_which(atlas, tmp_path):
    computed = atlas("compute", "./tiny")
    assert computed.returncode == 0, computed.stderr
    assert computed.stderr.count("pip install 'helix-atlas[run]'") == 1
    assert "pip install 'helix-atlas[run]'" in atlas("show", "tiny", "--json").stdout
    (tmp_path / "models.yml").write_text("- {name: tiny, title: Tiny, sources: [{folder: tiny}]}\n")
    (tmp_path / "site_src").mkdir()
    rendered = atlas("render")
    assert rendered.returncode == 2
    assert "pip install 'helix-atlas[notebooks]'" in rendered.stderr.splitlines()[-1]
