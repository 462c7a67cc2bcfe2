"""`make fuzz`: files that are damaged, hostile or absurd, one after another; each gives a right result or a sentence.

A mutant is made from a small checkpoint by a seed: its weights, config, tokenizer, counts, registry or stored results
are changed. A child process with little memory and little time computes it and writes its page. `results/fuzz.json`
keeps what came out; a seed that broke something stays in `BROKE`, and is tried by every run of the tests.
"""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import numpy as np
import yaml
from safetensors.numpy import load_file, save_file

from generators.base.errors import AtlasError, InputError, WeightsUnavailableError
from generators.checkpoint.registry import FolderSource, Model, Registry, load_registry
from generators.checkpoint.sources import Places
from generators.compute.judged import judged_model
from generators.compute.results import Store
from generators.compute.running import RunSettings
from generators.compute.schedule import compute_model
from generators.compute.verify import verify
from generators.findings.helix import chance
from generators.site.staging import Staging
from generators.site.view import model_page
from generators.site.words import environment
from tests import fuzz_files
from tests.checkpoints import Sizes, write_checkpoint
from tests.fuzz_files import damaged
from tests.nulls import today, write_record
from tests.processes import in_fork, in_status

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "fuzz.json"
SIZES = Sizes(n_layer=2, n_head=2, d_model=16, n_ctx=24, vocab_size=128)
SECONDS, BYTES = 20, 2 * 2**30  # what one mutant may take: of the processor, of memory
FEW = 100  # draws of surrogates: as many as a percentile needs
MUTANTS = 20  # of each kind, unless told otherwise
WEIGHTS = "model.safetensors"
HOSTILE = ("<script>alert(1)</script>", "\u202egnp.exe", "\x1b[2J", "{{ 7 * 7 }}", "../../etc/passwd", "a" * 5000, "")
NUMBERS = (0, -1, 1, 2**31, 2**63, 1e308, float("nan"), float("inf"), -0.5, True, None, "12", [], {}, [[]])
# Kind and seed of what broke once.
BROKE: tuple[tuple[str, int], ...] = (
    ("numbers in the weights", 83), ("stored arrays", 22), ("stored arrays", 31)
)  # fmt: skip

Random = np.random.Generator
Change = Callable[[Path, Random], None]


def base(place: Path) -> Path:
    """Write the checkpoint that is changed, with a tokenizer, token counts, a registry and its own results."""
    folder = write_checkpoint(place / "tiny", sizes=SIZES)
    words = [f"{'##' * (i % 3 == 0)}w{i}" for i in range(SIZES.vocab_size)]
    (folder / "vocab.txt").write_text("\n".join(words))
    np.save(folder / "token_counts.npy", np.arange(SIZES.vocab_size, dtype=np.int64)[::-1])
    entry = {
        "name": "tiny",
        "title": "Tiny",
        "sources": [{"folder": "tiny"}],
        "frequency": "counts",
        "notes": "Small.",
    }
    (place / "models.yml").write_text(yaml.safe_dump([entry]))
    return place


# What is changed


def bytes_of(name: str) -> Change:
    """Return a change of some bytes of a file: flipped, cut out, doubled, or cut off."""

    def change(place: Path, rng: Random) -> None:
        damaged(place / "tiny" / name, rng)

    return change


def values(place: Path, rng: Random) -> None:
    """Change numbers of one tensor, or its shape or type."""
    path = place / "tiny" / WEIGHTS
    tensors = load_file(path)
    name = str(rng.choice(sorted(tensors)))
    tensor = np.array(tensors[name])
    flat, kind = tensor.reshape(-1), rng.integers(0, 10)
    if kind == 0:
        flat[int(rng.integers(flat.size))] = rng.choice([1e30, -3e38, np.inf, np.nan, 1e17, 1e-40])
    elif kind == 1:
        flat[:] = rng.choice([0.0, 1.0, 1e-30, 1e17])
    elif kind == 2:
        tensor *= np.float32(rng.choice([1e-20, 1e10, 1e15, -1]))
    elif kind == 3 and tensor.ndim == 2:
        tensor[:] = tensor[:, :1] @ tensor[:1]
    elif kind == 4 and tensor.ndim == 2:
        tensor = rng.permutation(tensor)
    elif kind == 5:
        tensor = tensor[: int(rng.integers(0, len(tensor)))]
    elif kind == 6:
        tensor = tensor.T.copy()
    elif kind == 7:
        tensor = tensor.astype(rng.choice([np.float16, np.float64, np.int64, np.uint8]))
    elif kind == 8:
        del tensors[name]
    else:
        tensor = np.sign(tensor)
    if name in tensors:
        tensors[name] = np.ascontiguousarray(tensor)
    save_file(tensors, path)


def _anything(rng: Random) -> Any:
    return rng.choice(np.array([*NUMBERS, *HOSTILE], object))


