"""Input that broke the atlas once, or could: each gives a sentence, or the right result."""

import io
import json
import os
import resource
import subprocess
import sys
import zipfile
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from generators import findings as all_findings
from generators.base import npz as npz_files
from generators.base.errors import AtlasError, InputError
from generators.base.files import read_limited
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import FolderSource, Model, load_registry
from generators.checkpoint.sources import Places, check_size, files, in_folder
from generators.compute.results import Store
from generators.compute.schedule import compute_model
from generators.compute.verify import verify
from generators.findings import FINDINGS
from generators.findings.measured import Measurements
from generators.site import quality_reports, report
from generators.tokens.frequency import read_counts, token_frequencies
from generators.tokens.tokenizer_files import load_vocabulary
from generators.tokens.vocabulary import LONGEST_READABLE
from tests.checkpoints import WEIGHTS, write_checkpoint
from tests.compute.test_results import TINY, record_of
from tests.torture.damage import NO_FILES, reseal
from tests.toy_findings import toy

ARRAYS = {"a": np.arange(4, dtype=np.float32), "name": np.array(["x", "yy"])}
FAR = (400_000_000, 2**31, 2**62)


@pytest.fixture
def folder(tmp_path):
    return write_checkpoint(tmp_path / "m1")


@pytest.fixture
def compute(folder, store, monkeypatch):
    monkeypatch.setattr(all_findings, "FINDINGS", (toy("toy"),))
    model = Model(name="tiny", title="Tiny", sources=(FolderSource(folder=folder),))
    return lambda *display: compute_model(model, Places(), store, *display)


# Files that are read


