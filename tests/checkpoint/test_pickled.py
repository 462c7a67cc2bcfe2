"""Older files are read by PyTorch's weights-only unpickler or not at all, and safetensors come first."""

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import HubSource, Model
from generators.checkpoint.sources import Hub, in_folder, locate, pickled
from tests.checkpoints import WEIGHTS, TouchesAFile, tensors_of, write_checkpoint, write_json

OLDER = "pytorch_model.bin"


class ReservesMemory:
    def __reduce__(self):
        return bytearray, (2**40,)


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setattr(pickled, "can_be_read", lambda: False)


def older(folder: Path, *, dtype=None, shards: int = 1, legacy: bool = False) -> Path:
    write_checkpoint(folder)
    (folder / WEIGHTS).unlink()
    tensors = {name: torch.tensor(array) for name, array in tensors_of("gpt2").items()}
    tensors = {name: tensor.to(dtype) if dtype else tensor for name, tensor in tensors.items()}
    if shards == 1:
        torch.save(tensors, folder / OLDER, _use_new_zipfile_serialization=not legacy)
        return folder
    names = {name: f"pytorch_model-{1 + i % shards:05}-of-{shards:05}.bin" for i, name in enumerate(tensors)}
    for file in set(names.values()):
        torch.save({name: tensors[name] for name in tensors if names[name] == file}, folder / file)
    write_json(folder / f"{OLDER}.index.json", {"weight_map": names})
    return folder


def as_parameters(path: Path) -> None:
    torch.save({name: torch.nn.Parameter(tensor) for name, tensor in torch.load(path).items()}, path)


