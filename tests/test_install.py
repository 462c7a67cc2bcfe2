"""What `make` and `pip` install: PyTorch's build for CPUs where its index answers, and a base without the extras."""

import importlib
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.checkpoints import Sizes, write_checkpoint
from tests.conftest import ROOT

PIN = re.search(r"^torch==(.*)$", (ROOT / "requirements-torch.txt").read_text("utf-8"), re.MULTILINE)[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def write_wheel(folder: Path, name: str, version: str) -> None:
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture
def indexes(tmp_path: Path) -> Iterator[str]:
    """Serve two package indexes: `usual` has one build of PyTorch, `cpu` that and another one."""
    for index, versions in {"usual": [PIN], "cpu": [PIN, f"{PIN}+cpu"]}.items():
        folder = tmp_path / "served" / index / "torch"
        folder.mkdir(parents=True)
        for version in versions:
            write_wheel(folder, "torch", version)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def made(place: Path, indexes: str, cpu_index: str) -> tuple[str, str]:
    """Install PyTorch as `make` does, in an environment of its own; return its version there and what was said."""
    shutil.copytree(ROOT / ".ci", place / ".ci")
    (place / "requirements-torch.txt").write_text(f"torch=={PIN}\n")
    python = place / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    known = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": f"{indexes}/usual", "PIP_RETRIES": "0"}
    pip = ["-m", "pip", "--disable-pip-version-check", "--quiet", "install", "-r", "requirements-torch.txt"]
    asked = ["-Ic", "from importlib import metadata; print(metadata.version('torch'))"]
    run = partial(subprocess.run, cwd=place, env=ours | known, check=True, capture_output=True, text=True)
    said, _, version = (run([python, *step]).stdout for step in ([".ci/cpu_torch.py", cpu_index], pip, asked))
    return version.strip(), said


@pytest.mark.parametrize(("given", "asked"), [((), True), (("TORCH=cuda",), False)])
def test_make_asks_the_index_for_cpus_before_the_usual_one_unless_told_otherwise(given, asked):
    command = ["make", "--dry-run", "VENV=none", "TORCH_CPU_INDEX=http://cpu", *given, "none/.site"]
    steps = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert bool(re.search(r"cpu_torch\.py http://cpu\n.*install .*-r requirements-torch\.txt", steps)) == asked
    assert "-r requirements-torch.txt" in steps


def test_the_build_for_cpus_comes(tmp_path, indexes):
    assert made(tmp_path, indexes, f"{indexes}/cpu") == (f"{PIN}+cpu", "")


def test_where_its_index_does_not_answer_the_usual_build_comes_soon(tmp_path, indexes):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never answers
        index = f"http://127.0.0.1:{silent.getsockname()[1]}/cpu"
        version, said = made(tmp_path, indexes, index)
    assert version == PIN
    assert said.startswith(f"{index} doesn't offer torch=={PIN} now")


def test_an_index_is_not_waited_for_longer_than_that(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".ci")
    script = importlib.import_module("cpu_torch")
    assert script.PATIENCE_S == 3
    monkeypatch.setattr(script, "PATIENCE_S", 0.1)
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: time.sleep(5))  # as a slow name server would
    begin = time.monotonic()
    assert not script.answers("http://127.0.0.1:1/")
    assert time.monotonic() - begin < 2


def needed(requirements: list[str]) -> set[str]:
    """Return the distributions that some requirements bring along, as they are installed here."""
    found, wanted = set(), [(Requirement(one), "") for one in requirements]
    while wanted:
        requirement, extra = wanted.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
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