def numpy_file(text):
    text = text.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def header(shape, descr="<f4"):
    return numpy_file(f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")


def tokenizer(vocab=None, **parts):
    model = {"type": "WordLevel", "vocab": vocab or {"a": 0}, "unk_token": "a"}
    return json.dumps({"model": model, "added_tokens": [], **parts}).encode()


def weights(shape):
    size = 4 * int(np.prod([float(n) for n in shape]))
    text = json.dumps({"wte.weight": {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}}).encode()
    return lambda path: (
        path.write_bytes(len(text).to_bytes(8, "little") + text),
        os.truncate(path, size + 8 + len(text)),
    )


def vocabulary(path):
    load_vocabulary(in_folder(path.parent), 100)


def checkpoint(path):
    return open_checkpoint(in_folder(path.parent))["token_embedding"]


def hole(mebibytes):
    return lambda path: (path.touch(), os.truncate(path, mebibytes << 20))


GIGABYTES = "3072 MiB where a config or a tokenizer was expected"
REFUSED = [
    *(("tokenizer.json", tokenizer({"a": 0, "b": i}), vocabulary, f"id {i}, and the model embeds 100") for i in FAR),
    *(
        ("tokenizer.json", tokenizer(added_tokens=[{"id": i, "content": "b"}]), vocabulary, f"id {i}, and")
        for i in FAR
    ),
    (
        "tokenizer.json",
        tokenizer(model={"type": "BPE", "vocab": {"a": 0, "é": 1}, "merges": ["a é"]}),
        vocabulary,
        "merges 'a' and 'é'",
    ),
    (
        "tokenizer.json",
        tokenizer(normalizer={"type": "Sequence", "normalizers": [{"type": "Replace", "content": "ee"}] * 34}),
        vocabulary,
        "more than 256 times",
    ),
    ("tokenizer.json", tokenizer(normalizer={"type": "Prepend", "prepend": "x" * 1000}), vocabulary, "more than 256"),
    *((name, hole(3072), vocabulary, GIGABYTES) for name in ("tokenizer.json", "vocab.txt")),
    *((name, hole(3072), checkpoint, GIGABYTES) for name in ("config.json", f"{WEIGHTS}.index.json")),
    *((name, hole(40), checkpoint, "nothing beyond 32 MiB") for name in ("config.json", f"{WEIGHTS}.index.json")),
    *((WEIGHTS, weights(shape), checkpoint, ".") for shape in ([40, 10**8], [2**62, 0], [1] * 70)),
    *(
        ("counts.npy", data + bytes(32), lambda path: read_counts(path, 4), "The counts")
        for data in (
            *(header(f"({shape},)", "<i8") for shape in (2**63, "4294967296, 4294967296", -1)),
            numpy_file("{'descr': '<i8'"),
            numpy_file("((((("),
        )
    ),
    ("models.yml", os.mkfifo, load_registry, "can't be read"),
    ("fuzz.json", os.mkfifo, lambda path: quality_reports.read(path.parent, "fuzz"), "can't be read"),
    ("absent", b"", lambda path: check_size(path.with_name("nowhere")), "can't be read"),
]


@pytest.mark.parametrize(("name", "content", "read", "said"), REFUSED, ids=range(len(REFUSED)))
def test_hostile_file_is_a_sentence(folder, name, content, read, said, monkeypatch):
    monkeypatch.setattr("tokenizers.Tokenizer", None)  # the library would end the process
    path = folder / name
    if name.endswith(".index.json"):  # which is read where there is no file without one
        (folder / "model.safetensors").unlink()
    path.write_bytes(content) if isinstance(content, bytes) else content(path)
    with pytest.raises(InputError, match=said):
        read(path)


@pytest.mark.parametrize("number", [1e30, -1e19, 3e38, np.inf, np.nan])
def test_number_that_no_weight_can_be_is_named_with_its_place(folder, number):
    rows = np.array(checkpoint(folder / WEIGHTS))
    rows[3, 2] = number
    write_checkpoint(folder, changed={"wte.weight": rows})
    with pytest.raises(InputError, match=r"wte\.weight .* at \[3, 2\]"):
        checkpoint(folder / WEIGHTS)


def test_measurement_that_overflows_is_a_sentence(compute, store, monkeypatch):
    overflows = toy("toy", measure=lambda _: Measurements({"sum": np.inf}, {}, {}))
    monkeypatch.setattr(all_findings, "FINDINGS", (overflows,))
    compute()
    assert "infinity or no number" in store.finding("tiny", "toy").reason


def test_large_weights_are_read(folder):
    rows = checkpoint(folder / WEIGHTS) * 1e15
    write_checkpoint(folder, changed={"wte.weight": rows})
    assert np.array_equal(checkpoint(folder / WEIGHTS), rows)


def test_token_of_150_000_characters_costs_no_memory(tmp_path):
    (tmp_path / "vocab.txt").write_text(
        "\n".join(["[UNK]", *("x" * 150_000 if i == 7 else f"t{i}" for i in range(1, 2000))])
    )
    found = load_vocabulary(in_folder(tmp_path), 2000)
    assert found.readable[7] == f"[id 7] {'x' * LONGEST_READABLE}…"
    assert len(found.raw_bytes[7]) == 150_000
    assert np.array(found.readable, np.str_).nbytes < 6_000_000


def test_counts_whose_name_is_no_utf8_are_named_all_the_same(tmp_path):
    path = tmp_path / os.fsdecode(b"counts-\xff\x1b[31m.npy")
    np.save(path, np.arange(4))
    found = token_frequencies(in_folder(tmp_path), "index", None, 4, path)
    assert found[0].label == "token counts of a corpus (counts-\ufffd\ufffd[31m.npy)"


def test_file_is_read_up_to_its_limit(tmp_path):
    (tmp_path / "a").write_bytes(bytes(11))
    assert read_limited(tmp_path / "a", 11) == bytes(11)
    with pytest.raises(OSError, match="at most"):
        read_limited(tmp_path / "a", 10)
    assert files.LARGEST_TEXT > 40 * 2**20  # Gemma's tokenizer has 34 MB


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "vocab.txt", "token_counts.npy", WEIGHTS])
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_in_a_models_folder_is_not_waited_for(folder, compute, name, kind):
    (folder / name).unlink(missing_ok=True)
    NO_FILES[kind](folder / name)
    with suppress(InputError):
        compute()


def test_damaged_tokenizer_leaves_nothing_half_computed(folder, store, compute, monkeypatch):
    monkeypatch.setattr(all_findings, "FINDINGS", FINDINGS)
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(InputError, match="tokenizer"):
        compute()
    assert store.names() == []


def test_panic_of_a_library_costs_its_model_and_no_other(compute, monkeypatch):
    class PanicException(BaseException):  # as those of libraries in Rust
        pass

    def panics(_):
        raise PanicException("index out of bounds")

    monkeypatch.setattr(all_findings, "FINDINGS", (replace(toy("toy"), measure=panics),))
    assert "PanicException: index out of bounds" in str(compute().failed)


