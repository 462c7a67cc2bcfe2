"""Results survive what happens to disks and processes, and whatever isn't what was stored is found."""

import errno
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from generators.base.display import Display
from generators.base.errors import AtlasError, InputError
from generators.base.plain import content_digest, plain
from generators.checkpoint.sources import Places
from generators.compute.judged import judged_model
from generators.compute.records import (
    HYPHEN_AS_MINUS,
    ModelRecord,
    SourceRecord,
    StoredFinding,
    TensorEntry,
    json_schema,
    table_records,
    tables_of,
)
from generators.compute.results import MODEL, Store
from generators.compute.schedule import compute_model
from generators.compute.verify import verify
from generators.findings.measured import Measurements, Table
from tests.checkpoints import write_checkpoint
from tests.compute.harness import contents, model_in
from tests.toy_findings import positive, toy

OLD, NEW = content_digest("old"), content_digest("new")
MEASURED = Measurements(
    {"share": 0.25, "counts": [1, 2], "circle": None, "nested": {"holds": True}},
    {"rows": Table("One row is a row", ("name", "value"), (("a", 1.5), ("b", None)))},
    {"curve": np.arange(6, dtype=np.float32).reshape(2, 3), "ids": np.array([3, 1], np.int32)},
)
SHAPE = {"n_layer": 2, "n_head": 2, "d_model": 24, "n_ctx": 64, "vocab_size": 50, "causal": True, "post_norm": False}
PLACE = SourceRecord(kind="folder", place="tiny")
TINY = ModelRecord(name="tiny", title="Tiny", family="gpt2", source=PLACE, **SHAPE)


def record_of(key: str, finding: str = "toy", version: int | None = 1) -> StoredFinding:
    entry = TensorEntry(name="wpe", shape=(64, 24), dtype="F32", sha256=OLD)
    return StoredFinding(
        finding=finding,
        status="computed",
        key=key,
        version=version,
        computed_on="2026-01-02",
        tensors={"position_embedding": entry},
        metrics=plain(MEASURED.metrics),
        tables=table_records(MEASURED),
    )


@pytest.fixture
def stored(store) -> Store:
    store.save_model(TINY)
    store.save_finding("tiny", record_of(OLD), MEASURED.arrays)
    return store


def same_arrays(found, expected):
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, strict=True)


ARRAYS = f"toy.{OLD[:16]}.npz"


# Round trip


def test_what_is_saved_is_loaded_by_the_names_of_models(stored):
    loaded = stored.finding("tiny", "toy")
    assert loaded.model == "tiny"
    assert loaded.model_copy(update={"arrays_sha256": None, "model": None}) == record_of(OLD)
    assert stored.model("tiny") == TINY
    same_arrays(stored.arrays("tiny", loaded), MEASURED.arrays)
    assert loaded.metrics == MEASURED.metrics
    assert tables_of(loaded)["rows"].rows == (("a", 1.5), ("b", None))
    (stored.root / "empty").mkdir()
    (stored.root / "Not a Slug").mkdir()
    (stored.root / "Not a Slug" / MODEL).write_text("{}")
    assert stored.names() == ["tiny"]
    assert Store(stored.root / "none").names() == []


def test_the_same_results_are_the_same_bytes_and_no_other_is_touched(stored):
    before = contents(stored.root / "tiny")
    assert set(before) == {MODEL, "toy.json", ARRAYS}
    stored.save_finding("tiny", record_of(OLD), MEASURED.arrays)
    assert contents(stored.root / "tiny") == before
    stored.save_finding("tiny", record_of(NEW, "other"), MEASURED.arrays)
    after = contents(stored.root / "tiny")
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"other.json", f"other.{NEW[:16]}.npz"}


def test_arrays_of_what_was_replaced_go(stored):
    for arrays in ({"more": np.ones(3)}, {}):
        stored.save_finding("tiny", record_of(NEW), arrays)
        assert not (stored.root / "tiny" / ARRAYS).exists()
        same_arrays(stored.arrays("tiny", stored.finding("tiny", "toy")), arrays)
    assert set(contents(stored.root / "tiny")) == {MODEL, "toy.json"}


def test_nothing_is_loaded_where_nothing_is(store):
    assert store.model("tiny") is None
    assert store.finding("tiny", "toy") is None
    assert list(verify(store)) == []
    with pytest.raises(InputError, match="can't be read"):
        store.arrays("tiny", record_of(OLD).model_copy(update={"arrays_sha256": OLD}))


