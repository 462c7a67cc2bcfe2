"""The site as a reader gets it: built from stored results without a hub, served on this machine, in Chromium."""

import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlparse

import psutil
import pytest
from filelock import FileLock
from playwright.sync_api import Browser, Page, sync_playwright

from generators.checkpoint.registry import FolderSource, Model, Registry
from generators.compute.results import Store
from generators.site.joined_files import joined, with_imports
from generators.site.pages import render
from generators.site.staging import Staging
from tests.checkpoints import Sizes, write_checkpoint
from tests.conftest import ROOT, without_figures
from tests.site.made_up_series import made_up, winding

ASSETS = ROOT / "site_src" / "assets"
NOISE = "pure-noise"
Visit = Callable[..., Page]
AROUND = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Planted</title>
<meta http-equiv="Content-Security-Policy" content="
 default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="../../assets/entities.css">
<script src="../../assets/site.js" defer></script></head>
<body class="md-typeset" data-md-color-scheme="default"><main>{section}</main></body></html>"""
# What a model's page has folded below each finding: most tests look at what is in there. Compare is drawn
# by a script, before this or after it, so what is folded there is left alone.
UNFOLD = "document.querySelectorAll('details.more-of:not(.compare-rest)').forEach(each => { each.open = true; })"
SERVERS: list[subprocess.Popen[str]] = []  # that this process has started, kept from being collected
SERIES_MEMBERS = ("stdlib-learned", "stdlib-rank-three")  # of a series that has a page, then


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def built_site(shared: Path) -> Path:
    """Build the site of the stored results and of noise, once for all processes."""
    project, address = shared / "project", shared / "address"
    with FileLock(shared / "project.lock"):
        if not address.is_file():
            url = start_server(project / "site")
            build(project, url)
            address.write_text(url)
    return project / "site"


def start_server(folder: Path) -> str:
    tests = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    program = f"from tests.site.conftest import serve_along; serve_along({str(folder)!r}, {tests})"
    command = [sys.executable, "-c", program]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    SERVERS.append(server)
    assert server.stdout is not None
    return server.stdout.readline().strip()


def serve_along(folder: str, process: int) -> None:
    """Serve a folder and print its address, until another process ends."""
    with served(Path(folder)) as url:
        print(url, flush=True)
        psutil.Process(process).wait()


def build(project: Path, address: str) -> None:
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir()
    for name in ("mkdocs.yml", "models.yml", "series.yml"):
        shutil.copy(ROOT / name, project)
    for name in ("results", "models", "site_src"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns("__pycache__", "local"))
    if (ROOT / ".cache").is_dir():  # what was drawn and executed already, known by content
        shutil.copytree(ROOT / ".cache", project / ".cache", ignore=shutil.ignore_patterns(".lock", "built", "site"))
    write_checkpoint(project / NOISE, "gpt2", sizes=Sizes(n_layer=2, n_head=3, d_model=48, n_ctx=256))
    environment = {k: v for k, v in os.environ.items() if k not in ("ATLAS_MODELS", "ATLAS_RESULTS")}
    for command in (["compute", f"./{NOISE}"], ["build"]):
        subprocess.run(
            [sys.executable, "-c", "from generators.cli import main; main()", *command],
            cwd=project,
            env={**environment, "HF_HUB_OFFLINE": "1", "SITE_URL": address},
            check=True,
        )


@pytest.fixture(scope="session")
def address(built_site: Path, shared: Path) -> str:
    return (shared / "address").read_text()


@pytest.fixture(scope="session")
def three_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the pages of two made-up models and of a member of a series, without figures."""
    folder = tmp_path_factory.mktemp("three")
    store, staging = Store(folder / "results"), Staging(folder / "pages", folder / "cache")
    turns, models = {"one": 3.0, "two": 0.125, "member": 2.0}, []
    for name, turn in turns.items():
        made_up(store, name, {"helix": winding(turn)})
        source = FolderSource(folder=folder)
        models.append(Model(name=name, title=name, sources=(source,), only_in_series=name == "member"))
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)
        render(Registry(models=tuple(models)), store, staging, folder / "src")
    return staging.folder


def site_script() -> str:
    return joined(with_imports(ASSETS / "site.js"), first=True)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    at_hand = (shutil.which(name) for name in ("chromium-headless-shell", "chromium"))  # the first takes a tenth
    path = os.environ.get("ATLAS_CHROMIUM") or next(filter(None, at_hand), "")
    if not Path(path).is_file():
        pytest.skip("Chromium isn't installed (name one in ATLAS_CHROMIUM)")
    arguments = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
    # WebGL without a graphics card; pages themselves are put together faster without it.
    arguments += ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-gpu-compositing"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=arguments)
        yield chromium
        chromium.close()


ABORTED = "net::ERR_ABORTED"
BROKEN_OFF = "broken off: "


def opened(browser: Browser, url: str, **context: object) -> tuple[Page, list[str]]:
    """Open a page; return it and all that went wrong on the way. Nothing turns by itself unless asked to."""
    page = browser.new_context(**{"reduced_motion": "reduce", **context}).new_page()
    wrong: list[str] = []
    host = urlparse(url).netloc
    page.on("console", lambda m: wrong.append(f"console: {m.text}") if m.type == "error" else None)
    page.on("pageerror", lambda e: wrong.append(f"script: {e}"))
    page.on("requestfailed", lambda r: wrong.append(f"{BROKEN_OFF if r.failure == ABORTED else 'failed: '}{r.url}"))
    page.on(
        "request",
        lambda r: wrong.append(f"elsewhere: {r.url}") if urlparse(r.url).netloc not in (host, "") else None,
    )
    page.on("response", lambda r: wrong.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
    page.goto(url)
    page.evaluate(UNFOLD)
    return page, wrong


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Return a function that opens a page. When the test ends nothing may have gone wrong on it, if it is `sound`.

    A page that is left, or loaded anew, breaks off what is under way: that is no trouble.
    """
    visited: list[tuple[Page, list[str]]] = []
    left: set[Page] = set()

    def visit(url: str, *, sound: bool = True, **context: object) -> Page:
        page, wrong = opened(browser, url, **context)
        page.on("framenavigated", lambda frame: left.add(page) if frame == page.main_frame else None)
        visited.append((page, wrong if sound else []))
        return page

    yield visit
    found = [what for page, wrong in visited for what in wrong if page not in left or not what.startswith(BROKEN_OFF)]
    for page, _ in visited:
        page.context.close()
    assert found == []


@contextmanager
def served(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@contextmanager
def served_section(site: Path, section: str) -> Iterator[str]:
    page = site / "models" / "planted" / "index.html"
    for folder in (page.parent, site / "assets"):
        folder.mkdir(parents=True)
    page.write_text(AROUND.replace("{section}", section), "utf-8")
    (site / "assets" / "site.js").write_text(site_script(), "utf-8")
    shutil.copy(ASSETS / "entities.css", site / "assets")
    with served(site) as address:
        yield f"{address}models/planted/"
