"""What `make fuzz` asks of a project, and what must hold afterwards."""

import contextlib
import io
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from unittest import mock

from generators.base import digests
from generators.base.errors import AtlasError
from generators.checkpoint.registry import load_registry
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.findings.helix import chance
from generators.findings.inputs import RUN
from generators.site import pages
from generators.site.staging import Staging
from generators.site.view import model_page
from tests.torture.damage import Random, one_of
from tests.torture.processes import SENTENCE, atlas

FEW, MEASURED = 100, 2  # draws of surrogates: as many as a percentile needs; findings that a mutant measures
ON_WEIGHTS = [finding.name for finding in FINDINGS if RUN not in finding.needs]
MARKS = "<script>alert", "\u202e", "\x1b"


@contextmanager
def quickly() -> Iterator[None]:
    """Draw little chance, hash code and compile templates once, in one process."""
    with (
        mock.patch.object(chance, "DRAWS", FEW),
        mock.patch.object(digests, "of_code", cache(digests.of_code)),
        mock.patch.object(pages, "environment", cache(pages.environment)),
        mock.patch.object(pages, "PROCESSES", 1),
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


def compute_all(place: Path, rng: Random, names: Iterable[str] = ()) -> None:
    """Verify, compute and show the models of a project. Raises SystemExit: with a sentence; or AssertionError."""
    store = Store(place / "results", wait=0)
    if store.root.exists():
        printed("verify", "--results", store.root)
    only = [part for name in names for part in ("--only", name)]
    where = ("--results", store.root, "--registry", place / "models.yml")
    atlas("compute", "--all", "--skip-runs", "--wait", "0", *only, *where)
    try:
        for model in load_registry(place / "models.yml").models:
            look_at_page(model, store, place)
    except AtlasError as error:
        raise SystemExit(print(f"{SENTENCE}{error}") or 2) from error


def compute(place: Path, rng: Random) -> None:
    """Compute some findings; what has the same key as in the sound project has the same numbers."""
    compute_all(place, rng, rng.choice(ON_WEIGHTS, MEASURED, replace=False))
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


def take_over(place: Path, rng: Random) -> None:
    """Show and verify results, and copy them into a folder, empty or with sound ones: it has sound ones only."""
    results, into = ("--results", place / "results"), place / "into"
    printed("show", "tiny", *one_of(((), ("--json",)), rng), *results, "--registry", place / "models.yml")
    if "are intact" in printed("verify", *results):
        all_equal(place / "results", place / ".sound")
    if rng.random() < 0.5:
        shutil.copytree(place / ".sound", into)
    atlas("adopt", place / "results", "--results", into)
    if into.exists():
        atlas("verify", "--results", into)
        all_equal(into, place / ".sound")