@pytest.mark.parametrize("name", ["../tiny", "", "a/b", "<b>", "/etc", "..", "tiny\n"])
def test_only_slugs_name_folders(store, name):
    for use in (
        store.model,
        lambda name: store.finding(name, "toy"),
        lambda name: store.save_finding(name, record_of(OLD), {}),
        lambda name: store.locked(name).__enter__(),
    ):
        with pytest.raises(InputError, match="can't name a folder of results"):
            use(name)
    assert not store.root.exists()


# Writing is all or nothing


def full_at_call(number, real):
    calls = []

    def sometimes(*given, **named):
        calls.append(given)
        if len(calls) == number:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*given, **named)

    return sometimes


FAILING = {
    "arrays": (Path, "write_bytes", 1),
    "json": (Path, "write_bytes", 2),
    "sync-arrays": (os, "fsync", 1),
    "sync-json": (os, "fsync", 3),
    "replace-arrays": (Path, "replace", 1),
    "replace-json": (Path, "replace", 2),
    "folder": (Path, "mkdir", 1),
}


@pytest.mark.parametrize(("place", "name", "number"), FAILING.values(), ids=FAILING)
def test_a_full_disk_leaves_the_old_results_and_no_rubbish(stored, monkeypatch, place, name, number):
    with monkeypatch.context() as patched:
        patched.setattr(place, name, full_at_call(number, getattr(place, name)))
        with pytest.raises(AtlasError, match=r"can't be written to .*tiny: .*No space left on device"):
            stored.save_finding("tiny", record_of(NEW), {"more": np.ones(3)})
    loaded = stored.finding("tiny", "toy")
    assert loaded.key == OLD
    same_arrays(stored.arrays("tiny", loaded), MEASURED.arrays)
    assert not list((stored.root / "tiny").glob(".*.tmp"))
    assert list(verify(stored)) == []


def test_what_a_killed_run_left_is_swept_by_the_next(stored):
    rubbish = stored.root / "tiny" / f".{ARRAYS}.4711.tmp"
    rubbish.write_bytes(b"half")
    with stored.locked("tiny"):
        assert not rubbish.exists()


def test_what_is_replaced_while_it_is_read_is_read_anew(stored, monkeypatch):
    finding = Store.finding

    def replaced_after(self, name, of):
        record = finding(self, name, of)
        monkeypatch.setattr(Store, "finding", finding)
        stored.save_finding("tiny", record_of(NEW), {"curve": np.ones(3, np.float32)})
        return record

    monkeypatch.setattr(Store, "finding", replaced_after)
    record, arrays = stored.load("tiny", "toy")
    assert record.key == NEW
    same_arrays(arrays, {"curve": np.ones(3, np.float32)})
    next((stored.root / "tiny").glob("*.npz")).unlink()
    with pytest.raises(InputError, match="can't be read"):
        stored.load("tiny", "toy")
    assert stored.load("tiny", "other") is None


# Damage is found


