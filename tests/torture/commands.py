"""What `make fuzz` asks of a project, and what must hold afterwards."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import typer

from generators import cli
from generators.base import digests
from generators.base.errors import AtlasError
from generators.checkpoint.registry import load_registry
from generators.compute.results import Store
from generators.findings.helix import chance
from generators.site import build, pages, report
from generators.site.build_cache import Workshop
from generators.site.make import MADE_BY
from generators.site.serving import Pages
from generators.site.staging import Staging
from generators.site.view import model_page
from tests.torture.costs import ON_WEIGHTS
from tests.torture.damage import ANYTHING, RAW, Random, one_of
from tests.torture.processes import SENTENCE, atlas

ROOT = Path(__file__).parents[2]
FEW, FINDINGS = 100, 2  # draws of surrogates: as many as a percentile needs; findings that a mutant measures
SHARES = {name: 1 / 3 if name in ("helix", "attention") else 1 for name in ON_WEIGHTS}  # two take most of the time
LIKELY = {name: share / sum(SHARES.values()) for name, share in SHARES.items()}
MARKS = "<script>alert", "\u202e", "\x1b"
HUB = "HF_ENDPOINT", "HF_HOME", "HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT"
SETTINGS = (
    *("ATLAS_MODELS", "ATLAS_RESULTS", "ATLAS_REGISTRY", "ATLAS_CACHE", "ATLAS_CACHE_GB", "SITE_URL", "REPO_URL"),
    *("SOURCE_DATE_EPOCH", "COLUMNS", "TERM", "LANG", "HOME", "TMPDIR", "OMP_NUM_THREADS"),
)
COMMANDS = {  # and what each is asked in any case; "build" would run the model, and "serve" waits for a browser
    "compute": ("tiny", "--skip-runs", "--only", "gains", "--offline"),
    "report": ("tiny", "--skip-runs", "--offline", "--jobs", "1"),
    "plan": ("tiny", "--offline"),
    "count-tokens": ("tiny", "tiny/vocab.txt", "--offline"),
    "show": ("tiny",),
    **dict.fromkeys(("adopt", "cache", "models", "render", "verify"), ()),
}
NOT_ASKED = "--own-samples", "--help"  # a model that runs, and what ends the command


def put_site(workshop: Workshop, **_: object) -> None:
    workshop.site.mkdir(parents=True, exist_ok=True)
    for name in ("index.html", "404.html"):
        (workshop.site / name).write_bytes(MADE_BY)


def keeping_figures(*folders: Path) -> Workshop:
    """Return where a report is made, with the figures of an earlier one."""
    source, settings, pages_, _, site = folders
    return Workshop(source, settings, pages_, Path(".cache"), site)


@contextmanager
def quickly() -> Iterator[None]:
    """Draw little chance, hash code and compile templates once, and leave MkDocs out, which sees only pages."""
    with (
        mock.patch.object(chance, "DRAWS", FEW),
        mock.patch.object(digests, "of_code", cache(digests.of_code)),
        mock.patch.object(pages, "environment", cache(pages.environment)),
        mock.patch.object(pages, "PROCESSES", 1),
        mock.patch.object(build, "run_mkdocs", put_site),
        mock.patch.multiple(report, run_mkdocs=put_site, Workshop=keeping_figures),
    ):
        yield


def printed(*arguments: object) -> str:
    """Return what a command prints, which holds nothing hostile, also where it fails."""
    with contextlib.redirect_stdout(io.StringIO()) as said, suppress(SystemExit):
        atlas(*arguments)
    assert not [mark for mark in MARKS[1:] if mark in said.getvalue()]
    return said.getvalue()


def all_equal(results: Path, sound: Path) -> None:
    """Raise AssertionError: a stored result of the model is damaged, or another than the sound one of its key."""
    stored, expected = Store(results), Store(sound)
    for name in stored.finding_names("tiny"):
        mine, theirs = stored.load("tiny", name), expected.load("tiny", name)
        if mine and theirs and mine[0].key == theirs[0].key:
            day = {"computed_on": theirs[0].computed_on}
            assert mine[0].model_copy(update=day) == theirs[0], f"{name} of the same weights has other numbers"


# Commands


def compute_only(place: Path, names: Iterable[str]) -> None:
    only = [part for name in names for part in ("--only", name)]
    where = ("--results", place / "results", "--registry", place / "models.yml")
    atlas("compute", "--all", "--skip-runs", "--wait", "0", *only, *where)


def compute(place: Path, rng: Random, findings: int = FINDINGS) -> None:
    """Verify, compute and show every model of a project. Raises SystemExit: with a sentence; or AssertionError."""
    store = Store(place / "results", wait=0)
    if store.root.exists():
        printed("verify", "--results", store.root)
    compute_only(place, rng.choice(list(LIKELY), findings, replace=False, p=list(LIKELY.values())))
    try:
        for model in load_registry(place / "models.yml").models:
            look_at_page(model, store, place)
    except AtlasError as error:
        raise SystemExit(print(f"{SENTENCE}{error}") or 2) from error


def compute_all(place: Path, rng: Random) -> None:
    compute(place, rng, 0)


def compute_same(place: Path, rng: Random) -> None:
    """Compute; what has the same key as in the sound project has the same numbers."""
    compute(place, rng)
    if (place / "results" / "tiny").is_dir():
        all_equal(place / "results", place / ".sound")


def look_at_page(model, store: Store, place: Path) -> None:
    failed = [name for name in store.finding_names(model.name) if store.finding(model.name, name).status == "failed"]
    assert not failed, failed
    page = model_page(model, store, Staging(place / ".pages", place / ".cache" / "figures"), lambda line: None)
    if page is not None:  # something could be computed
        check_page(pages.page_in_words(page, pages.environment(whole=True)))


def check_page(text: str) -> None:
    for mark in MARKS:
        assert mark not in text, f"{mark!r} is on the page"
    words = re.sub(r"<[^>]*>", "", re.sub(r"<bdi>.*?</bdi>", "", text))  # a token may be called None
    found = re.search(r"\b(nan|None|inf)\b(?! of )", words)
    assert not found, f"a number that is none is on the page: {words[found.start() - 80 : found.end() + 80]}"


def render(place: Path, rng: Random) -> None:
    with contextlib.chdir(place):
        atlas("render", "--results", "results")
    for page in (place / ".pages" / "series").rglob("*.md"):
        check_page(page.read_text("utf-8"))


def write_report(place: Path, rng: Random) -> None:
    with contextlib.chdir(place):
        atlas("report", "./tiny", "--skip-runs", "--jobs", "1")
    assert not printed("verify", "--results", place / "report" / ".results").count("damaged")


def verify(place: Path, rng: Random) -> None:
    shown = ("show", "tiny", *one_of(((), ("--json",)), rng))
    printed(*shown, "--results", place / "results", "--registry", place / "models.yml")
    atlas("verify", "--results", place / "results")
    all_equal(place / "results", place / ".sound")


def adopt(place: Path, rng: Random) -> None:
    """Copy results into a folder that is empty or has sound ones: it has sound ones only, and those that it had."""
    into = place / "into"
    if rng.random() < 0.5:
        shutil.copytree(place / ".sound", into)
    atlas("adopt", place / "results", "--results", into)
    if into.exists():
        atlas("verify", "--results", into)
        all_equal(into, place / ".sound")


def adopt_forged(place: Path, rng: Random) -> None:
    atlas("adopt", place / "results", "--results", place / "into")
    printed("show", "tiny", "--results", place / "into", "--registry", place / "models.yml")
    printed("verify", "--results", place / "into")


def serve(place: Path, rng: Random) -> None:
    """Answer a request: with nothing from outside the folder that is served."""
    connection = mock.Mock(makefile=lambda *_: (place / "request.txt").open("rb"))
    Pages(connection, ("127.0.0.1", 1), mock.Mock(), directory=str(place / "tiny"))
    answer = b"".join(bytes(call.args[0]) for call in connection.sendall.call_args_list)
    assert b"sources:" not in answer and b"root:" not in answer


def count(place: Path, rng: Random) -> None:
    with contextlib.chdir(place):
        atlas("count-tokens", "./tiny", "text.txt", "--jobs", "1", "--output", "counts.npy")
    assert np.load(place / "counts.npy").min() >= 0


def odd_text(rng: Random) -> str:
    value = one_of(ANYTHING, rng)
    return RAW.get(value, value) if isinstance(value, str) else json.dumps(value)


def ask(place: Path, rng: Random, odd: int = 3) -> None:
    os.environ.setdefault("ATLAS_CACHE", str(place / "tensors"))
    name = one_of(list(COMMANDS), rng)
    words = [name, *COMMANDS[name]]
    possible = [one for one in typer.main.get_command(cli.app).commands[name].params if one.opts[-1] not in NOT_ASKED]
    for option in rng.permutation(possible)[: rng.integers(odd + 1)]:
        words += [option.opts[0]] if option.opts[0].startswith("-") else []
        words += [odd_text(rng)] if not getattr(option, "is_flag", False) else []
    with contextlib.chdir(place):
        atlas(*words)


def ask_hub(place: Path, rng: Random) -> None:
    """Ask the hub, which can't be reached, with odd settings of its client: it reads them when it is imported."""
    odd = {one_of(HUB, rng): odd_text(rng)[:100_000] for _ in range(2)}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_ENDPOINT": "http://127.0.0.1:9", **odd}
    command = [sys.executable, "-m", "generators.cli", one_of(("plan", "compute", "report"), rng), "owner/model"]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
    print(done.stdout, done.stderr.replace("owner--model: The model hub", f"{SENTENCE}The model hub"))
    raise SystemExit(done.returncode)
