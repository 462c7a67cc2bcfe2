"""Input that broke the atlas once, or could: each gives a sentence, or the right result."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import yaml

from generators import findings as all_findings
from generators.base.display import Display
from generators.base.errors import AtlasError, InputError
from generators.base.plain import as_json, content_digest
from generators.checkpoint import sources
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import FolderSource, Model, load_registry
from generators.checkpoint.sources import Places, files, in_folder
from generators.compute.results import HOLDER, Store
from generators.compute.schedule import compute_model
from generators.tokens.frequency import read_counts, token_frequencies
from generators.tokens.tokenizer_files import load_vocabulary
from generators.tokens.vocabulary import LONGEST_READABLE
from tests.checkpoints import write_checkpoint
from tests.conftest import ROOT
from tests.toy_findings import toy

E = "wte.weight"


def model(folder):
    return Model(name="tiny", title="Tiny", sources=(FolderSource(folder=folder),))


@pytest.fixture
def one_finding(monkeypatch):
    monkeypatch.setattr(all_findings, "FINDINGS", (toy("toy"),))


# Numbers


@pytest.mark.parametrize("number", [1e30, -1e19, 3e38, np.inf, np.nan])
def test_a_number_that_no_weight_can_be_is_named_with_its_place(tmp_path, number):
    shape = open_checkpoint(in_folder(write_checkpoint(tmp_path / "ok")))["token_embedding"].shape
    rows = np.random.default_rng(0).standard_normal(shape)
    rows = rows.astype(np.float32)
    rows[3, 2] = number
    checkpoint = open_checkpoint(in_folder(write_checkpoint(tmp_path / "tiny", changed={E: rows})))
    with pytest.raises(InputError, match=r"wte\.weight .* at \[3, 2\]"):
        checkpoint["token_embedding"]


def test_large_weights_are_read(tmp_path):
    rows = open_checkpoint(in_folder(write_checkpoint(tmp_path / "ok")))["token_embedding"] * 1e15
    checkpoint = open_checkpoint(in_folder(write_checkpoint(tmp_path / "tiny", changed={E: rows})))
    assert np.array_equal(checkpoint["token_embedding"], rows)


# Tokenizers, configs, counts


def test_a_token_of_150_000_characters_costs_no_memory(tmp_path):
    tokens = [f"t{i}" for i in range(2000)]
    tokens[7] = "x" * 150_000
    (tmp_path / "vocab.txt").write_text("\n".join(tokens))
    vocabulary = load_vocabulary(in_folder(tmp_path), 2000)
    assert vocabulary.readable[7] == f"[id 7] {'x' * LONGEST_READABLE}…"
    assert len(vocabulary.raw_bytes[7]) == 150_000
    assert np.array(vocabulary.readable, np.str_).nbytes < 6_000_000


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json", "tokenizer.json", "vocab.txt"])
def test_a_file_of_gigabytes_where_kilobytes_are_due_is_not_read(tmp_path, name):
    folder = write_checkpoint(tmp_path / "tiny")
    with (folder / name).open("ab") as file:
        file.truncate(3 * 2**30)  # a hole: no disk is taken
    with pytest.raises(InputError, match=r"3072 MiB where a config or a tokenizer was expected"):
        open_checkpoint(in_folder(folder))
        load_vocabulary(in_folder(folder), 10)


@pytest.mark.parametrize("id_", [400_000_000, 2**31, 2**62])
@pytest.mark.parametrize("where", ["vocab", "added"])
def test_an_id_far_beyond_the_embedding_is_refused_before_the_tokenizer_is_built(tmp_path, id_, where, monkeypatch):
    vocab, added = {"a": 0, **({"far": id_} if where == "vocab" else {})}, []
    if where == "added":
        added = [{"id": id_, "content": "far", "special": True}]
    content = {"model": {"type": "WordLevel", "vocab": vocab, "unk_token": "a"}, "added_tokens": added}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    monkeypatch.setattr("tokenizers.Tokenizer", None)
    with pytest.raises(InputError, match=rf"id {id_}, and the model embeds 100"):
        load_vocabulary(in_folder(tmp_path), 100)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [["a", "b"]]}}, "merges 'a' and 'b'"),
        ({"model": {"type": "BPE", "vocab": {"a": 0, "é": 1}, "merges": ["a é"]}}, "merges 'a' and 'é'"),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Replace", "content": "ee"}] * 34}},
            "more than 256 times",
        ),
        ({"normalizer": {"type": "Prepend", "prepend": "x" * 1000}}, "more than 256 times"),
    ],
)
def test_what_the_tokenizers_library_would_end_at_is_refused_before(tmp_path, part, said, monkeypatch):
    known = {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}, "added_tokens": []}
    (tmp_path / "tokenizer.json").write_text(json.dumps(known | part))
    monkeypatch.setattr("tokenizers.Tokenizer", None)
    with pytest.raises(InputError, match=said):
        load_vocabulary(in_folder(tmp_path), 100)


def test_a_panic_of_a_library_costs_its_model_and_no_other(tmp_path, store, monkeypatch):
    class PanicException(BaseException):  # as those of libraries in Rust
        pass

    def panics(_):
        raise PanicException("index out of bounds")

    monkeypatch.setattr(all_findings, "FINDINGS", (replace(toy("toy"), measure=panics),))
    done = compute_model(model(write_checkpoint(tmp_path / "tiny")), Places(), store)
    assert "PanicException: index out of bounds" in str(done.failed)


@pytest.mark.parametrize(("shape", "dtype"), [([40, 10**8], "F32"), ([2**62, 0], "F32"), ([1] * 70, "F32")])
def test_a_tensor_of_the_wrong_shape_is_not_read(tmp_path, shape, dtype):
    folder = write_checkpoint(tmp_path / "tiny")
    size = 4 * int(np.prod([float(n) for n in shape]))
    header = json.dumps({E: {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size)  # a sparse file, which takes no room
    with pytest.raises((InputError, KeyError)):
        open_checkpoint(in_folder(folder))["token_embedding"]


# Other people's files


@pytest.mark.parametrize("inside", ["notes.txt", "config.json", "photos/1.jpg"])
def test_results_are_not_stored_among_other_files(tmp_path, atlas, one_finding, inside):
    folder = write_checkpoint(tmp_path / "m1")
    other = tmp_path / "there" / "m1" / inside
    other.parent.mkdir(parents=True)
    other.write_text("mine")
    run = atlas("compute", folder, "--skip-runs", "--results", tmp_path / "there", "--registry", no_models(tmp_path))
    assert run.code != 0
    assert "which is no result" in run.err
    assert other.read_text() == "mine"
    assert [path.name for path in other.parent.rglob("*") if path.suffix == ".npz"] == []


def test_results_are_not_stored_in_the_checkpoint(tmp_path, atlas, one_finding):
    folder = write_checkpoint(tmp_path / "m1")
    before = sorted(path.name for path in folder.iterdir())
    run = atlas("compute", folder, "--skip-runs", "--results", tmp_path, "--registry", no_models(tmp_path))
    assert run.code != 0
    assert [path for path in before if not (folder / path).exists()] == []


def test_a_report_does_not_replace_a_web_site(tmp_path, atlas):
    photo = tmp_path / "web" / "photos" / "1.jpg"
    photo.parent.mkdir(parents=True)
    photo.write_text("mine")
    (tmp_path / "web" / "index.html").write_text("<p>hello</p>")
    run = atlas("report", write_checkpoint(tmp_path / "m1"), "--skip-runs", "-o", tmp_path / "web")
    assert run.code != 0
    assert photo.read_text() == "mine"


def test_a_site_does_not_replace_a_folder_of_something_else(tmp_path, atlas, monkeypatch):
    monkeypatch.chdir(tmp_path)
    photo = tmp_path / "site" / "photos" / "1.jpg"
    photo.parent.mkdir(parents=True)
    photo.write_text("mine")
    run = atlas("render", "--registry", no_models(tmp_path))
    assert (run.code, photo.read_text()) == (2, "mine")
    assert "site/ holds something that is no site of MkDocs" in run.err


def test_a_folder_of_results_has_a_name(tmp_path, atlas):
    run = atlas("models", "--results", "", "--registry", no_models(tmp_path))
    assert run.code == 2
    assert "it is empty" in run.err


def test_a_sentence_of_megabytes_is_cut(tmp_path, atlas):
    folder = write_checkpoint(tmp_path / "m1")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "x" * 10**6}))
    run = atlas("compute", folder, "--registry", no_models(tmp_path))
    assert run.code != 0
    assert 0 < len(run.err) < 10_000


@pytest.mark.parametrize(("limit", "code"), [(39, 2), (40, 0)])
def test_too_few_open_files_are_a_sentence(tmp_path, limit, code):
    resource = pytest.importorskip("resource", reason="it is Unix's")
    folder, few = write_checkpoint(tmp_path / "m1"), (limit, limit)
    command = ["-m", "generators.cli", "compute", folder, "--skip-runs", "--jobs", "2", "--results", tmp_path / "r"]
    run = subprocess.run(
        [sys.executable, *command, "--registry", no_models(tmp_path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code, run.stderr
    assert ("ulimit -n 40" in run.stderr) == (code == 2)


@pytest.mark.parametrize(
    "content",
    [
        "a: &a {x: 1}\nb: &b {<<: *a}\n",
        "a: &a {x: 1}\nb: [" + "*a, " * 201 + "1]\n",
        "- [" + "1," * 2**19 + "]\n",
        "- " * 300_000 + "\n",
    ],
    ids=["merge", "aliases", "long", "deep"],
)
def test_a_registry_that_multiplies_itself_is_not_read(tmp_path, atlas, content):
    path = tmp_path / "models.yml"
    path.write_text(content)
    start = time.process_time()
    run = atlas("models", "--registry", path)
    assert (run.code, len(run.err) < 1000) == (2, True)
    assert time.process_time() - start < 5


def no_models(place):
    """Return a registry without models."""
    path = place / "models.yml"
    path.write_text("[]")
    return path


@pytest.mark.parametrize(
    "entry",
    ["title: !!bool maybe", "name: " + ":".join(["59"] * 3000), "sources: [{folder: " + "a" * 5000 + "}]"],
    ids=["truth", "number", "folder"],
)
def test_odd_yaml_in_the_registry_is_a_sentence(tmp_path, atlas, entry):
    whole = {"name": "tiny", "title": "Tiny", "sources": "[{folder: tiny}]", "frequency": "counts"}
    key = entry.partition(":")[0]
    lines = [f"{k}: {v}" for k, v in whole.items() if k != key] + [entry]
    (tmp_path / "models.yml").write_text("- " + "\n  ".join(lines))
    run = atlas("compute", "--all", "--skip-runs", "--results", tmp_path / "r", "--registry", tmp_path / "models.yml")
    assert run.code != 0
    assert run.err.strip()


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "vocab.txt", "token_counts.npy", "model.safetensors"]
)
def test_a_pipe_in_a_models_folder_is_not_waited_for(tmp_path, store, one_finding, name):
    folder = write_checkpoint(tmp_path / "tiny")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with suppress(InputError):
        compute_model(model(folder), Places(), store)


def test_sizes_are_asked_of_files_that_can_be_had(tmp_path):
    with pytest.raises(InputError, match="can't be read"):
        sources.check_size(tmp_path / "absent")
    assert files.LARGEST_TEXT > 40 * 2**20  # Gemma's tokenizer has 34 MB


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i8', 'fortran_order': False, 'shape': (9223372036854775808,), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<i8'",
        "(((((",
    ],
)
def test_damaged_counts_are_a_sentence(tmp_path, header):
    text = header.ljust(117) + "\n"
    path = tmp_path / "token_counts.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(32))
    with pytest.raises(InputError, match="The counts"):
        read_counts(path, 4)


def test_counts_whose_name_is_no_utf8_are_named_all_the_same(tmp_path):
    path = tmp_path / os.fsdecode(b"counts-\xff\x1b[31m.npy")
    np.save(path, np.arange(4))
    found = token_frequencies(in_folder(tmp_path), "index", None, 4, path)
    assert (
        found[0].label
        == "token counts of a corpus (counts-\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[31m.npy)"
    )
    json.dumps(found[0].label).encode()


def test_a_damaged_tokenizer_leaves_nothing_half_computed(tmp_path, store):
    folder = write_checkpoint(tmp_path / "tiny")
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(InputError, match="tokenizer"):
        compute_model(model(folder), Places(), store)
    assert store.names() == []


# Words


@pytest.mark.parametrize("field", ["notes", "licence"])
@pytest.mark.parametrize("mark", ["\u202e", "\x1b[31m", "\u2066", "\x07"])
def test_marks_that_cannot_be_seen_are_refused_in_the_registry(tmp_path, field, mark):
    entry = {"name": "a", "title": "A", "sources": [{"folder": "a"}], field: f"fine{mark}not"}
    (tmp_path / "models.yml").write_text(yaml.safe_dump([entry]))
    with pytest.raises(InputError, match="characters that can't be seen"):
        load_registry(tmp_path / "models.yml")


def store_with(tmp_path, store, **changed):
    """Compute a model, and change what is stored of it as if it had been stored so."""
    compute_model(model(write_checkpoint(tmp_path / "tiny")), Places(), store)
    path = store.root / "tiny" / "model.json"
    content = {**json.loads(path.read_bytes()), **changed}
    del content["sha256"]
    path.write_text(as_json({**content, "sha256": content_digest(content)}))


@pytest.mark.parametrize("title", ["<script>alert(1)</script>", "a\u202eb", "\x1b]0;x\x07"])
def test_a_stored_title_passes_the_gate_of_the_registry(tmp_path, store, one_finding, title):
    store_with(tmp_path, store, title=title)
    with pytest.raises(InputError, match="title"):
        store.model("tiny")


def test_other_stored_texts_lose_what_cannot_be_seen(tmp_path, store, one_finding):
    store_with(tmp_path, store, notes="up\u202edown\x1b[2J")
    assert store.model("tiny").notes == "up\N{REPLACEMENT CHARACTER}down\N{REPLACEMENT CHARACTER}[2J"


# Locks

HOLDING = """
import sys, time
from pathlib import Path
from generators.compute.results import Store
with Store(Path(sys.argv[1])).locked("tiny"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def held(store):
    """Have another process hold the lock of a model's results."""
    process = subprocess.Popen([sys.executable, "-c", HOLDING, str(store.root)], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.wait()


def test_who_holds_the_lock_is_said_and_the_wait_ends(held, store, tmp_path, one_finding):
    store.wait = 0.2
    reported = []
    began = time.monotonic()
    with pytest.raises(AtlasError, match=rf"process {held.pid}, since .* 0\.2 seconds of waiting were not enough"):
        compute_model(model(write_checkpoint(tmp_path / "tiny")), Places(), store, Display(reported.append))
    assert time.monotonic() - began < 20
    assert any(f"process {held.pid}" in line for line in reported)


def test_a_killed_process_frees_the_lock_whatever_it_left(held, store, tmp_path, one_finding):
    held.kill()
    held.wait()
    store.wait = 0
    assert (store.root / "tiny" / HOLDER).is_file()
    assert compute_model(model(write_checkpoint(tmp_path / "tiny")), Places(), store).computed == ("toy",)
    assert not (store.root / "tiny" / HOLDER).exists()


def test_where_everything_is_stored_no_lock_is_needed(store, tmp_path, one_finding, monkeypatch):
    folder = write_checkpoint(tmp_path / "tiny")
    compute_model(model(folder), Places(), store)

    def no_lock(*_):
        raise AssertionError("a lock was taken")

    monkeypatch.setattr(Store, "locked", no_lock)
    assert compute_model(model(folder), Places(), store).stored == ("toy",)
    (store.root / "tiny" / ".toy.json.123.tmp").write_text("half")
    with pytest.raises(AssertionError, match="a lock was taken"):
        compute_model(model(folder), Places(), store)