def damage(path: Path, harm: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if harm != "absent":
        flipped = content[:-40] + bytes([content[-40] ^ 1]) + content[-39:]
        harmed = {"truncated": content[: len(content) // 2], "text": b"hello", "empty": b"", "bit": flipped}
        path.write_bytes(harmed[harm])


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", "[" * 100_000, '{"schema_version": 3}', "\x00", '{"key": NaN}', "\udcff"],
    ids=["empty", "open", "list", "null", "object", "deep", "other-version", "nul", "nan", "not-utf-8"],
)
@pytest.mark.parametrize("name", ["toy.json", MODEL])
def test_damaged_json_is_a_sentence(stored, text, name):
    (stored.root / "tiny" / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match="are damaged"):
        stored.model("tiny") if name == MODEL else stored.finding("tiny", "toy")
    assert [model for model, _ in verify(stored)] == ["tiny"]


def test_results_under_another_name_are_found(stored):
    folder = stored.root / "tiny"
    stored.save_model(TINY.model_copy(update={"name": "other"}))
    shutil.copy(folder / "toy.json", stored.root / "other")
    shutil.copy(folder / "toy.json", folder / "other.json")
    (first, of_model), (second, of_finding) = verify(stored)
    assert (first, "toy.json are those of 'tiny'" in of_model) == ("other", True)
    assert (second, "other.json are of another finding" in of_finding) == ("tiny", True)
    folder.rename(stored.root / "small")
    with pytest.raises(InputError, match="are those of 'tiny'"):
        stored.model("small")


# Locks


def test_the_lock_keeps_others_out(store):
    def save():
        with store.locked("tiny"):
            store.save_model(TINY)
            store.save_finding("tiny", record_of(OLD), MEASURED.arrays)

    with ThreadPoolExecutor(1) as other:
        with store.locked("tiny"):
            saved = other.submit(save)
            with pytest.raises(TimeoutError):
                saved.result(timeout=0.2)
        saved.result(timeout=20)
    same_arrays(store.arrays("tiny", store.finding("tiny", "toy")), MEASURED.arrays)
    with store.locked("other"):
        pass
    assert store.names() == ["tiny"]
    (store.root / "file").write_text("no folder")
    with pytest.raises(AtlasError, match="can't be written"), store.locked("file"):
        pass


# JSON


def strict_json(text: str):
    return json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))


def run(folder: Path, store: Store, findings=None):
    """Compute a checkpoint as the model `tiny`, and return the outcome and the lines it reported."""
    lines: list[str] = []
    return compute_model(model_in(folder), Places(), store, Display(lines.append), findings), lines


def test_no_nan_reaches_a_stored_result(store, tmp_path):
    array = np.array([[1.0, np.nan], [np.inf, 2.0]])
    value = {"float": np.float32(0.5), "int": np.int64(3), "bool": np.bool_(True), "array": array, 3: np.nan}
    table = Table("t", ("x",), ((float("-inf"),),))
    bad = Measurements(value | {"tuple": (1, (2, -np.inf))}, {"t": table}, {"a": np.array([np.nan])})
    run(write_checkpoint(tmp_path / "tiny"), store, [toy("odd", measure=lambda inputs: bad)])
    found = strict_json((store.root / "tiny" / "odd.json").read_text("utf-8"))
    expected = {"float": 0.5, "int": 3, "bool": True, "array": [[1.0, None], [None, 2.0]], "3": None}
    assert found["metrics"] == expected | {"tuple": [1, [2, None]]}
    assert found["tables"]["t"]["rows"] == [[None]]


@pytest.mark.parametrize("family", ["gpt2", "openai-gpt", "bert"])
def test_what_is_published_is_what_its_schema_says(store, tmp_path, family):
    run(write_checkpoint(tmp_path / "tiny", family), store)
    document = strict_json(judged_model(store, "tiny").published().model_dump_json())
    jsonschema.Draft202012Validator.check_schema(json_schema())
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.validate(document)
    assert document["schema_version"] == 2
    for inner, last, wrong in (
        (document["claims"][0], "verdict", "maybe"),
        (document["claims"][0], "value", "0.5"),
        (document["findings"]["helix"], "status", "done"),
        (document["model"], "name", "../x"),
        (document["tensors"]["position_embedding"], "sha256", "abc"),
        (document, "schema_version", 1),
    ):
        right, inner[last] = inner[last], wrong
        assert not validator.is_valid(document), last
        inner[last] = right


# Damage is repaired by computing again


THREE = [toy(name, rules=(positive(),) if name == "first" else ()) for name in ("first", "second", "third")]


@pytest.fixture
def computed(store, tmp_path):
    """Return a checkpoint's folder whose three toy findings stand in the store."""
    folder = write_checkpoint(tmp_path / "tiny")
    run(folder, store, THREE)
    return folder


@pytest.mark.parametrize("harm", ["truncated", "text", "empty", "absent", "bit"])
@pytest.mark.parametrize("ending", ["json", "npz"])
@pytest.mark.parametrize("name", ["first", "third"])
def test_a_damaged_result_is_reported_and_computed_again_and_costs_no_other(store, computed, harm, ending, name):
    (path,) = (store.root / "tiny").glob(f"{name}.{'json' if ending == 'json' else '*.npz'}")
    before = path.read_bytes()
    damage(path, harm)
    outcome, lines = run(computed, store, THREE)
    assert outcome.computed == (name,)
    if (ending, harm) != ("json", "absent"):  # without its JSON a finding is merely not known
        assert any(line.startswith(f"tiny: {name} is computed again: The stored") for line in lines)
    assert path.read_bytes() == before
    assert list(verify(store)) == []


def test_a_result_edited_by_hand_is_not_judged(store, computed):
    path = store.root / "tiny" / "first.json"
    document = json.loads(path.read_text())
    document["metrics"]["sum"] = 1e9
    path.write_text(json.dumps(document))
    judged = judged_model(store, "tiny", THREE)
    assert [claim.verdict for claim in judged.findings[0].claims] == ["untested"]
    assert len(judged.damaged) == 1
    assert judged.findings[1].record.status == "computed"


@pytest.mark.parametrize(
    ("said", "published"),
    [("-0.75 (-1 of 3)", "−0.75 (−1 of 3)"), ("GPT-2, 3-4, 1e-05, a - 2, [0]-1", "GPT-2, 3-4, 1e-05, a - 2, [0]-1")],
)
def test_negative_numbers_have_a_minus(said, published):
    assert HYPHEN_AS_MINUS.sub("−", said) == published