def compressed(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        records = [(record.filename, archive.read(record)) for record in archive.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in records:
            archive.writestr(name, data)


@pytest.mark.parametrize(
    ("dtype", "legacy", "change"),
    [
        *((dtype, False, None) for dtype in ("float16", "bfloat16", "float32", "float64")),
        ("float32", True, None),
        ("float32", False, as_parameters),
        ("float32", False, compressed),
    ],
)
def test_an_older_file_is_read_as_its_copy_in_safetensors(tmp_path, dtype, legacy, change):
    folder = older(tmp_path / "a", dtype=getattr(torch, dtype), legacy=legacy)
    if change is not None:
        change(folder / OLDER)
    checkpoint = open_checkpoint(in_folder(folder))
    copy = open_checkpoint(in_folder(write_checkpoint(tmp_path / "b", dtype=dtype)))
    assert set(checkpoint) == set(copy)
    for role in copy:
        np.testing.assert_array_equal(checkpoint[role], copy[role], strict=True)
        assert checkpoint.record(role) == copy.record(role)


def test_shards_are_opened_when_asked_for(tmp_path):
    checkpoint = open_checkpoint(in_folder(older(tmp_path, shards=3)))
    for path in tmp_path.glob("*-00002-*.bin"):
        path.write_bytes(b"damaged")
    assert checkpoint["token_embedding"].shape == (50, 24)
    with pytest.raises(InputError, match="is not opened"):
        _ = [checkpoint[role] for role in checkpoint]


def test_a_hostile_pickle_is_a_sentence_and_runs_nothing(tmp_path, monkeypatch):
    folder = older(tmp_path / "model")
    for zipped in (True, False):
        hostile = {"wpe.weight": TouchesAFile(tmp_path / "ran")}
        torch.save(hostile, folder / OLDER, _use_new_zipfile_serialization=zipped)
        with pytest.raises(InputError, match=r"pytorch_model\.bin is not opened"):
            open_checkpoint(in_folder(folder))
    assert not (tmp_path / "ran").exists()
    monkeypatch.setattr(pickled, "_unpickled", None)
    for zipped in (True, False):
        torch.save({"x": ReservesMemory()}, folder / OLDER, _use_new_zipfile_serialization=zipped)
        with pytest.raises(InputError, match="is not opened") as raised:
            open_checkpoint(in_folder(folder))
        assert "reserves memory" in str(raised.value.__cause__)


def test_a_file_with_two_models_is_a_sentence(tmp_path):
    folder = older(tmp_path)
    tensors = torch.load(folder / OLDER)
    torch.save({"model": tensors, "state_dict": tensors, "step": 1}, folder / OLDER)
    assert open_checkpoint(in_folder(folder))["token_embedding"].size
    torch.save({"model": {name: 3 * t for name, t in tensors.items()}, "state_dict": tensors}, folder / OLDER)
    with pytest.raises(InputError, match="holds two models, as 'model' and as 'state_dict'"):
        open_checkpoint(in_folder(folder))


NO_NUMBERS = {
    "sparse": lambda: torch.eye(50, 24).to_sparse(),
    "meta device": lambda: torch.empty(50, 24, device="meta"),
    "nested": lambda: torch.nested.nested_tensor([torch.zeros(50, 24), torch.zeros(3, 24)]),
    "repeats": lambda: torch.zeros(1).expand(50, 10**9),
    "is opened|not opened|reads": lambda: torch.quantize_per_tensor(torch.zeros(50, 24), 1.0, 0, torch.qint8),
}


@pytest.mark.parametrize("said", NO_NUMBERS)
def test_a_tensor_that_is_not_stored_number_by_number_is_a_sentence(tmp_path, said):
    folder = older(tmp_path)
    tensors = torch.load(folder / OLDER)
    torch.save({**tensors, "wte.weight": NO_NUMBERS[said]()}, folder / OLDER)
    with pytest.raises(InputError, match=said):
        open_checkpoint(in_folder(folder))["token_embedding"]


def test_without_pytorch_older_files_are_a_sentence_and_not_had(tmp_path, no_torch, fake):
    (write_checkpoint(tmp_path) / WEIGHTS).unlink()
    (tmp_path / OLDER).write_bytes(pickle.dumps({}))
    with pytest.raises(InputError, match=r"only PyTorch's weights-only reader may open"):
        open_checkpoint(in_folder(tmp_path))
    (write_checkpoint(fake.repository("owner/older")) / WEIGHTS).rename(fake.repository("owner/older") / OLDER)
    with pytest.raises(WeightsUnavailableError, match=r"has no safetensors \(only older files\)"):
        found("owner/older")


def found(repo: str, offline: bool = False):
    sources = (HubSource(hub=repo),)
    return locate(Model(name="tiny", title="tiny", sources=sources), (), Hub(offline=offline))


def test_older_files_on_the_hub_are_read_and_found_again_offline(fake):
    older(fake.repository("owner/older"))
    for offline in (False, True):
        fake.asked.clear()
        checkpoint = open_checkpoint(found("owner/older", offline=offline))
        np.testing.assert_array_equal(checkpoint["position_embedding"], tensors_of("gpt2")["wpe.weight"])
    assert fake.asked == []


@pytest.mark.parametrize(("kind", "tool"), [("weight", "a tool that config.json"), ("qweight", "gptq")])
def test_of_a_quantised_model_norms_and_embeddings_are_read_and_the_rest_is_missing(tmp_path, kind, tool):
    names = [name for name in tensors_of("gpt2") if ".c_fc.weight" in name]
    packed = {name.replace("weight", kind): np.ones((3, 4), np.int8) for name in names}
    config = {"quantization_config": {"bits": 8} if kind == "weight" else {"quant_method": tool}}
    without = [".c_fc.weight"] if kind != "weight" else []
    folder = write_checkpoint(tmp_path, changed=packed, without=without, dtype=None, config=config)
    checkpoint = open_checkpoint(in_folder(folder))
    assert checkpoint["position_embedding"].size
    assert checkpoint["blocks.0.ln2.gain"].size
    assert checkpoint.missing_for("blocks.0.mlp.in") == ["blocks.0.mlp.in"]
    said = f"h.0.mlp.c_fc.weight (blocks.0.mlp.in) as numbers that can be read: it is quantized by {tool}"
    assert checkpoint.lacking("blocks.0.mlp.in").startswith(said)


@pytest.mark.parametrize("how", ["twice", "moved"])
def test_a_zip_file_whose_records_are_not_where_it_says_is_refused(tmp_path, how):
    path = older(tmp_path) / OLDER
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
def test_what_unpacking_takes_is_known_before_it_is_done(tmp_path, monkeypatch, zipped):
    folder = older(tmp_path)
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
