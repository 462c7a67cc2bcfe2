"""Pieces of published checkpoints, as their own software wrote them: each is read as that software reads it.

They are rows of a few tensors, with the bytes of the originals. All three may be passed on: SmolLM2 under Apache 2.0,
Whisper and rxnfp under MIT.
"""

import shutil
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.sources import in_folder

SLICES = Path(__file__).parent / "slices"
ROWS = 96


def piece(tmp_path: Path, name: str, called: str, config: str | None = None) -> Path:
    shutil.copy(SLICES / name, tmp_path / called)
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    return tmp_path


def test_smollm2s_blocks_are_what_its_package_says(tmp_path):
    read = open_checkpoint(in_folder(piece(tmp_path, "smollm2.gguf", "model.gguf")))
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(SLICES / "smollm2.gguf").tensors}
    for role, name in (("token_embedding", "token_embd.weight"), ("blocks.0.ln1.gain", "blk.0.attn_norm.weight")):
        stored = tensors[name]
        wanted = gguf.quants.dequantize(stored.data, stored.tensor_type)
        np.testing.assert_array_equal(read[role], wanted, err_msg=role)
    assert read["token_embedding"].shape == (ROWS, 576)
    architecture = read.architecture
    assert (architecture.family, architecture.n_head, architecture.n_kv_head) == ("llama", 9, 3)
    assert architecture.rotary[0].periods[0] == pytest.approx(2 * np.pi)
    assert read.missing_for("blocks.0.attn.q") != []


def test_whispers_positions_are_the_numbers_in_its_file(tmp_path):
    folder = piece(tmp_path, "whisper.bin", "model.bin", '{"alignment_heads": [[1, 1]]}')
    read = open_checkpoint(in_folder(folder, stack="decoder"))
    content = (SLICES / "whisper.bin").read_bytes()
    gain, P = read["blocks.0.ln1.gain"], read["position_embedding"]
    assert (gain.shape, P.shape) == ((512,), (ROWS, 512))
    assert all(found.astype("<f2").tobytes() in content for found in (gain, P))
    assert np.linalg.norm(P, axis=1).max() < 10


def test_rxnfps_positions_are_those_that_torch_reads(tmp_path):
    config = '{"model_type": "bert", "hidden_size": 256, "num_hidden_layers": 12, "num_attention_heads": 4,'
    config += f' "max_position_embeddings": {2 * ROWS}, "vocab_size": 591, "intermediate_size": 512}}'
    read = open_checkpoint(in_folder(piece(tmp_path, "rxnfp.pt", "pytorch_model.bin", config)))
    wanted = torch.load(SLICES / "rxnfp.pt", weights_only=True)["bert.embeddings.position_embeddings.weight"]
    np.testing.assert_array_equal(read["position_embedding"], wanted.numpy())
