"""What lies where weights were expected is said first: what it is, and the one next step."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from generators.base.errors import InputError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.single_files import ADAPTER
from generators.checkpoint.sources import in_folder
from tests.checkpoints import config_of, tensors_of, write_checkpoint, write_json

Lay = Callable[[Path], None]


def named(*names: str) -> Lay:
    def lay(folder: Path) -> None:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(b"\0" * 100)

    return lay


def tensors(config: dict[str, object], *names: str) -> Lay:
    def lay(folder: Path) -> None:
        save_file({name: np.ones((4, 4), np.float32) for name in names}, folder / "model.safetensors")
        write_json(folder / "config.json", config)

    return lay


def transposed(folder: Path) -> None:
    turned = {name: t.T.copy() for name, t in tensors_of("gpt2").items() if "c_attn.weight" in name}
    write_checkpoint(folder, changed=turned, config=config_of("gpt2"))


def lora(folder: Path) -> None:
    write_json(folder / ADAPTER, {"peft_type": "LORA", "base_model_name_or_path": "owner/base"})
    save_file({"a.lora_A.weight": np.ones((2, 2), np.float32)}, folder / "adapter_model.safetensors")


FOLDERS: dict[str, tuple[Lay, str]] = {
    "DeepSpeed's folder": (named("latest", "zero_to_fp32.py", "global_step9/x"), "DeepSpeed.*python zero_to_fp32.py"),
    "DeepSpeed's step": (named("mp_rank_00_model_states.pt"), "DeepSpeed.*python zero_to_fp32.py"),
    "LoRA": (lora, "is a LoRA adapter alone; its base is 'owner/base'. Merge the two with peft"),
    "ONNX": (named("model.onnx"), "holds model.onnx, an ONNX graph"),
    "Flax": (named("flax_model.msgpack"), "holds flax_model.msgpack, weights of Flax. Name the original, or convert"),
    "HDF5": (named("tf_model.h5"), r"holds tf_model.h5, weights of Keras or TensorFlow \(HDF5\)"),
    "Meta": (named("consolidated.00.pth", "params.json"), "Convert them with convert_llama_weights_to_hf.py"),
    "LitGPT": (named("lit_model.pth"), "Convert it with `litgpt convert_from_litgpt"),
    "Megatron": (named("mp_rank_00/model_optim_rng.pt"), "Megatron-LM.*Megatron Bridge"),
    "TensorFlow": (named("bert_config.json", "bert_model.ckpt.index"), "TensorFlow.*from_tf=True"),
    "OpenAI's GPT-2": (named("hparams.json", "model.ckpt.data-00000-of-00001"), "TensorFlow.*from_tf=True"),
    "Orbax": (named("_CHECKPOINT_METADATA", "d/x"), "Orbax.*save its weights as model.safetensors"),
    "Keras": (named("gpt2.keras"), "Keras.*safetensors copy"),
    "PyTorch's distributed checkpoint": (named(".metadata", "__0_0.distcp"), "distributed.*dcp_to_torch"),
    "MLX": (named("weights.npz"), "NumPy arrays.*save_file.*name the folder"),
    "adapter": (lambda at: (at / ADAPTER).write_text('{"peft_type": []}'), "an adapter"),
    "RWKV": (tensors({"n_layer": 1}, "emb.weight", "blocks.0.att.key.weight"), "RWKV.*on the hub"),
    "mamba_ssm": (tensors({"ssm_cfg": {}}, "backbone.layers.0.mixer.in_proj.weight"), "mamba_ssm.*on the hub"),
    "HookedEncoder": (tensors({}, "embed.embed.W_E", "blocks.0.attn.W_Q"), "HookedEncoder.*original BERT"),
    "Meta's tensors": (tensors({}, "layers.0.attention.wq.weight"), "weights in Meta's own format"),
    "LitGPT's tensors": (tensors({}, "transformer.h.0.norm_1.weight"), "a checkpoint of LitGPT"),
    "Megatron's tensors": (tensors({}, "decoder.layers.0.self_attention.linear_qkv.weight"), "of Megatron-LM"),
    "Linear in place of Conv1D": (transposed, "The matrix is transposed"),
}


@pytest.mark.parametrize("config", [True, False], ids=["config", "no-config"])
@pytest.mark.parametrize("kind", FOLDERS)
def test_what_a_folder_holds_is_said(tmp_path, kind, config):
    lay, said = FOLDERS[kind]
    if config:
        write_json(tmp_path / "config.json", config_of("gpt2"))
    lay(tmp_path)
    with pytest.raises(InputError, match=said) as refusal:
        dict(open_checkpoint(in_folder(tmp_path)))
    assert "no config.json" not in str(refusal.value)
