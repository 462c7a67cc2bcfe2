"""Where a file says that its tensors are: they lie apart, in the data, or the file is refused."""

import zipfile

import gguf
import numpy as np
import pytest

from generators.base.errors import InputError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.sources import in_folder, pickled
from generators.checkpoint.sources.formats import check_layout
from tests.checkpoint import other_software as other
from tests.checkpoint.test_formats import opened
from tests.checkpoint.test_pickled import OLDER, older


@pytest.mark.parametrize(
    ("spans", "sentence"),
    [
        ({"a": (64, 96), "b": (64, 96)}, "inside a"),
        ({"a": (64, 100), "b": (96, 128)}, "inside a"),
        ({"a": (32, 64)}, "inside the header"),
        ({"a": (64, 300)}, "cut off"),
        ({"a": (96, 64)}, "cut off"),
        ({"a": (64, 96), "b": (100, 110)}, "no multiple of 32"),
        ({"a": (64, 96), "b": (128, 130)}, "belong to no tensor"),
        ({"a": (128, 130)}, "belong to no tensor"),
    ],
)
def test_a_layout_that_can_t_be_is_refused(spans, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_layout(spans, begin=64, size=256, align=32, gap=31)


def test_a_layout_that_can_be_is_none_of_these():
    check_layout({"b": (96, 100), "a": (64, 90), "none": (64, 64)}, begin=64, size=256, align=32, gap=31)
    check_layout({"far": (200, 256)}, begin=64, size=256, gap=None)


@pytest.mark.parametrize("offset", [0, 2**64 - 32, 2**40, 33], ids=["overlaps", "wraps", "beyond", "between"])
def test_a_gguf_file_whose_offsets_lie_is_refused(tmp_path, offset):
    path = tmp_path / "model.gguf"
    other.write_llama_gguf(path, "F32")
    field = next(t for t in gguf.GGUFReader(path).tensors if t.name == "blk.1.attn_q.weight").field
    where = int(field.offset + sum(part.nbytes for part in field.parts[:-1]))
    data = bytearray(path.read_bytes())
    data[where : where + 8] = offset.to_bytes(8, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match="isn't a whole GGUF file"):
        opened(path)


def test_compressed_records_are_inflated_and_give_the_same_numbers(torch, tmp_path):
    wanted = open_checkpoint(in_folder(older(torch, tmp_path / "a")))
    folder = older(torch, tmp_path / "b")
    with zipfile.ZipFile(folder / OLDER) as archive:
        records = [(record.filename, archive.read(record)) for record in archive.infolist()]
    with zipfile.ZipFile(folder / OLDER, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in records:
            archive.writestr(name, data)
    read = open_checkpoint(in_folder(folder))
    for role in wanted:
        np.testing.assert_array_equal(read[role], wanted[role])


@pytest.mark.parametrize("how", ["twice", "moved"])
def test_a_zip_file_whose_records_are_not_where_it_says_is_refused(torch, tmp_path, how):
    path = older(torch, tmp_path) / OLDER
    with zipfile.ZipFile(path, "a") as archive:
        record = next(r for r in archive.infolist() if r.filename.endswith("/data/3"))
        if how == "twice":
            archive.writestr(record.filename, bytes(record.file_size))
    if how == "moved":
        content, length = bytearray(path.read_bytes()), record.header_offset + 28
        content[length + 1] += 8  # 2 KiB more between the record's name and its bytes
        path.write_bytes(content)
    with pytest.raises(InputError, match="is not opened"):
        open_checkpoint(in_folder(tmp_path))


@pytest.mark.parametrize("zipped", [True, False])
def test_what_unpacking_takes_is_known_before_it_is_done(torch, tmp_path, monkeypatch, zipped):
    folder = older(torch, tmp_path)
    if zipped:
        with zipfile.ZipFile(folder / OLDER, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("archive/data.pkl", b"N0" * pickled.LARGEST_PICKLE)
            archive.writestr("archive/version", "3\n")
    else:
        monkeypatch.setattr(pickled, "LARGEST_PICKLE", 10_000)
        (folder / OLDER).write_bytes(b"\x80\x02" + b"]" * 20_000 + b".")  # nested lists
    monkeypatch.setattr(pickled, "_unpickled", None)
    with pytest.raises(InputError, match="more than tensors need"):
        open_checkpoint(in_folder(folder))
