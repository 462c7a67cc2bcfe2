import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file, save_file

from generators.runner import CannotRunError, open_model, opening
from tests.conftest import ROOT
from tests.runner.models import KINDS, architecture, random_ids, write_model

GPT2 = KINDS["gpt2"]


@pytest.fixture
def folder(tmp_path):
    return write_model(tmp_path / "model", GPT2)


def opened(folder, **options):
    return open_model(folder, architecture(GPT2), position_tensor=GPT2.tensor, **options)


def change(folder, changed):
    path = folder / "model.safetensors"
    save_file(changed(load_file(path)), path, {"format": "pt"})


def without(*endings):
    def kept(tensors):
        return {name: array for name, array in tensors.items() if not name.endswith(endings)}

    return lambda folder: change(folder, kept)


def change_config(**entries):
    def write(folder):
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))

    return write


def put(name, content):
    return lambda folder: (folder / name).write_bytes(content)


NORM = "transformer.h.0.ln_1.weight"
REFUSED = {
    "partial": (
        without("h.1.ln_1.weight", "wpe.weight"),
        "lacks transformer.h.1.ln_1.weight, transformer.wpe.weight",
    ),
    "many absent": (without("attn.c_attn.weight", "attn.c_attn.bias"), "and 3 more"),
    "another shape": (lambda folder: change(folder, lambda t: {**t, NORM: np.ones(7, np.float32)}), "ln_1.weight"),
    "unknown type": (change_config(model_type="helical"), "does not open the architecture 'helical'"),
    "pickle": (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "no safetensors"),
    "damaged": (lambda folder: os.truncate(folder / "model.safetensors", 100), "can't be read"),
    "a list": (put("config.json", b"[]"), "config.json"),
    "broken config": (put("config.json", b"{"), "config.json"),
    "quantised": (change_config(quantization_config={"bits": 4}), "quantised"),
}


@pytest.mark.parametrize(("harm", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_run_is_refused(folder, harm, said):
    harm(folder)
    with pytest.raises(CannotRunError, match=re.escape(said)):
        opened(folder)


def test_importing_the_room_imports_neither_torch_nor_transformers():
    code = "import sys, generators.runner; print(*sorted({'torch', 'transformers'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert shown.stdout.split() == []


def test_an_encoder_may_lack_its_head_but_nothing_else(tmp_path):
    folder = write_model(tmp_path, KINDS["bert"])
    without("cls.predictions.bias", "cls.predictions.transform.dense.weight")(folder)
    run = open_model(folder, architecture(KINDS["bert"]), position_tensor=KINDS["bert"].tensor)
    assert not run.predicts
    without("layer.0.output.dense.weight")(folder)
    with pytest.raises(CannotRunError, match=r"lacks encoder.layer.0.output.dense.weight"):
        open_model(folder, architecture(KINDS["bert"]))


def test_no_code_of_a_repository_is_run(folder, tmp_path):
    trace = tmp_path / "ran"
    (folder / "modeling.py").write_text(f"open({str(trace)!r}, 'w')\n")
    code = {"AutoModelForCausalLM": "modeling.Model", "AutoConfig": "modeling.C"}
    change_config(model_type="helical", auto_map=code)(folder)
    with pytest.raises(CannotRunError):
        opened(folder)
    assert not trace.exists()


def test_a_model_larger_than_memory(folder, monkeypatch):
    monkeypatch.setattr(opening, "_available", lambda device: 1000)
    with pytest.raises(CannotRunError, match=r"does not fit into memory: it needs about .* GiB"):
        opened(folder)


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_library_that_is_not_installed(folder, monkeypatch, package):
    monkeypatch.setattr(opening, "find_spec", lambda name: None if name == package else object())
    with pytest.raises(CannotRunError, match=f"{package} isn't installed"):
        opened(folder)


def test_a_device_that_is_not_there(folder):
    if torch.cuda.is_available():
        pytest.skip("there is one here")
    with pytest.raises(CannotRunError, match="no such device"):
        opened(folder, device="cuda")


def test_half_precision_is_run_in_single(folder):
    change(folder, lambda tensors: {name: array.astype(np.float16) for name, array in tensors.items()})
    change_config(dtype="float16")(folder)
    seen = []
    opened(folder).states_on_device(random_ids(1, 8), lambda _, states: seen.append(str(states.dtype)))
    assert seen == ["torch.float32"]


def test_shards(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    assert opened(folder).predicts


@pytest.mark.parametrize(
    "name", ["wpe.weight", "transformer.wpe.weight", "model.transformer.wpe.weight", "nowhere.weight"]
)
def test_the_position_tensor_is_found_by_any_of_its_names(folder, name):
    run = open_model(folder, architecture(GPT2), position_tensor=name)
    if name != "nowhere.weight":
        assert run.position_kind == "table"
        return
    with pytest.raises(CannotRunError, match=r"no tensor nowhere.weight"):
        _ = run.position_kind
