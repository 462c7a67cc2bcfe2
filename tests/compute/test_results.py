"""Results survive what happens to disks and processes, are valid JSON, and are keyed by what they came from."""

import errno
import json
import os
import threading
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from generators.compute import pipeline
from generators.base.errors import AtlasError, InputError
from generators.findings.finding import Claim, Result, Table
from generators.compute.pipeline import Places, compute_model, stored_result
from generators.checkpoint.registry import FolderSource, Model
from generators.compute.results import (
    ARRAYS,
    FINDINGS,
    FindingRecord,
    ModelFindings,
    ModelRecord,
    SourceRecord,
    Store,
    TensorEntry,
    as_claim_record,
    as_record,
    as_result,
    content_key,
    json_schema,
    plain,
)
from tests.checkpoints import tensors_of, write_checkpoint
from tests.toy_findings import toy

OLD, NEW = content_key("old"), content_key("new")
RESULT = Result(
    {"share": 0.25, "counts": [1, 2], "circle": None, "nested": {"holds": True}},
    {"rows": Table("One row is a row", ("name", "value"), (("a", 1.5), ("b", None)))},
    {"curve": np.arange(6, dtype=np.float32).reshape(2, 3), "ids": np.array([3, 1], np.int32)},
)
CLAIM = Claim("c", "toy", "It is so.", "holds", 0.25, 0.2, 0.1, "share", "It is 0.25.")


def findings_of(*keys: str, name: str = "tiny") -> ModelFindings:
    """Return findings with one computed finding per key, called toy0, toy1, ..."""
    return ModelFindings(
        model=ModelRecord(
            name=name,
            title="Tiny",
            family="gpt2",
            n_layer=2,
            n_head=2,
            d_model=24,
            n_ctx=64,
            vocab_size=50,
            causal=True,
            post_norm=False,
            source=SourceRecord(kind="folder", place="tiny"),
        ),
        tensors={
            "position_embedding": TensorEntry(name="wpe.weight", shape=(64, 24), dtype="F32", sha256=content_key("P"))
        },
        findings={f"toy{i}": as_record(RESULT, 1, key, "2026-01-02") for i, key in enumerate(keys)},
        claims=[as_claim_record(CLAIM)],
    )


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")


@pytest.fixture
def stored(store) -> Store:
    """Return a store that holds the findings of the key OLD."""
    store.save(findings_of(OLD), {OLD: RESULT.arrays})
    return store


def same_arrays(found, expected):
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, strict=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Round trip


def test_what_is_saved_is_loaded(stored):
    loaded = stored.load("tiny")
    assert loaded == findings_of(OLD)
    same_arrays(stored.arrays("tiny", OLD), RESULT.arrays)
    again = as_result(loaded.findings["toy0"], stored.arrays("tiny", OLD))
    assert again.metrics == RESULT.metrics
    assert again.tables["rows"].rows == (("a", 1.5), ("b", None))
    assert loaded.verdict_of("c").value == 0.25
    assert loaded.verdict_of("d") is None


def test_the_same_findings_are_the_same_bytes(stored):
    before = contents(stored.root / "tiny")
    stored.save(findings_of(OLD), {OLD: RESULT.arrays})
    assert contents(stored.root / "tiny") == before
    assert set(before) == {FINDINGS, ARRAYS}


def test_names_are_those_with_findings(stored):
    (stored.root / "empty").mkdir()
    (stored.root / "Not a Slug").mkdir()
    (stored.root / "Not a Slug" / FINDINGS).write_text("{}")
    assert stored.names() == ["tiny"]
    assert Store(stored.root / "none").names() == []


def test_nothing_is_loaded_where_nothing_is(store):
    assert store.load("tiny") is None
    with pytest.raises(InputError, match="can't be read"):
        store.arrays("tiny", OLD)


