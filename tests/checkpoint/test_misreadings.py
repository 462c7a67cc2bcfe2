"""What was once read wrongly without a word: each is read rightly now, or refused. Weights are made here, by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from generators.base.errors import InputError
from generators.checkpoint.checkpoint import Checkpoint, open_checkpoint
from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places, in_folder
from generators.compute.plan import open_model, plan
from generators.findings import FINDINGS
from tests.checkpoints import tensors_of, write_checkpoint

D, HEADS, HEAD, N, V, F = 24, 3, 8, 10, 30, 8
HF = {
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "hidden_size": D,
    "max_position_embeddings": N,
    "vocab_size": V,
    "intermediate_size": F,
}


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32)


def opened(folder: Path, config: dict[str, Any], tensors: dict[str, np.ndarray]) -> Checkpoint:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
    return open_checkpoint(in_folder(folder))


# Rows that are no position


PADDED = "embeddings.position_embeddings.weight"
IMAGE = {"image_size": 32, "patch_size": 8}  # in 16 patches


@pytest.mark.parametrize(
    ("model_type", "config", "tensor", "shape", "skipped"),
    [
        *(
            (model_type, {"pad_token_id": pad}, f"roberta.{PADDED}", (N, D), pad + 1)
            for model_type in ("roberta", "xlm-roberta", "camembert")
            for pad in (1, 0, 4)
        ),
        ("mpnet", {"relative_attention_num_buckets": 32}, f"mpnet.{PADDED}", (N, D), 2),
        ("opt", {"word_embed_proj_dim": D}, "model.decoder.embed_positions.weight", (N + 2, D), 2),
        *((kind, IMAGE, "embeddings.position_embeddings", (1, 17, D), 1) for kind in ("vit", "dinov2")),
        ("deit", IMAGE, "embeddings.position_embeddings", (1, 18, D), 2),
    ],
)
def test_rows_of_padding_and_of_classes_are_no_positions(tmp_path, model_type, config, tensor, shape, skipped):
    table = noise(*shape)
    checkpoint = opened(tmp_path, {"model_type": model_type, **HF, **config}, {tensor: table})
    assert checkpoint.architecture.n_ctx == shape[-2] - skipped
    np.testing.assert_array_equal(checkpoint["position_embedding"], table.reshape(-1, D)[skipped:])


# Norms


@pytest.mark.parametrize(
    ("model_type", "second"),
    [
        ("gemma", "post_attention_layernorm"),
        ("gemma2", "pre_feedforward_layernorm"),
        ("gemma3_text", "pre_feedforward_layernorm"),
    ],
)
def test_gemma_multiplies_by_one_plus_g_and_its_mlp_reads_the_right_norm(tmp_path, model_type, second):
    stored = {
        "model.layers.0.input_layernorm.weight": noise(D, seed=1),
        "model.layers.0.post_attention_layernorm.weight": noise(D, seed=2),
        "model.layers.0.pre_feedforward_layernorm.weight": noise(D, seed=3),
    }
    checkpoint = opened(tmp_path, {"model_type": model_type, **HF}, stored)
    np.testing.assert_array_equal(
        checkpoint["blocks.0.ln1.gain"], 1 + stored["model.layers.0.input_layernorm.weight"]
    )
    np.testing.assert_array_equal(checkpoint["blocks.0.ln2.gain"], 1 + stored[f"model.layers.0.{second}.weight"])


def test_olmo_2_reads_no_norm(tmp_path):
    stored = {
        "model.layers.0.post_attention_layernorm.weight": noise(D),
        "model.layers.0.self_attn.q_proj.weight": noise(D, D),
    }
    checkpoint = opened(tmp_path, {"model_type": "olmo2", **HF}, stored)
    assert not [role for role in checkpoint if ".ln1." in role or ".ln2." in role]
    np.testing.assert_array_equal(
        checkpoint["blocks.0.attn.out_norm.gain"], stored["model.layers.0.post_attention_layernorm.weight"]
    )
    assert "put out" in checkpoint.family.without["blocks.*.ln2.gain"]


# Fused matrices


@pytest.mark.parametrize(
    ("model_type", "tensor", "config"),
    [
        ("gpt_neox", "gpt_neox.layers.0.attention.query_key_value.weight", {}),
        (
            "bloom",
            "transformer.h.0.self_attention.query_key_value.weight",
            {"n_layer": 2, "n_head": HEADS},
        ),
    ],
)
def test_queries_keys_and_values_one_head_after_another(tmp_path, model_type, tensor, config):
    parts = [noise(HEADS, HEAD, D, seed=seed) for seed in range(3)]
    stored = np.stack(parts, axis=1).reshape(-1, D)  # head by head: its queries, keys, values
    checkpoint = opened(tmp_path, {"model_type": model_type, **HF, **config}, {tensor: stored})
    for name, part in zip("qkv", parts, strict=True):
        np.testing.assert_array_equal(checkpoint[f"blocks.0.attn.{name}"], part.reshape(-1, D).T)


def test_phi_3_fuses_its_gate_with_what_it_lets_through(tmp_path):
    gate, up = noise(F, D, seed=1), noise(F, D, seed=2)
    stored = {"model.layers.0.mlp.gate_up_proj.weight": np.concatenate([gate, up])}
    checkpoint = opened(tmp_path, {"model_type": "phi3", **HF}, stored)
    np.testing.assert_array_equal(checkpoint["blocks.0.mlp.gate"], gate.T)
    np.testing.assert_array_equal(checkpoint["blocks.0.mlp.in"], up.T)


def test_codegen_s_order_is_queries_values_keys_machine_by_machine(tmp_path):
    queries, keys, values = (noise(4, D // 4, D, seed=seed) for seed in range(3))
    stored = np.stack([queries, values, keys], axis=1).reshape(-1, D)
    config = {"model_type": "codegen", "n_layer": 2, "n_head": 4, "n_embd": D, "n_positions": N, "vocab_size": V}
    checkpoint = opened(tmp_path, {**config, "rotary_dim": 4}, {"transformer.h.0.attn.qkv_proj.weight": stored})
    for name, part in (("q", queries), ("k", keys), ("v", values)):
        np.testing.assert_array_equal(checkpoint[f"blocks.0.attn.{name}"], part.reshape(-1, D).T)


# Families without a table


def test_a_family_without_a_table_shows_its_token_embedding_and_says_so(tmp_path):
    E = noise(V, D)
    tensors = {"backbone.embeddings.weight": E, "backbone.layers.0.mixer.in_proj.weight": noise(D, D)}
    checkpoint = opened(tmp_path, {"model_type": "mamba", "num_hidden_layers": 2, "vocab_size": V}, tensors)
    assert list(checkpoint) == ["token_embedding"]
    np.testing.assert_array_equal(checkpoint["token_embedding"], E)
    assert checkpoint.architecture.family == "mamba (read without a table)"
    assert "no table for models of type mamba" in checkpoint.family.without["blocks.*.attn.q"]
    assert "position_embedding" not in checkpoint


def test_without_a_table_nothing_is_said_of_how_positions_are_known(tmp_path):
    """A table that isn't there says nothing of positions, and not that there are none."""
    tensors = {"backbone.embeddings.weight": noise(V, D), "backbone.layers.0.mixer.in_proj.weight": noise(D, D)}
    opened(tmp_path, {"model_type": "mamba", "num_hidden_layers": 2, "vocab_size": V}, tensors)
    scheme = next(finding for finding in FINDINGS if finding.name == "position_scheme")
    model = Model(name="mamba", title="Mamba", sources=(FolderSource(folder=tmp_path),))
    planned = plan(scheme, open_model(model, Places()))
    assert (planned.status, planned.key) == ("not_applicable", None)
    assert "no table for models of type mamba" in planned.reason


