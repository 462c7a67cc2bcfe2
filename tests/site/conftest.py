"""The site as a reader gets it: built from stored results without a hub, served on this machine, in Chromium."""

import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from generators.compute.results import Store
from generators.site.joined_files import joined, with_imports
from tests.checkpoints import Sizes, write_checkpoint
from tests.site.made_up_series import made_up, same

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "site_src" / "assets"
NOISE = "pure-noise"
SERIES_MEMBERS = ("stdlib-learned", "stdlib-rank-three")  # of a series that has a page, then


@pytest.fixture(scope="session")
def project(stdlib_gpt2_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what a site is made from into a folder of its own, with a checkpoint of noise beside it."""
    project = tmp_path_factory.mktemp("project")
    for name in ("mkdocs.yml", "models.yml", "series.yml"):
        shutil.copy(ROOT / name, project)
    for name in ("results", "models", "site_src"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
    if (ROOT / ".cache/figures").is_dir():  # drawn already, kept by what they are drawn from
        shutil.copytree(ROOT / ".cache/figures", project / ".cache/figures")
    shutil.copytree(stdlib_gpt2_results, project / "results", dirs_exist_ok=True)
    results = Store(project / "results")
    for name in SERIES_MEMBERS:
        if results.model(name) is None:
            made_up(results, name, {"helix": same})
    write_checkpoint(project / NOISE, "gpt2", sizes=Sizes(n_layer=2, n_head=3, d_model=48, n_ctx=256))
    return project


@pytest.fixture(scope="session")
def address(project: Path) -> Iterator[str]:
    """Serve the project's site, which is built at this address, and return it."""
    with served(project / "site") as url:
        yield url


@pytest.fixture(scope="session")
def built_site(project: Path, address: str) -> Path:
    """Build the site of the stored results and of the noise; knowing its address, it navigates without reloading."""
    environment = {k: v for k, v in os.environ.items() if k not in ("ATLAS_MODELS", "ATLAS_RESULTS")}
    for command in (["compute", f"./{NOISE}"], ["build"]):
        subprocess.run(
            [sys.executable, "-c", "from generators.cli import main; main()", *command],
            cwd=project,
            env={**environment, "HF_HUB_OFFLINE": "1", "SITE_URL": address},
            check=True,
        )
    return project / "site"


@pytest.fixture(autouse=True)
def _built(request: pytest.FixtureRequest) -> None:
    """Have the site built before a test looks at its address."""
    if "address" in request.fixturenames:
        request.getfixturevalue("built_site")


def write_script(folder: Path) -> None:
    """Write the script of all pages, as pages get it."""
    (folder / "assets").mkdir(exist_ok=True)
    (folder / "assets" / "site.js").write_text(site_script(), "utf-8")


def site_script() -> str:
    """Return the script of all pages, as pages get it."""
    return joined(with_imports(ASSETS / "site.js"), first=True)


def executable() -> str | None:
    """Return where Chromium is, None where it isn't installed."""
    at_hand = (shutil.which(name) for name in ("chromium-headless-shell", "chromium"))  # the first takes a tenth
    path = os.environ.get("ATLAS_CHROMIUM") or next(filter(None, at_hand), "")
    return path if Path(path).is_file() else None


@contextmanager
def started_browser(path: str) -> Iterator[Browser]:
    """Start Chromium without a screen."""
    arguments = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
    arguments += ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]  # WebGL without a graphics card
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium without a screen."""
    path = executable()
    if path is None:
        pytest.skip("Chromium isn't installed (name one in ATLAS_CHROMIUM)")
    with started_browser(path) as chromium:
        yield chromium


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; give its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