def config(place: Path, rng: Random) -> None:
    """Change entries of config.json, or add ones that other families have."""
    path = place / "tiny" / "config.json"
    content = json.loads(path.read_text())
    others = (
        "model_type",
        "tie_word_embeddings",
        "scale_attn_weights",
        "rope_scaling",
        "quantization_config",
        "n_inner",
    )
    for _ in range(int(rng.integers(1, 4))):
        key = str(rng.choice([*sorted(content), *others]))
        if rng.random() < 0.2:
            content.pop(key, None)
        else:
            content[key] = _anything(rng)
    path.write_text(json.dumps(content))


def sizes(place: Path, rng: Random) -> None:
    """Write a model of absurd sizes."""
    shutil.rmtree(place / "tiny")
    few = (1, 2, 3, 5, 17)
    heads = int(rng.choice([1, 2]))
    asked = Sizes(
        int(rng.choice([1, 3])), heads, heads * int(rng.choice(few)), int(rng.choice(few)), int(rng.choice(few))
    )
    write_checkpoint(place / "tiny", sizes=asked, seed=int(rng.integers(99)))


def tokenizer(place: Path, rng: Random) -> None:
    """Write another vocabulary, in one of three forms, or damage it."""
    folder = place / "tiny"
    words = [str(_anything(rng)) if rng.random() < 0.05 else f"w{i}" for i in range(int(rng.integers(0, 300)))]
    if rng.random() < 0.3:
        words.append("x" * 150_000)
    form = rng.integers(0, 3)
    if form == 0:
        (folder / "vocab.txt").write_text("\n".join(words), "utf-8", "replace")
    elif form == 1:
        vocab = {word: i if rng.random() < 0.9 else int(rng.integers(-5, 2**40)) for i, word in enumerate(words)}
        (folder / "vocab.json").write_text(json.dumps(vocab))
        (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(f"{a} {b}" for a, b in pairwise(words)))
        (folder / "vocab.txt").unlink()
    else:
        model = {
            "type": str(rng.choice(["BPE", "WordPiece", "Unigram", "none"])),
            "vocab": {w: i for i, w in enumerate(words)},
            "merges": [],
            "unk_token": _anything(rng),
        }
        (folder / "tokenizer.json").write_text(
            json.dumps({"version": "1.0", "model": model, "added_tokens": [], "normalizer": None})
        )


def counts(place: Path, rng: Random) -> None:
    """Write other counts: too many, too few, negative, none, of another type; or a damaged file."""
    n = int(rng.choice([0, 1, 127, 128, 129]))
    found = rng.integers(-1 if rng.random() < 0.2 else 0, int(rng.choice([1, 2, 2**62])), n)
    np.save(place / "tiny" / "token_counts.npy", found.astype(rng.choice([np.int64, np.int64, np.int32, np.float64])))
    if rng.random() < 0.5:
        bytes_of("token_counts.npy")(place, rng)


def registry(place: Path, rng: Random) -> None:
    """Change entries of models.yml."""
    entry = yaml.safe_load((place / "models.yml").read_text())[0]
    for _ in range(int(rng.integers(1, 3))):
        key = str(rng.choice([*sorted(entry), "licence", "group", "counts", "family", "stack"]))
        entry[key] = _anything(rng)
    entries = [entry, entry] if rng.random() < 0.1 else [entry]
    (place / "models.yml").write_text(yaml.safe_dump(entries, allow_unicode=bool(rng.random() < 0.5)))


def stored(place: Path, rng: Random) -> None:
    """Compute first, then change what is stored: a text, a number, bytes; its digest is made to fit, or not."""
    from generators.base.plain import as_json, content_digest

    model, store = _model(place), Store(place / "results")
    compute_model(model, Places(), store, settings=RunSettings(skip=True))
    path = rng.choice(np.array(sorted((place / "results" / "tiny").glob("*.[jn]*")), object))
    if path.suffix == ".npz" or rng.random() < 0.3:
        shutil.copy(path, place / "tiny" / "copy")
        bytes_of("copy")(place, rng)
        shutil.copy(place / "tiny" / "copy", path)
        return
    content = json.loads(path.read_text())
    content.pop("sha256")
    for _ in range(int(rng.integers(1, 4))):
        _change_somewhere(content, rng)
    path.write_text(as_json({**content, "sha256": content_digest(content)}))