@pytest.mark.parametrize("name", ["../tiny", "", "a/b", "<b>", "/etc", "..", "tiny\n"])
def test_only_slugs_name_folders(store, name):
    for use in (
        store.load,
        lambda name: store.arrays(name, OLD),
        store.prune,
        lambda name: store.locked(name).__enter__(),
    ):
        with pytest.raises(InputError, match="can't name a folder of results"):
            use(name)
    assert not store.root.exists()


# Writing is all or nothing


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def full_after_some_bytes(file, **_):
    file.write(b"PK half an archive")
    full()


def full_at_call(number, real):
    calls = []

    def sometimes(*arguments):
        calls.append(arguments)
        return full() if len(calls) == number else real(*arguments)

    return sometimes


@pytest.mark.parametrize(
    "failing",
    [
        (np, "savez_compressed", lambda real: full_after_some_bytes),
        (os, "fsync", lambda real: full_at_call(1, real)),
        (os, "fsync", lambda real: full_at_call(2, real)),
        (Path, "replace", lambda real: full_at_call(1, real)),
        (Path, "replace", lambda real: full_at_call(2, real)),
        (Path, "write_text", lambda real: full),
        (Path, "mkdir", lambda real: full),
    ],
    ids=["arrays", "sync-arrays", "sync-findings", "replace-arrays", "replace-findings", "findings", "folder"],
)
def test_a_full_disk_leaves_the_old_results_and_no_rubbish(stored, monkeypatch, failing):
    place, name, failure = failing
    with monkeypatch.context() as patched:
        patched.setattr(place, name, failure(getattr(place, name)))
        with pytest.raises(AtlasError, match=r"Results can't be written to .*tiny: .*No space left on device"):
            stored.save(findings_of(OLD, NEW), {NEW: {"more": np.ones(3)}})
    assert stored.load("tiny") == findings_of(OLD)
    same_arrays(stored.arrays("tiny", OLD), RESULT.arrays)
    assert set(contents(stored.root / "tiny")) == {FINDINGS, ARRAYS}


def test_a_full_disk_while_pruning_is_a_sentence(stored, monkeypatch):
    stored.save(findings_of(NEW), {NEW: RESULT.arrays})
    before = contents(stored.root / "tiny")
    monkeypatch.setattr(np, "savez_compressed", full_after_some_bytes)
    with pytest.raises(AtlasError, match="No space left on device"):
        stored.prune("tiny")
    assert contents(stored.root / "tiny") == before


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "results").write_text("a file")
    store = Store(tmp_path / "results")
    with pytest.raises(AtlasError, match="can't be written"):
        store.save(findings_of(OLD), {})
    with pytest.raises(AtlasError, match="can't be written"), store.locked("tiny"):
        pass


def test_what_a_killed_run_left_is_swept_by_the_next(stored):
    rubbish = stored.root / "tiny" / f".{ARRAYS}.4711.tmp"
    rubbish.write_bytes(b"half")
    with stored.locked("tiny"):
        assert not rubbish.exists()


# Arrays


def test_arrays_of_old_and_new_results_stand_side_by_side_until_pruned(stored):
    stored.save(findings_of(NEW), {NEW: {"more": np.ones(3)}})
    same_arrays(stored.arrays("tiny", OLD), RESULT.arrays)
    same_arrays(stored.arrays("tiny", NEW), {"more": np.ones(3)})
    stored.prune("tiny")
    same_arrays(stored.arrays("tiny", NEW), {"more": np.ones(3)})
    with pytest.raises(InputError, match="lack those of the key"):
        stored.arrays("tiny", OLD)


def test_pruning_what_is_all_needed_writes_nothing(stored, monkeypatch):
    monkeypatch.setattr(np, "savez_compressed", full)
    stored.prune("tiny")


@pytest.mark.parametrize("harm", ["truncated", "text", "empty", "absent", "folder"])
def test_damaged_arrays_are_a_sentence(stored, harm):
    path = stored.root / "tiny" / ARRAYS
    damage(path, harm)
    with pytest.raises(InputError, match=r"The stored arrays .*arrays\.npz can't be read"):
        stored.arrays("tiny", OLD)


