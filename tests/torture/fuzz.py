"""`make fuzz`: damaged, hostile and absurd files, one after another; each gives a right result or a sentence.

A mutant is made from a sound project by a kind and a seed. `results/fuzz.json` keeps what came out.
"""

import atexit
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import typer
import yaml

from generators.base.errors import AtlasError
from generators.checkpoint.registry import load_registry
from generators.compute.results import Store
from generators.findings.helix import chance
from generators.site.pages import page_in_words
from generators.site.staging import Staging
from generators.site.view import model_page
from generators.site.words import environment
from tests.checkpoints import write_checkpoint
from tests.nulls import today, write_record
from tests.torture.kinds import KINDS, SIZES, mutate
from tests.torture.processes import GIBI, SENTENCE, Ended, atlas, in_child

RESULTS = Path(__file__).parents[2] / "results" / "fuzz.json"
SECONDS, BYTES = 120, 2 * GIBI  # a limit of CPU so generous that a slow machine stays below it
FEW = 100  # draws of surrogates: as many as a percentile needs
ENTRY = {"name": "tiny", "title": "Tiny", "sources": [{"folder": "tiny"}], "frequency": "counts", "notes": "Small."}


@cache
def sound_project() -> Path:
    """Return a project with a checkpoint, tokenizer, token counts, registry, stored results, and figures drawn."""
    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place)
    folder = write_checkpoint(place / "tiny", sizes=SIZES)
    (folder / "vocab.txt").write_text("\n".join(f"{'##' * (i % 3 == 0)}w{i}" for i in range(SIZES.vocab_size)))
    np.save(folder / "token_counts.npy", np.arange(SIZES.vocab_size, dtype=np.int64)[::-1])
    (place / "models.yml").write_text(yaml.safe_dump([ENTRY]))
    use(place)  # in this process: its children have all libraries and templates, then
    return place


def use(place: Path) -> None:
    """Verify, compute and show every model of a project. Raises SystemExit: with a sentence; or AssertionError."""
    store, results = Store(place / "results", wait=0), ("--results", place / "results")
    if store.root.exists():
        with suppress(SystemExit):
            atlas("verify", *results)
    atlas("compute", "--all", "--skip-runs", "--wait", "0", *results, "--registry", place / "models.yml")
    try:
        for model in load_registry(place / "models.yml").models:
            look_at_page(model, store, place)
    except AtlasError as error:
        raise SystemExit(print(f"{SENTENCE}{error}") or 2) from error


def look_at_page(model, store: Store, place: Path) -> None:
    failed = [name for name in store.finding_names(model.name) if store.finding(model.name, name).status == "failed"]
    assert not failed, failed
    page = model_page(model, store, Staging(place / "pages", place / "cache"), lambda line: None)
    text = page_in_words(page, environment(), entities=[], in_series=[], seeds={})
    for mark in ("<script>alert", "\u202e", "\x1b"):
        assert mark not in text, f"{mark!r} is on the page"
    words = re.sub(r"<[^>]*>", "", re.sub(r"<bdi>.*?</bdi>", "", text))  # a token may be called None
    assert not re.search(r"\b(nan|None|inf)\b", words), "a number that is none is on the page"


def ended(change: Callable[[Path], None]) -> Ended:
    """Return how a process ended that used the sound project, changed."""
    sound = sound_project()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "project")

        def act() -> None:
            chance.DRAWS = FEW
            shutil.copytree(sound, place)
            change(place)
            use(place)

        return in_child(act, SECONDS, BYTES)


def mutant(kind: str, seed: int, way: int | None = None) -> Ended:
    rng = np.random.default_rng([seed, *kind.encode()])
    return ended(lambda place: mutate(place, KINDS[kind], rng, way))


def outcome(kind: str, seed: int) -> str:
    """Return what came of one mutant, and print it if it broke something."""
    end = mutant(kind, seed)
    if not end.is_sound:
        print(f"--- {kind}, seed {seed}\n{end.said}", flush=True)
        return "broke"
    return "sentence" if end.code else "result"


def fuzz(
    mutants: int = 20,
    first: int = 0,
    jobs: int = os.cpu_count() or 1,
    kind: list[str] = typer.Option(list(KINDS)),  # noqa: B008
    write: bool = False,
) -> None:
    """Damaged, hostile and absurd files; --write keeps what came out in results/fuzz.json."""
    record = {**today(), "limits": {"seconds": SECONDS, "bytes": BYTES}, "kinds": {}}
    sound_project()
    with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        for name in kind:
            count = Counter(pool.map(outcome, repeat(name), range(first, first + mutants)))
            record["kinds"][name] = {what: count[what] for what in ("result", "sentence", "broke")}
            print(f"{name}: {record['kinds'][name]}", flush=True)
    if write and len(kind) < len(KINDS):  # the others stay, and the commit of those tried anew is noted
        stored = json.loads(RESULTS.read_text("utf-8"))
        renewed = stored.get("renewed", {}) | dict.fromkeys(kind, record["commit"])
        record = stored | {"kinds": stored["kinds"] | record["kinds"], "renewed": renewed}
    if write:
        write_record(RESULTS, record)
    if any(count["broke"] for count in record["kinds"].values()):
        raise typer.Exit(1)
