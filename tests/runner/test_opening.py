import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from generators.runner import CannotRunError, open_model, opening
from tests.conftest import ROOT
from tests.runner.models import KINDS, architecture, random_ids, write_model

pytest.importorskip("torch", reason="torch isn't installed")
pytest.importorskip("transformers", reason="transformers isn't installed")

GPT2 = KINDS["gpt2"]


@pytest.fixture
def folder(tmp_path):
    return write_model(tmp_path / "model", GPT2)


def opened(folder, **options):
    return open_model(folder, architecture(GPT2), position_tensor=GPT2.tensor, **options)


def without(folder, *endings):
    path = folder / "model.safetensors"
    stored = {name: array for name, array in load_file(path).items() if not name.endswith(endings)}
    save_file(stored, path, {"format": "pt"})


def change_config(folder, **entries):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def test_importing_the_room_imports_neither_torch_nor_transformers():
    code = "import sys, generators.runner; print(*sorted({'torch', 'transformers'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert shown.stdout.split() == []


def test_partial_weights_are_named(folder):
    without(folder, "h.1.ln_1.weight", "wpe.weight")
    with pytest.raises(CannotRunError, match=r"lacks transformer.h.1.ln_1.weight, transformer.wpe.weight"):
        opened(folder)


def test_of_many_absent_tensors_the_first_are_named(folder):
    without(folder, "attn.c_attn.weight", "attn.c_attn.bias")
    with pytest.raises(CannotRunError, match="and 3 more"):
        opened(folder)


def test_an_encoder_may_lack_its_head_but_nothing_else(tmp_path):
    folder = write_model(tmp_path, KINDS["bert"])
    without(folder, "cls.predictions.bias", "cls.predictions.transform.dense.weight")
    run = open_model(folder, architecture(KINDS["bert"]), position_tensor=KINDS["bert"].tensor)
    assert not run.predicts
    without(folder, "layer.0.output.dense.weight")
    with pytest.raises(CannotRunError, match=r"lacks encoder.layer.0.output.dense.weight"):
        open_model(folder, architecture(KINDS["bert"]))


def test_weights_of_another_shape(folder):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors["transformer.h.0.ln_1.weight"] = np.ones(7, np.float32)
    save_file(tensors, path, {"format": "pt"})
    with pytest.raises(CannotRunError, match=r"ln_1.weight"):
        opened(folder)


def test_an_architecture_that_transformers_lacks(folder):
    change_config(folder, model_type="helical")
    with pytest.raises(CannotRunError, match="does not open the architecture 'helical'"):
        opened(folder)


def test_no_code_of_a_repository_is_run(folder, tmp_path):
    trace = tmp_path / "ran"
    (folder / "modeling.py").write_text(f"open({str(trace)!r}, 'w')\n")
    change_config(
        folder, model_type="helical", auto_map={"AutoModelForCausalLM": "modeling.Model", "AutoConfig": "modeling.C"}
    )
    with pytest.raises(CannotRunError):
        opened(folder)
    assert not trace.exists()


def test_pickles_are_not_read(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CannotRunError, match="no safetensors"):
        opened(folder)


def test_a_damaged_file(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CannotRunError, match="can't be read"):
        opened(folder)


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_a_damaged_config(folder, content):
    (folder / "config.json").write_text(content)
    with pytest.raises(CannotRunError, match=r"config.json"):
        opened(folder)


def test_quantised_weights(folder):
    change_config(folder, quantization_config={"bits": 4})
    with pytest.raises(CannotRunError, match="quantised"):
        opened(folder)


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
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one here")
    with pytest.raises(CannotRunError, match="no such device"):
        opened(folder, device="cuda")


def test_half_precision_is_run_in_single(folder):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    save_file({name: array.astype(np.float16) for name, array in tensors.items()}, path, {"format": "pt"})
    change_config(folder, dtype="float16")
    seen = []
    opened(folder).states_on_device(random_ids(1, 8), lambda _, states: seen.append(str(states.dtype)))
    assert seen == ["torch.float32"]


def test_shards(folder):
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    assert opened(folder).predicts


def test_a_position_tensor_that_the_model_lacks(folder):
    run = open_model(folder, architecture(GPT2), position_tensor="nowhere.weight")
    with pytest.raises(CannotRunError, match=r"no tensor nowhere.weight"):
        _ = run.position_kind


def test_a_prefix_of_the_tensor_makes_no_difference(folder):
    for name in ("wpe.weight", "transformer.wpe.weight", "model.transformer.wpe.weight"):
        run = open_model(folder, architecture(GPT2), position_tensor=name)
        assert run.position_kind == "table"