# Commands

REPORT = ["report", "m1", "--skip-runs", "-o", "web"]
COMPUTE = ["compute", "m1", "--skip-runs", "--results"]


REFUSALS = {  # files that are there, a command, what it says
    "merge": ({"models.yml": "a: &a {x: 1}\nb: &b {<<: *a}\n"}, ["models"], ""),
    "aliases": ({"models.yml": "a: &a {x: 1}\nb: [" + "*a, " * 201 + "1]\n"}, ["models"], ""),
    "long": ({"models.yml": "- [" + "1," * 2**19 + "]\n"}, ["models"], ""),
    "deep": ({"models.yml": "- " * 300_000 + "\n"}, ["models"], ""),
    **{
        value[:20]: ({"models.yml": f"- {{name: {value}, title: A, sources: [{{folder: a}}]}}"}, ["models"], "")
        for value in ('!!int ""', '!!timestamp "x"', "!!bool maybe", ":".join(["59"] * 3000))
    },
    "folder": ({"models.yml": f"- {{name: a, title: A, sources: [{{folder: {'a' * 5000}}}]}}"}, ["compute", "a"], ""),
    "no name": ({}, ["models", "--results", ""], "it is empty"),
    "megabytes": ({"m1/config.json": json.dumps({"model_type": "x" * 10**6})}, ["compute", "m1"], ""),
    "notes": ({"there/m1/notes.txt": "mine"}, [*COMPUTE, "there"], "which is no result"),
    "config": ({"there/m1/config.json": "mine"}, [*COMPUTE, "there"], "which is no result"),
    "photos": ({"there/m1/photos/1.jpg": "mine"}, [*COMPUTE, "there"], "which is no result"),
    "in the checkpoint": ({}, [*COMPUTE, "."], ""),
    "a web site": ({"web/index.html": "hello", "web/photos/1.jpg": "mine"}, REPORT, ""),
    "a thesis": ({"web/.results/x": "x", "web/thesis.tex": "mine"}, REPORT, "holds thesis.tex"),
    "a folder beside": ({".web.old/a": "mine"}, REPORT, "no report"),
    "a folder to come": ({".web.new/a": "mine"}, REPORT, "no report"),
    "a site": ({"site/photos/1.jpg": "mine"}, ["render"], "site/ holds something that is no site of MkDocs"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_command_refuses_with_a_sentence_and_every_file_stays(tmp_path, atlas, folder, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    written, command, said = REFUSALS[what]
    for name, content in ({"models.yml": "[]"} | written).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    run = atlas(*command)
    assert run.code == 2 or (command[0] in ("compute", "report") and run.code == 1)
    assert said in run.err
    assert 0 < len(run.err) < 10_000
    assert before == {path: path.read_bytes() for path in before}
    assert list(tmp_path.rglob("*.npz")) == []


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        *((mib << 20, "ulimit -v") for mib in (150, 230, 700)),
        (800 << 20, ""),
    ],
)
def test_too_few_addresses_are_a_sentence(tmp_path, folder, amount, said):
    (tmp_path / "models.yml").write_text("[]")
    run = subprocess.run(
        [sys.executable, "-m", "generators.cli", *COMPUTE, "r"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (amount, amount)),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "Traceback" not in run.stderr
    assert run.returncode == (2 if said else 0) and said in run.stderr


# Stored results


@pytest.fixture
def stored(store):
    store.save_model(TINY)
    store.save_finding("tiny", record_of("0" * 64), ARRAYS)
    store.save_finding("tiny", record_of("1" * 64, "other"), ARRAYS)
    return store


FORGERIES = [
    *(("model.json", {"title": text}, "title") for text in ("<script>alert(1)</script>", "a\u202eb", "\x1b]0;x\x07")),
    *(("toy.json", {"computed_on": day}, "version") for day in ("2026-01-01\u202e", "<script>", "yesterday")),
    *(("toy.json", text, "damaged") for text in ('{"a": 1e400, "sha256": ""}', '{"a": NaN}', '{"a": -1e999}')),
]


@pytest.mark.parametrize(("name", "change", "said"), FORGERIES, ids=range(len(FORGERIES)))
def test_forged_result_is_a_sentence(stored, name, change, said):
    path = stored.folder("tiny") / name
    path.write_text(change) if isinstance(change, str) else reseal(path, **change)
    with pytest.raises(InputError, match=said):
        stored.model("tiny") if name == "model.json" else stored.finding("tiny", "toy")


def test_stored_texts_lose_what_cannot_be_seen(stored):
    table = {"title": "T", "columns": ["a"], "rows": [["up\u202edown"], [["\u2066"]], [3]]}
    reseal(stored.folder("tiny") / "toy.json", tables={"t": table}, metrics={"a\u202e": {"b": ["\x1b[2J", 1.5]}})
    reseal(stored.folder("tiny") / "model.json", notes="up\u202edown\x1b[2J")
    found = stored.finding("tiny", "toy")
    assert found.tables["t"].rows == (("up\ufffddown",), (["\ufffd"],), (3,))
    assert found.metrics == {"a\ufffd": {"b": ["\ufffd[2J", 1.5]}}
    assert stored.model("tiny").notes == "up\ufffddown\ufffd[2J"


def npz(member, kind=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as file:
        file.writestr("a.npy", member)
    return buffer.getvalue()


FORGED_ARRAYS = {
    "objects": npz(header("(1,)", "|O") + b"\x80\x04]\x94}\x94a."),  # must never be unpickled
    "no zip": b"no zip at all",
    "bad crc": npz(header("(4,)") + b"\0" * 16).replace(b"\0" * 16, b"\0" * 15 + b"\1"),
    "2^40 numbers": npz(header("(1099511627776,)") + bytes(16)),
    "2^40 numbers of no bytes": npz(header("(1099511627776,)", "<U0") + bytes(16)),
    "a negative shape": npz(header("(-1,)") + bytes(16)),
    "a bomb": npz(header(f"({2**20},)") + bytes(2**22), zipfile.ZIP_DEFLATED),
}


@pytest.mark.parametrize("how", FORGED_ARRAYS)
def test_forged_arrays_are_a_sentence(stored, how, monkeypatch):
    monkeypatch.setattr(npz_files, "LARGEST_UNPACKED", 2**21)
    (path,) = stored.folder("tiny").glob("toy.*.npz")
    path.write_bytes(FORGED_ARRAYS[how])
    reseal(path)
    with pytest.raises(InputError, match="damaged"):
        stored.load("tiny", "toy")
    assert [name for name, _ in verify(stored)] == ["tiny"]
    np.testing.assert_array_equal(stored.load("tiny", "other")[1]["a"], ARRAYS["a"])


@pytest.mark.parametrize("name", ["model.json", "toy.json", "toy.0000000000000000.npz", ".settled"])
@pytest.mark.parametrize("kind", ["pipe", "device", "dead link", "hole", "folder"])
def test_what_is_no_file_among_results_is_never_read(stored, name, kind):
    path = stored.folder("tiny") / name
    path.unlink(missing_ok=True)
    NO_FILES[kind](path)
    said = [sentence for _, sentence in verify(stored)]
    assert any(str(path) in sentence for sentence in said) or name.startswith(".")
    assert all("other" not in sentence for sentence in said)
    assert stored.up_to_date("tiny") is None
    stored.has_model("tiny")


@pytest.mark.parametrize("kind", ["dead link", "hole"])
def test_results_that_are_no_folder_are_a_sentence(tmp_path, kind):
    NO_FILES[kind](tmp_path / "results")
    with pytest.raises(AtlasError, match="can't be written"), Store(tmp_path / "results").locked("tiny"):
        pass


def test_where_everything_is_stored_no_lock_is_needed(store, compute, monkeypatch):
    compute()
    monkeypatch.setattr(Store, "locked", None)
    assert compute().stored == ("toy",)
    (store.root / "tiny" / ".toy.json.123.tmp").write_text("half")
    with pytest.raises(TypeError):  # a lock was taken
        compute()


def test_a_report_copies_only_what_results_may_be(tmp_path):
    for kind in NO_FILES.keys() - {"folder", "nothing", "odd name"}:
        NO_FILES[kind](tmp_path / kind)
    for name in ("a.json", "b.npz"):
        (tmp_path / name).touch()
    names = [path.name for path in tmp_path.iterdir()]
    assert {*names} - {*report._unreadable(str(tmp_path), names)} == {"a.json", "b.npz"}