def _change_somewhere(node: Any, rng: Random) -> None:
    """Put anything in the place of something inside JSON."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = keys[int(rng.integers(len(keys)))]
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.8:
            node = node[key]
            continue
        value = _anything(rng)
        node[key] = None if isinstance(value, float) and not np.isfinite(value) else value
        return


KINDS: dict[str, Change] = {
    "bytes of the weights": bytes_of(WEIGHTS),
    "numbers in the weights": values,
    "sizes": sizes,
    "config": config,
    "bytes of the config": bytes_of("config.json"),
    "tokenizer": tokenizer,
    "bytes of the tokenizer": bytes_of("vocab.txt"),
    "token counts": counts,
    "registry": registry,
    "stored results": stored,
    **fuzz_files.KINDS,
}


# What came of it


def _model(place: Path) -> Model:
    return Model(name="tiny", title="Tiny", sources=(FolderSource(folder=place / "tiny"),), frequency="counts")


def outcome(kind: str, seed: int, place: Path) -> str:
    """Return `result` or `sentence`; whatever else happens is raised.

    Raises:
        AssertionError: a finding failed, noise holds, or a page lets through what it must not.
    """
    chance.DRAWS = FEW
    rng = np.random.default_rng([seed, *kind.encode()])
    base(place)
    try:
        if KINDS[kind] in fuzz_files.AFTER_COMPUTING:
            compute_model(_model(place), Places(), Store(place / "results"), settings=RunSettings(skip=True))
        KINDS[kind](place, rng)
        known = (
            load_registry(place / "models.yml")
            if kind in ("registry", "pipes and devices")
            else Registry(models=(_model(place),))
        )
        store = Store(place / "results", wait=0)
        list(verify(store))
        for model in known.models:
            done = compute_model(model, Places(), store, settings=RunSettings(skip=True))
            assert not done.failed, done.failed
            _look_at_page(model, store, place)
    except (InputError, AtlasError, WeightsUnavailableError) as error:
        assert str(error).strip(), "a sentence of no words"
        assert "Traceback" not in str(error)
        return "sentence"
    return "result"


def _look_at_page(model: Model, store: Store, place: Path) -> None:
    staging = Staging(place / "pages", place / "cache")
    page = model_page(model, store, staging, lambda line: None)
    assert page is not None
    template = environment().get_template("model.md.j2")
    text = template.render(root="../../", page=page, entities=[], seeds={}, beside_series=False)
    for mark in ("<script>alert", "\u202e", "\x1b"):
        assert mark not in text, f"{mark!r} is on the page"
    words = re.sub(r"<[^>]*>", "", re.sub(r"<bdi>.*?</bdi>", "", text))  # a token may be called None
    assert not re.search(r"\b(nan|None|inf)\b", words), "a number that is none is on the page"
    judged = judged_model(store, model.name)
    assert judged is not None


def in_child(kind: str, seed: int) -> tuple[str, str]:
    """Return what came of one mutant, and why where it is neither a result nor a sentence."""

    def act() -> tuple[str, str]:
        with tempfile.TemporaryDirectory() as place:
            try:
                resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
                inherited = in_status("VmData") or 0  # the child has its parent's, libraries' reserves included
                most = inherited + BYTES
                resource.setrlimit(resource.RLIMIT_DATA, (most, most))
                signal.alarm(50 * SECONDS)  # one that waits for ever takes no processor time; others wait for theirs
                return outcome(kind, seed, Path(place)), ""
            except BaseException:
                return "broke", traceback.format_exc()[-20_000:]

    told, status = in_fork(act)
    if told is None:
        return "broke", f"ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"ended with {status}"
    what, why = told
    return what, why


def tried(kind: str, seeds: range) -> Counter[str]:
    """Return how often each outcome came of a kind; what broke is printed."""
    found: Counter[str] = Counter()
    for seed in seeds:
        what, why = in_child(kind, seed)
        found[what] += 1
        if what == "broke":
            print(f"--- {kind}, seed {seed}\n{why}", flush=True)
    return found


def warm() -> None:
    """Read libraries and templates once, before processes are started that need them."""
    with tempfile.TemporaryDirectory() as folder:
        place = base(Path(folder))
        store = Store(place / "results")
        compute_model(_model(place), Places(), store, settings=RunSettings(skip=True))
        _look_at_page(_model(place), store, place)


def tried_by(jobs: int, kind: str, seeds: range) -> Counter[str]:
    """Return the same, tried by several processes."""
    with ThreadPoolExecutor(jobs) as pool:
        parts = pool.map(lambda first: in_fork(lambda: tried(kind, seeds[first::jobs]))[0], range(jobs))
        return sum(map(Counter, parts), Counter())


def with_others(record: dict[str, Any]) -> dict[str, Any]:
    """Return the stored record with some kinds tried anew, and which: each with the commit at which it was."""
    stored = json.loads(RESULTS.read_text("utf-8"))
    renewed = stored.get("renewed", {}) | dict.fromkeys(record["kinds"], record["commit"])
    return stored | {"kinds": stored["kinds"] | record["kinds"], "renewed": renewed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=MUTANTS, help="of each kind")
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="SEED")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kind", action="append", choices=sorted(KINDS))
    parser.add_argument("--write", action="store_true", help="keep the figures in results/fuzz.json, kind by kind")
    chosen = parser.parse_args()
    began = time.monotonic()
    record: dict[str, Any] = {**today(), "limits": {"seconds": SECONDS, "bytes": BYTES}, "kinds": {}}
    warm()
    for kind in chosen.kind or KINDS:
        count = tried_by(chosen.jobs, kind, range(chosen.first, chosen.first + chosen.mutants))
        record["kinds"][kind] = {what: count[what] for what in ("result", "sentence", "broke")}
        print(f"{kind}: {record['kinds'][kind]}", flush=True)
        if chosen.write:
            write_record(RESULTS, with_others(record) if chosen.kind else record)
    counts = record["kinds"].values()
    print(f"{sum(sum(count.values()) for count in counts)} mutants in {time.monotonic() - began:.0f} s")
    sys.exit(1 if any(count["broke"] for count in counts) else 0)


if __name__ == "__main__":
    main()