@pytest.mark.parametrize(
    "names",
    [("embed.weight", "embeddings.weight"), ("head.weight",), ("embed_tokens.bias",)],
    ids=["two", "head", "bias"],
)
def test_without_a_table_one_matrix_alone_must_fit(tmp_path, names):
    with pytest.raises(InputError, match="'mamba' is unknown"):
        opened(
            tmp_path,
            {"model_type": "mamba", "num_hidden_layers": 2, "vocab_size": V},
            {name: noise(V, D, seed=i) for i, name in enumerate(names)},
        )


def test_without_a_table_what_halves_share_is_read_once(tmp_path):
    E = noise(V, D)
    names = ("model.encoder.embed_tokens.weight", "model.shared.weight", "model.decoder.embed_tokens.weight")
    config = {"model_type": "mbart", "encoder_layers": 3, "decoder_layers": 2, "vocab_size": V}
    checkpoint = opened(tmp_path, config, dict.fromkeys(names, E))
    assert checkpoint.record("token_embedding").name == "model.shared.weight"
    assert checkpoint.architecture.n_layer == 3


def test_a_family_that_was_named_is_not_guessed(tmp_path):
    write_checkpoint(tmp_path)
    with pytest.raises(InputError, match=r"'mambo' is unknown.*--family NAME"):
        open_checkpoint(in_folder(tmp_path), "mambo")


@pytest.mark.parametrize(("typed", "near"), [("gemma3n", "gemma"), ("qwen2_moe", "qwen3_moe"), ("Llama", "llama")])
def test_the_sentence_names_those_that_are_near(tmp_path, typed, near):
    tensors = tensors_of("gpt2")
    with pytest.raises(InputError, match=rf"nearest by name: .*{near}"):
        opened(tmp_path, {"model_type": typed, "vocab_size": 3}, tensors)


def test_half_of_a_pair_must_be_named(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    with pytest.raises(InputError, match="several models in one: name one by its ending, --encoder or --decoder"):
        open_checkpoint(in_folder(tmp_path))
    with pytest.raises(InputError, match="has no vision of its own"):
        open_checkpoint(in_folder(tmp_path, stack="vision"))
