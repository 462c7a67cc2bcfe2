"""Stored results that somebody damaged or forged: each is named in one sentence, and the others are as they were."""

import hashlib
import io
import json
import os
import zipfile

import numpy as np
import pytest

from generators.base import npz as npz_files
from generators.base.errors import AtlasError, InputError
from generators.base.files import read_limited
from generators.base.plain import as_json, content_digest
from generators.checkpoint.registry import load_registry
from generators.compute.results import Store
from generators.compute.verify import verify
from generators.site import quality_reports
from tests.compute.test_results import record_of

ARRAYS = {"a": np.arange(4, dtype=np.float32), "name": np.array(["x", "yy"])}


@pytest.fixture
def stored(store) -> Store:
    """Return a store with a finding that has arrays, and a sound one beside it."""
    store.save_finding("tiny", record_of("0" * 64), ARRAYS)
    store.save_finding("tiny", record_of("1" * 64, "other"), ARRAYS)
    return store


def forged_arrays(store: Store, data: bytes) -> None:
    """Put other arrays in the place of a finding's, with a digest that fits."""
    (path,) = store.folder("tiny").glob("toy.*.npz")
    path.write_bytes(data)
    forged(store, arrays_sha256=hashlib.sha256(data).hexdigest())


def forged(store: Store, **changed: object) -> None:
    path = store.folder("tiny") / "toy.json"
    content = {**json.loads(path.read_bytes()), **changed}
    del content["sha256"]
    path.write_text(as_json({**content, "sha256": content_digest(content)}))


def npz(member: bytes, *, kind: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as file:
        file.writestr("a.npy", member)
    return buffer.getvalue()


def header(shape: str, descr: str = "<f4") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def of_objects() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, a=np.array([{}, []], object))
    return buffer.getvalue()


def with_a_bad_crc() -> bytes:
    data = bytearray(npz(header("(4,)") + bytes(16)))
    data[data.index(b"\x93NUMPY") + 130] ^= 1
    return bytes(data)


HOSTILE = {
    "objects": of_objects,
    "no zip": lambda: b"no zip at all",
    "bad crc": with_a_bad_crc,
    "2^40 numbers": lambda: npz(header("(1099511627776,)") + bytes(16)),
    "2^40 numbers of no bytes": lambda: npz(header("(1099511627776,)", "<U0") + bytes(16)),
    "a negative shape": lambda: npz(header("(-1,)") + bytes(16)),
    "a bomb": lambda: npz(header(f"({2**20},)") + bytes(2**22), kind=zipfile.ZIP_DEFLATED),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_arrays_that_only_their_digest_vouches_for_are_a_sentence(stored, how, monkeypatch):
    monkeypatch.setattr(npz_files, "LARGEST_UNPACKED", 2**21)
    forged_arrays(stored, HOSTILE[how]())
    with pytest.raises(InputError, match="damaged"):
        stored.load("tiny", "toy")
    assert [name for name, _ in verify(stored)] == ["tiny", "tiny"]  # it says not of which model, too
    np.testing.assert_array_equal(stored.load("tiny", "other")[1]["a"], ARRAYS["a"])


@pytest.mark.parametrize("text", ['{"a": 1e400, "sha256": ""}', '{"a": NaN}', '{"a": -1e999}'])
def test_a_number_that_is_none_is_a_sentence(stored, text):
    (stored.folder("tiny") / "toy.json").write_text(text)
    with pytest.raises(InputError, match="damaged"):
        stored.finding("tiny", "toy")


def a_pipe(path):
    os.mkfifo(path)


def endless(path):
    path.symlink_to("/dev/zero")


def sparse(path):
    with path.open("wb") as file:
        file.truncate(20 * 2**30)


def a_folder(path):
    path.mkdir()


@pytest.mark.parametrize("name", ["model.json", "toy.json", "toy.0000000000000000.npz", ".settled", ".holder"])
@pytest.mark.parametrize("make", [a_pipe, endless, sparse, a_folder])
def test_what_is_no_file_is_never_read(stored, name, make):
    path = stored.folder("tiny") / name
    path.unlink(missing_ok=True)
    make(path)
    said = [sentence for _, sentence in verify(stored)]
    assert any(str(path) in sentence for sentence in said) or name.startswith(".")
    assert all("other" not in sentence for sentence in said)
    assert stored.up_to_date("tiny") is None
    stored.holder("tiny")
    stored.has_model("tiny")


def test_a_file_that_grows_too_large_is_not_read(tmp_path):
    (tmp_path / "a").write_bytes(bytes(11))
    assert read_limited(tmp_path / "a", 11) == bytes(11)
    with pytest.raises(OSError, match="at most"):
        read_limited(tmp_path / "a", 10)


def test_what_cannot_be_seen_is_replaced_in_cells_and_metrics(stored):
    table = {"title": "T", "columns": ["a"], "rows": [["up\u202edown"], [["\u2066"]], [3]]}
    forged(stored, tables={"t": table}, metrics={"a\u202e": {"b": ["\x1b[2J", 1.5]}})
    found = stored.finding("tiny", "toy")
    assert found.tables["t"].rows == (("up\ufffddown",), (["\ufffd"],), (3,))
    assert found.metrics == {"a\ufffd": {"b": ["\ufffd[2J", 1.5]}}


@pytest.mark.parametrize("day", ["2026-01-01\u202e", "<script>", "yesterday"])
def test_the_day_of_a_result_is_a_day(stored, day):
    forged(stored, computed_on=day)
    with pytest.raises(InputError, match="another version"):
        stored.finding("tiny", "toy")


def test_what_is_no_file_keeps_no_report_of_the_atlas_from_being_read(tmp_path):
    os.mkfifo(tmp_path / "fuzz.json")
    with pytest.raises(InputError, match="can't be read"):
        quality_reports.read(tmp_path, "fuzz")
    os.mkfifo(tmp_path / "models.yml")
    with pytest.raises(InputError, match="can't be read"):
        load_registry(tmp_path / "models.yml")


@pytest.mark.parametrize("harm", ["dangling", "a file"])
def test_a_link_that_leads_nowhere_is_a_sentence(tmp_path, harm):
    """It was neither there nor could it be made, and both were tried for ever."""
    place = tmp_path / "results"
    place.symlink_to(tmp_path / "nowhere") if harm == "dangling" else place.write_text("")
    with pytest.raises(AtlasError, match="can't be written"), Store(place).locked("tiny"):
        pass