def test_arrays_are_never_unpickled(stored):
    np.savez(stored.root / "tiny" / ARRAYS, **{f"{OLD[:16]}/curve": np.array([{"a": 1}], object)})
    with pytest.raises(InputError, match="allow_pickle=False"):
        stored.arrays("tiny", OLD)


def damage(path: Path, harm: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if harm == "folder":
        path.mkdir()
    elif harm != "absent":
        path.write_bytes({"truncated": content[: len(content) // 2], "text": b"hello", "empty": b""}[harm])


# Locks


def test_the_lock_keeps_others_out_and_leaves_no_folder_behind(store):
    order = []
    inside, may_leave = threading.Event(), threading.Event()

    def first():
        with store.locked("tiny"):
            inside.set()
            may_leave.wait()
            order.append("first leaves, with nothing saved")

    def second():
        inside.wait()
        may_leave.set()
        with store.locked("tiny"):
            order.append("second saves")
            store.save(findings_of(OLD), {OLD: RESULT.arrays})

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert order == ["first leaves, with nothing saved", "second saves"]
    assert store.load("tiny") == findings_of(OLD)
    same_arrays(store.arrays("tiny", OLD), RESULT.arrays)
    with store.locked("other"):
        pass
    assert store.names() == ["tiny"]
    assert not (store.root / "other").exists()


def test_the_folder_goes_while_the_lock_is_held(store, monkeypatch):
    """Were it to go after, it would take with it what the next process has begun to write."""
    from filelock import FileLock, Timeout

    from generators.compute import results

    held = []
    remove = results.shutil.rmtree

    def watched(folder, **options):
        with pytest.raises(Timeout):
            FileLock(folder / ".lock", timeout=0).acquire()
        held.append(folder)
        remove(folder, **options)

    monkeypatch.setattr(results.shutil, "rmtree", watched)
    with store.locked("tiny"):
        pass
    assert held == [store.root / "tiny"]


# JSON


def test_plain_makes_json_of_what_findings_hold():
    value = {
        "numpy": np.float32(0.5),
        "int": np.int64(3),
        "bool": np.bool_(True),
        "array": np.array([[1.0, np.nan], [np.inf, 2.0]]),
        "tuple": (1, (2, -np.inf)),
        3: float("nan"),
    }
    assert plain(value) == {
        "numpy": 0.5,
        "int": 3,
        "bool": True,
        "array": [[1.0, None], [None, 2.0]],
        "tuple": [1, [2, None]],
        "3": None,
    }


def strict_json(text: str):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_no_nan_reaches_findings_json(store, tmp_path, monkeypatch):
    bad = Result(
        {"nan": float("nan"), "list": [np.inf, 1.0], "array": np.array([np.nan])},
        {"t": Table("t", ("x",), ((float("-inf"),),))},
        {"a": np.array([np.nan])},
    )
    finding = toy("odd", compute=lambda weights, architecture: bad)
    monkeypatch.setattr(pipeline, "FINDINGS", (finding,))
    run(write_checkpoint(tmp_path / "tiny"), store)
    found = strict_json((store.root / "tiny" / FINDINGS).read_text("utf-8"))["findings"]["odd"]
    assert found["metrics"] == {"nan": None, "list": [None, 1.0], "array": [None]}
    assert found["tables"]["t"]["rows"] == [[None]]


@pytest.mark.parametrize("family", ["gpt2", "openai-gpt", "bert"])
def test_findings_json_is_what_its_schema_says(store, tmp_path, family):
    run(write_checkpoint(tmp_path / "tiny", family), store)
    document = strict_json((store.root / "tiny" / FINDINGS).read_text("utf-8"))
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(document)
    assert document["schema_version"] == 1
    assert document["claims"]
    for place, wrong in (
        (("claims", 0, "verdict"), "maybe"),
        (("claims", 0, "value"), "0.5"),
        (("findings", "helix", "status"), "done"),
        (("model", "name"), "../x"),
        (("tensors", "position_embedding", "sha256"), "abc"),
        (("schema_version",), 2),
    ):
        assert not validator.is_valid(altered(document, place, wrong)), place


def altered(document, place, value):
    copy = json.loads(json.dumps(document))
    *path, last = place
    inner = copy
    for step in path:
        inner = inner[step]
    assert last in inner or isinstance(last, int)
    inner[last] = value
    return copy


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", "[" * 100_000, '{"schema_version": 2}', "\x00", '{"model": NaN}'],
    ids=["empty", "open", "list", "null", "object", "deep", "other-version", "nul", "nan"],
)
def test_damaged_findings_are_a_sentence(stored, text):
    (stored.root / "tiny" / FINDINGS).write_text(text)
    with pytest.raises(InputError, match=r"are damaged .*; delete the folder to compute them anew"):
        stored.load("tiny")


def test_findings_that_cannot_be_read_are_a_sentence(stored):
    (stored.root / "tiny" / FINDINGS).write_bytes(b'{"schema_version": "\xff"}')
    with pytest.raises(InputError, match="can't be read"):
        stored.load("tiny")
    damage(stored.root / "tiny" / FINDINGS, "folder")
    with pytest.raises(InputError, match="can't be read"):
        stored.load("tiny")


# Damage is repaired by computing again


def run(folder: Path, store: Store, **model):
    """Compute a checkpoint as the model `tiny`, and return the outcome and the lines it reported."""
    lines: list[str] = []
    tiny = Model(name="tiny", title="Tiny", sources=(FolderSource(folder=folder),), **model)
    return compute_model(tiny, Places(), store, lines.append), lines


@pytest.fixture
def computed(store, tmp_path, monkeypatch):
    """Return a checkpoint's folder whose three toy findings stand in the store."""
    monkeypatch.setattr(pipeline, "FINDINGS", tuple(toy(name) for name in ("first", "second", "third")))
    folder = write_checkpoint(tmp_path / "tiny")
    run(folder, store)
    return folder


@pytest.mark.parametrize("harm", ["truncated", "text", "empty"])
def test_damaged_findings_are_reported_and_computed_again(store, computed, harm):
    before = store.load("tiny")
    damage(store.root / "tiny" / FINDINGS, harm)
    outcome, lines = run(computed, store)
    assert outcome.computed == ("first", "second", "third")
    assert any(line.startswith("tiny: The stored results") and "are damaged" in line for line in lines)
    assert store.load("tiny") == before


@pytest.mark.parametrize("harm", ["truncated", "text", "empty", "absent"])
def test_damaged_arrays_are_reported_and_computed_again(store, computed, harm):
    damage(store.root / "tiny" / ARRAYS, harm)
    outcome, lines = run(computed, store)
    assert outcome.computed == ("first", "second", "third")
    assert any(line.startswith("tiny: first is computed again: The stored arrays") for line in lines)
    all_readable(store)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_one_damaged_array_costs_no_other(store, computed, number):
    """A bad sector in one finding's arrays: that finding is computed again, the others keep theirs."""
    name = ("first", "second", "third")[number]
    spoil_member(store.root / "tiny" / ARRAYS, store.load("tiny").findings[name].key[:16])
    outcome, _ = run(computed, store)
    assert outcome.computed == (name,)
    all_readable(store)


def spoil_member(path: Path, prefix: str) -> None:
    """Change the last byte of the data of the zip member whose name begins with `prefix`."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        info = next(info for info in archive.infolist() if info.filename.startswith(prefix))
        content = bytearray(path.read_bytes())
        extra = int.from_bytes(content[info.header_offset + 28 : info.header_offset + 30], "little")
        end = info.header_offset + 30 + len(info.filename) + extra + info.compress_size
    content[end - 1] ^= 0xFF
    path.write_bytes(content)


def all_readable(store: Store) -> None:
    findings = store.load("tiny")
    assert findings.findings
    for record in findings.findings.values():
        assert record.status == "computed"
        assert stored_result(store, "tiny", record).arrays


def test_stored_metrics_that_claims_cannot_be_made_from_are_computed_again(store, tmp_path):
    folder = write_checkpoint(tmp_path / "tiny")
    run(folder, store)
    before = store.load("tiny")
    path = store.root / "tiny" / FINDINGS
    document = json.loads(path.read_text())
    document["findings"]["helix"]["metrics"] = {}
    path.write_text(json.dumps(document))
    outcome, lines = run(folder, store)
    assert outcome.computed == ("helix",)
    assert any(line.startswith("tiny: helix is computed again") for line in lines)
    assert store.load("tiny") == before


def test_a_full_disk_costs_no_result_that_stands(store, computed, monkeypatch):
    before = store.load("tiny")
    changed = write_checkpoint(computed, seed=1)
    monkeypatch.setattr(np, "savez_compressed", full_after_some_bytes)
    with pytest.raises(AtlasError, match="No space left on device"):
        run(changed, store)
    assert store.load("tiny") == before
    all_readable(store)


# Keys


def key_of(tmp_path, store, monkeypatch, finding=None, model=None, **checkpoint) -> FindingRecord:
    """Compute a finding on a fresh checkpoint, and return its key."""
    monkeypatch.setattr(pipeline, "FINDINGS", (finding or READER,))
    folder = write_checkpoint(tmp_path / f"checkpoint-{len(list(tmp_path.iterdir()))}", **checkpoint)
    run(folder, store, **(model or {}))
    return store.load("tiny").findings["reader"].key


READER = toy("reader", uses=("blocks.*.ln1.gain",), parameters={"a": 1})
GAIN = tensors_of("gpt2")["h.1.ln_1.weight"]
ONE_BIT_MORE = np.concatenate([np.nextafter(GAIN[:1], 2), GAIN[1:]]).astype(np.float32)


@pytest.mark.parametrize(
    "change",
    [
        {"changed": {"h.1.ln_1.weight": ONE_BIT_MORE}},
        {"seed": 1},
        {"dtype": "float64"},
        {"without": ("h.1.ln_1.weight",)},
        {"config": {"layer_norm_epsilon": 1e-6}},
        {"config": {"n_head": 3}},
        {"config": {"vocab_size": 51}},
        {"finding": toy("reader", uses=("blocks.*.ln1.gain",), parameters={"a": 1}, version=2)},
        {"finding": toy("reader", uses=("blocks.*.ln1.gain",), parameters={"a": 2})},
        {"finding": toy("reader", uses=("blocks.*.ln1.gain",), parameters={"b": 1})},
        {"finding": toy("reader", uses=("blocks.*.ln1.bias",), parameters={"a": 1})},
    ],
    ids=lambda change: "-".join(change) + "-" + str(sum(map(ord, str(change)))),
)
def test_the_key_changes_with_what_a_finding_is_computed_from(tmp_path, store, monkeypatch, change):
    assert key_of(tmp_path, store, monkeypatch) != key_of(tmp_path, store, monkeypatch, **change)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"prefix": "transformer."},
        {"shards": 3},
        {"without": ("wte.weight", "h.0.mlp.c_fc.weight")},
        {"changed": {"wte.weight": np.zeros((50, 24), np.float32)}},
        {"config": {"resid_pdrop": 0.1, "architectures": ["GPT2LMHeadModel"]}},
        {"model": {"licence": "MIT", "notes": "Other words."}},
    ],
    ids=["nothing", "prefix", "shards", "absent", "unread", "config", "words"],
)
def test_the_key_stays_with_what_it_is_not_computed_from(tmp_path, store, monkeypatch, change):
    assert key_of(tmp_path, store, monkeypatch) == key_of(tmp_path, store, monkeypatch, **change)
