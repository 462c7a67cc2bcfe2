"""Input that broke the atlas once, or could: each gives a sentence, or the right result."""

import io
import json
import os
import resource
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from generators import findings as all_findings
from generators.base import npz as npz_files
from generators.base.errors import InputError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import FolderSource, Model, load_registry
from generators.checkpoint.sources import Places, in_folder
from generators.compute.results import Store
from generators.compute.schedule import compute_model
from generators.compute.verify import verify
from generators.findings.measured import Measurements
from generators.tokens.frequency import read_counts, token_frequencies
from generators.tokens.tokenizer_files import load_vocabulary
from generators.tokens.vocabulary import LONGEST_READABLE
from tests.checkpoints import WEIGHTS, write_checkpoint
from tests.compute.test_results import TINY, record_of
from tests.conftest import ROOT
from tests.torture.damage import reseal
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
    return lambda: compute_model(model, Places(), store)


# Files that are read


def header(shape, descr="<f4"):
    said = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(said).to_bytes(2, "little") + said


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


TOKENIZERS = [
    *(({"vocab": {"a": 0, "b": i}}, f"id {i}, and the model embeds 100") for i in FAR),
    *(({"added_tokens": [{"id": i, "content": "b"}]}, f"id {i}, and the model embeds 100") for i in FAR),
    ({"model": {"type": "BPE", "vocab": {"a": 0, "é": 1}, "merges": ["a é"]}}, "merges 'a' and 'é'"),
    ({"normalizer": {"type": "Prepend", "prepend": "x" * 1000}}, "more than 256 times"),
    (
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Replace", "content": "ee"}] * 34}},
        "more than 256",
    ),
]
GIGABYTES = "3072 MiB where a config or a tokenizer was expected"
REFUSED = [
    *(("tokenizer.json", tokenizer(**parts), vocabulary, said) for parts, said in TOKENIZERS),
    *((name, hole(3072), vocabulary, GIGABYTES) for name in ("tokenizer.json", "vocab.txt")),
    *((name, hole(3072), checkpoint, GIGABYTES) for name in ("config.json", f"{WEIGHTS}.index.json")),
    *((name, hole(40), checkpoint, "nothing beyond 32 MiB") for name in ("config.json", f"{WEIGHTS}.index.json")),
    *((WEIGHTS, weights(shape), checkpoint, ".") for shape in ([40, 10**8], [2**62, 0], [1] * 70)),
    *(
        ("counts.npy", header(f"({shape},)", "<i8") + bytes(32), lambda path: read_counts(path, 4), "The counts")
        for shape in (2**63, "4294967296, 4294967296", -1)
    ),
    ("models.yml", os.mkfifo, load_registry, "can't be read"),
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
    rows = np.array(checkpoint(folder / WEIGHTS)) * 1e15
    write_checkpoint(folder, changed={"wte.weight": rows})
    assert np.array_equal(checkpoint(folder / WEIGHTS), rows)  # large, and a weight all the same
    rows[3, 2] = number
    write_checkpoint(folder, changed={"wte.weight": rows})
    with pytest.raises(InputError, match=r"wte\.weight .* at \[3, 2\]"):
        checkpoint(folder / WEIGHTS)


def test_measurement_that_overflows_is_a_sentence(compute, store, monkeypatch):
    overflows = toy("toy", measure=lambda _: Measurements({"sum": np.inf}, {}, {}))
    monkeypatch.setattr(all_findings, "FINDINGS", (overflows,))
    compute()
    assert "infinity or no number" in store.finding("tiny", "toy").reason


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


def test_panic_of_a_library_costs_its_model_and_no_other(compute, monkeypatch):
    class PanicException(BaseException):  # as those of libraries in Rust
        pass

    def panics(_):
        raise PanicException("index out of bounds")

    monkeypatch.setattr(all_findings, "FINDINGS", (replace(toy("toy"), measure=panics),))
    assert "PanicException: index out of bounds" in str(compute().failed)


@pytest.mark.parametrize(("mib", "said"), [(150, "ulimit -v"), (230, "ulimit -v"), (700, "ulimit -v"), (800, "")])
def test_too_few_addresses_are_a_sentence(tmp_path, folder, mib, said):
    (tmp_path / "models.yml").write_text("[]")
    run = subprocess.run(
        [sys.executable, "-m", "generators.cli", "compute", "m1", "--skip-runs", "--results", "r"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20)),
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
    ("toy.json", '{"a": 1e400, "sha256": ""}', "damaged"),
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
    "2^40 numbers": npz(header("(1099511627776,)") + bytes(16)),
    "2^40 numbers of no bytes": npz(header("(1099511627776,)", "<U0") + bytes(16)),
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


def test_where_everything_is_stored_no_lock_is_needed(store, compute, monkeypatch):
    compute()
    monkeypatch.setattr(Store, "locked", None)
    assert compute().stored == ("toy",)
    (store.root / "tiny" / ".toy.json.123.tmp").write_text("half")
    with pytest.raises(TypeError):  # a lock was taken
        compute()
