"""What lies where weights were expected is said first: what it is, and the one next step."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from generators.base.errors import InputError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.single_files import ADAPTER, what_to_name
from generators.checkpoint.sources import in_folder
from tests.checkpoints import config_of, tensors_of, write_checkpoint

Lay = Callable[[Path], None]


def named(*names: str) -> Lay:
    def lay(folder: Path) -> None:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(b"\0" * 100)

    return lay


def with_config(lay: Lay) -> Lay:
    def lay_both(folder: Path) -> None:
        lay(folder)
        (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))

    return lay_both


def tensors(config: dict[str, object], *names: str) -> Lay:
    def lay(folder: Path) -> None:
        save_file({name: np.ones((4, 4), np.float32) for name in names}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(config))

    return lay


def transposed(folder: Path) -> None:
    turned = {name: t.T.copy() for name, t in tensors_of("gpt2").items() if "c_attn.weight" in name}
    write_checkpoint(folder, changed=turned, config=config_of("gpt2"))


def of_llm_c(folder: Path) -> None:
    np.array([20240326, 3, 1024, *[0] * 253], "<i4").tofile(folder / "gpt2_124M.bin")


FOLDERS: dict[str, tuple[Lay, str]] = {
    "DeepSpeed's folder": (named("latest", "zero_to_fp32.py", "global_step9/x"), "DeepSpeed.*python zero_to_fp32.py"),
    "DeepSpeed's step": (named("mp_rank_00_model_states.pt"), "DeepSpeed.*python zero_to_fp32.py"),
    "Megatron": (named("mp_rank_00/model_optim_rng.pt"), "Megatron-LM.*Megatron Bridge"),
    "TensorFlow": (named("bert_config.json", "bert_model.ckpt.index"), "TensorFlow.*from_tf=True"),
    "OpenAI's GPT-2": (named("hparams.json", "model.ckpt.data-00000-of-00001"), "TensorFlow.*from_tf=True"),
    "Orbax": (named("_CHECKPOINT_METADATA", "d/x"), "Orbax.*save its weights as model.safetensors"),
    "Keras": (named("gpt2.keras"), "Keras.*safetensors copy"),
    "PyTorch's distributed checkpoint": (named(".metadata", "__0_0.distcp"), "distributed.*dcp_to_torch"),
    "MLX": (named("weights.npz"), "NumPy arrays.*save_file.*name the folder"),
    "MLX beside a config": (with_config(named("weights.npz")), "NumPy arrays.*save_file.*name the folder"),
    "llm.c": (of_llm_c, "llm.c.*export_hf.py"),
    "adapter": (lambda at: (at / ADAPTER).write_text('{"peft_type": []}'), "an adapter"),
    "RWKV": (tensors({"n_layer": 1}, "emb.weight", "blocks.0.att.key.weight"), "RWKV.*on the hub"),
    "mamba_ssm": (tensors({"ssm_cfg": {}}, "backbone.layers.0.mixer.in_proj.weight"), "mamba_ssm.*on the hub"),
    "HookedEncoder": (tensors({}, "embed.embed.W_E", "blocks.0.attn.W_Q"), "HookedEncoder.*original BERT"),
    "Linear in place of Conv1D": (transposed, "The matrix is transposed"),
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_what_a_folder_holds_is_said(tmp_path, kind):
    lay, said = FOLDERS[kind]
    lay(tmp_path)
    with pytest.raises(InputError, match=said) as refusal:
        dict(open_checkpoint(in_folder(tmp_path)))
    assert "no config.json" not in str(refusal.value)


def test_a_model_of_llm_c_is_known_by_its_first_number(tmp_path):
    of_llm_c(tmp_path)
    assert "llm.c" in (what_to_name(tmp_path / "gpt2_124M.bin", "gpt2_124M.bin") or "")


def test_the_snapshot_in_a_folder_of_the_hub_s_cache_is_read(tmp_path):
    folder = tmp_path / "models--someone--tiny"
    for commit in ("a" * 40, "b" * 40):
        write_checkpoint(folder / "snapshots" / commit)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("b" * 40)
    opened = in_folder(folder)
    assert opened.folder == folder / "snapshots" / ("b" * 40)
    assert open_checkpoint(opened)["token_embedding"].size
