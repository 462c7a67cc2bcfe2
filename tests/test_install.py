"""What `make` and `pip` install: PyTorch's build for CPUs where its index answers, and a base without the extras."""

import hashlib
import importlib.util
import inspect
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
# Another project, which pip installs without a build tool.
NOTHING = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


def wheel(folder: str | Path, name: str, version: str) -> Path:
    path, info = Path(folder) / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    return path


BACKEND = f"""import zipfile
from pathlib import Path

{inspect.getsource(wheel)}

def build_editable(folder, *_):
    return wheel(folder, "nothing", "1").name
"""


@pytest.fixture
def indexes(tmp_path: Path) -> Iterator[str]:
    """Serve two package indexes: `usual` has one build of PyTorch, `cpu` that and another one."""
    wheels = {"usual": [PIN], "cpu": [PIN, f"{PIN}+cpu"]}
    for index, versions in wheels.items():
        folder = tmp_path / "served" / index / "torch"
        folder.mkdir(parents=True)
        files = [wheel(folder, "torch", version) for version in versions]
        links = [
            f'<a href="{path.name}#sha256={hashlib.sha256(path.read_bytes()).hexdigest()}">{path.name}</a>'
            for path in files
        ]
        (folder / "index.html").write_text("<!DOCTYPE html>" + "".join(links))

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "served"))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def made(place: Path, indexes: str, *given: str) -> tuple[str, str]:
    """Make `.venv/.site` in a project that needs PyTorch alone; return its version there and what was said."""
    for name in (".ci", "Makefile"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, place / name)
    (place / "requirements.txt").write_text("")
    (place / "requirements-torch.txt").write_text(f"torch=={PIN}\n")
    (place / "pyproject.toml").write_text(NOTHING)
    (place / "backend.py").write_text(BACKEND)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    known = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": f"{indexes}/usual", "PIP_RETRIES": "0"}
    run = subprocess.run(
        ["make", "--silent", ".venv/.site", f"PYTHON={sys.executable}", *given],
        cwd=place,
        env={**ours, **known, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    asked = "from importlib import metadata; print(metadata.version('torch'))"
    version = subprocess.run([place / ".venv/bin/python", "-Ic", asked], capture_output=True, text=True, check=False)
    return version.stdout.strip(), run.stdout


@pytest.mark.parametrize(("given", "version"), [([], f"{PIN}+cpu"), (["TORCH=cuda"], PIN)], ids=["cpu", "cuda"])
def test_the_build_for_cpus_comes_unless_another_is_asked_for(tmp_path, indexes, given, version):
    assert made(tmp_path, indexes, f"TORCH_CPU_INDEX={indexes}/cpu", *given) == (version, "")


def test_where_its_index_does_not_answer_the_usual_build_comes_soon(tmp_path, indexes):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never answers
        index = f"http://127.0.0.1:{silent.getsockname()[1]}/cpu"
        version, said = made(tmp_path, indexes, f"TORCH_CPU_INDEX={index}")
    assert version == PIN
    assert said.startswith(f"{index} doesn't offer torch=={PIN} now")


def test_an_index_is_not_waited_for_longer_than_that(monkeypatch):
    spec = importlib.util.spec_from_file_location("cpu_torch", ROOT / ".ci" / "cpu_torch.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
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
