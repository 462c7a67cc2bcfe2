"""A checkpoint hands out a tensor for every role, and reads no other; the oracle compares which."""

import hashlib

import numpy as np
import pytest

from generators.base.errors import InputError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.families.gpt2 import GPT1
from generators.checkpoint.sources import in_folder
from generators.checkpoint.sources.safetensors_files import Safetensors
from tests.checkpoints import (
    DTYPES,
    SMALL,
    WEIGHTS,
    config_of,
    raw_bytes,
    read_model,
    tensors_of,
    write_checkpoint,
)

D = SMALL.d_model


def opened(folder):
    return open_checkpoint(in_folder(folder))


@pytest.fixture
def tensors_read(monkeypatch):
    names = []
    read = Safetensors.rows

    def recording(self, path, name, rows):
        names.append(name)
        return read(self, path, name, rows)

    monkeypatch.setattr(Safetensors, "rows", recording)
    return names


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize(
    ("family", "prefix"), [("gpt2", "transformer."), ("bert", "bert."), ("openai-gpt", "transformer.")]
)
def test_a_model_is_read_with_and_without_the_prefix_of_its_head_and_in_shards(tmp_path, family, prefix, shards):
    bare = opened(write_checkpoint(tmp_path / "bare", family))
    other = opened(write_checkpoint(tmp_path / "other", family, prefix=prefix, shards=shards))
    assert set(bare) == set(other) >= {"position_embedding", "blocks.1.attn.q"}
    for role in bare:
        np.testing.assert_array_equal(bare[role], other[role], strict=True)
        assert other.record(role).name == prefix + bare.record(role).name


@pytest.mark.parametrize(
    ("dtype", "label"), [("float64", "F64"), ("float32", "F32"), ("float16", "F16"), ("bfloat16", "BF16")]
)
def test_records_are_of_the_bytes_in_the_file_and_values_are_those_widened(tmp_path, dtype, label):
    checkpoint = opened(write_checkpoint(tmp_path, dtype=dtype))
    tensors = tensors_of("gpt2")
    assert {checkpoint.record(role).name for role in checkpoint} == set(tensors)
    for record in map(checkpoint.record, checkpoint):
        assert record.sha256 == hashlib.sha256(raw_bytes(tmp_path / WEIGHTS, record.name)).hexdigest()
        assert (record.shape, record.dtype) == (tensors[record.name].shape, label)
    width = np.float64 if dtype == "float64" else np.float32
    stored = tensors["wpe.weight"].astype(DTYPES[dtype])
    np.testing.assert_array_equal(checkpoint["position_embedding"], stored.astype(width), strict=True)


def test_opening_reads_no_tensor_a_role_only_its_own_and_a_fused_one_is_read_once(tmp_path, tensors_read):
    checkpoint = opened(write_checkpoint(tmp_path))
    assert tensors_read == []
    _ = checkpoint["position_embedding"]
    assert tensors_read == ["wpe.weight"]
    for name in "qkv":
        checkpoint.record(f"blocks.0.attn.{name}")
        _ = checkpoint[f"blocks.0.attn.{name}"]
    assert tensors_read == ["wpe.weight", "h.0.attn.c_attn.weight"]


def test_a_harmed_shard_matters_only_when_asked_for(tmp_path):
    last = write_checkpoint(tmp_path, shards=3) / "model-00003-of-00003.safetensors"
    last.write_bytes(last.read_bytes()[:-5])
    checkpoint = opened(tmp_path)
    np.testing.assert_array_equal(checkpoint["token_embedding"], tensors_of("gpt2")["wte.weight"])
    with pytest.raises(InputError, match=r"model-00003-of-00003\.safetensors"):
        _ = checkpoint["final_norm.gain"]


def test_a_partial_checkpoint_has_the_roles_that_it_has(tmp_path):
    checkpoint = opened(write_checkpoint(tmp_path, without=("wte.weight", "h.1.mlp.c_fc.weight")))
    whole = opened(write_checkpoint(tmp_path / "whole"))
    assert set(whole) - set(checkpoint) == {"token_embedding", "blocks.1.mlp.in"}
    assert len(checkpoint) == len(whole) - 2
    assert checkpoint.get("token_embedding") is None
    with pytest.raises(KeyError):
        _ = checkpoint["token_embedding"]
    assert checkpoint.lacking("blocks.1.mlp.in") == "h.1.mlp.c_fc.weight (blocks.1.mlp.in)"


@pytest.mark.parametrize(
    ("role", "name", "shape"),
    [
        ("position_embedding", "wpe.weight", (SMALL.n_ctx, D + 1)),
        ("position_embedding", "wpe.weight", (SMALL.n_ctx, D, 1)),
        ("blocks.0.attn.q", "h.0.attn.c_attn.weight", (D, 2 * D)),
        ("blocks.0.attn.q.bias", "h.0.attn.c_attn.bias", (3 * D, 1)),
        ("blocks.0.mlp.in", "h.0.mlp.c_fc.weight", (D + 1, 4 * D)),
        ("blocks.0.ln1.gain", "h.0.ln_1.weight", ()),
    ],
)
def test_a_wrong_shape_is_a_sentence_with_both_shapes(tmp_path, role, name, shape):
    checkpoint = opened(write_checkpoint(tmp_path, changed={name: np.zeros(shape, np.float32)}))
    with pytest.raises(InputError, match=r"where config\.json asks for") as error:
        _ = checkpoint[role]
    assert name in str(error.value)
    assert (" x ".join(map(str, shape)) or "a single number") in str(error.value)


def test_a_tensor_by_two_of_its_names_must_be_one_tensor(tmp_path):
    same, other = tensors_of("gpt2")["wte.weight"], tensors_of("gpt2", seed=1)["wte.weight"]
    write_checkpoint(tmp_path / "same", changed={"transformer.wte.weight": same})
    assert opened(tmp_path / "same")["token_embedding"].shape == same.shape
    write_checkpoint(tmp_path / "other", changed={"transformer.wte.weight": other})
    with pytest.raises(InputError, match=r"wte\.weight and transformer\.wte\.weight.*differ"):
        opened(tmp_path / "other")


def test_the_header_of_a_file_is_parsed_once(tmp_path, monkeypatch):
    import safetensors

    times, really = [], safetensors.safe_open
    monkeypatch.setattr(safetensors, "safe_open", lambda *args, **named: times.append(args) or really(*args, **named))
    checkpoint = opened(write_checkpoint(tmp_path))
    assert all(checkpoint[role].size for role in checkpoint)
    assert len(times) == 1


def test_a_role_made_of_two_tensors_has_the_names_and_the_content_of_both(tmp_path):
    """OPT 350M's embeddings are narrower than its stream; the oracle compares their numbers."""
    config = {**config_of("bert"), "model_type": "opt", "ffn_dim": 8, "word_embed_proj_dim": 6}
    config["do_layer_norm_before"] = False
    shapes = {"embed_tokens": (50, 6), "project_in": (D, 6), "project_out": (6, D)}
    tensors = {f"model.decoder.{name}.weight": np.ones(shape, np.float32) for name, shape in shapes.items()}
    embedding, projection, _ = tensors
    before = read_model(tmp_path, config, tensors)
    record = before.record("token_embedding")
    assert record.name == f"{embedding} x {projection}"
    assert "through" in before.layout("token_embedding")
    after = read_model(tmp_path / "after", config, {**tensors, projection: np.zeros((D, 6), np.float32)})
    assert after["token_embedding"].shape == (50, D)
    assert after.changed_since({record.name: record.sha256}) == record.name
    del tensors[projection]
    partial = read_model(tmp_path / "partial", config, tensors)
    assert "token_embedding" not in partial and "unembedding" in partial
    assert partial.lacking("token_embedding") == "project_in.weight (token_embedding)"


def test_layouts_say_only_what_is_unusual(tmp_path):
    assert opened(write_checkpoint(tmp_path)).layout("token_embedding") == {"shape": "V d"}


def missing(tmp_path, family, role, *without):
    return opened(write_checkpoint(tmp_path, family, without=without)).missing_for(role)


def test_nothing_is_missing_of_a_whole_checkpoint_and_a_first_block_without_a_norm_misses_none(tmp_path):
    checkpoint = opened(write_checkpoint(tmp_path))
    assert [role for role in checkpoint if checkpoint.missing_for(role)] == []
    assert GPT1.expects("blocks.0.attn.q") == ["blocks.0.attn.q.bias"]
    assert GPT1.expects("blocks.1.attn.q") == ["blocks.1.ln1.gain", "blocks.1.ln1.bias", "blocks.1.attn.q.bias"]
    assert missing(tmp_path, "openai-gpt", "blocks.1.attn.q", "h.0.ln_2.weight") == ["blocks.1.ln1.gain"]


@pytest.mark.parametrize(
    ("role", "without", "said"),
    [
        ("blocks.1.attn.q", ["h.1.ln_1.weight"], ["blocks.1.ln1.gain"]),
        ("blocks.1.attn.v", ["h.1.ln_1.bias"], ["blocks.1.ln1.bias"]),
        ("blocks.0.attn.k", ["h.0.attn.c_attn.bias"], ["blocks.0.attn.k.bias"]),
        ("blocks.0.mlp.in", ["h.0.ln_2.weight"], ["blocks.0.ln2.gain"]),
        ("blocks.0.mlp.in", ["h.0.mlp.c_fc.bias"], ["blocks.0.mlp.in.bias"]),
        ("position_embedding", ["wpe.weight"], ["position_embedding"]),
        ("blocks.0.attn.o", ["h.0.attn.c_proj.bias", "h.0.ln_1.weight"], []),  # it writes to the stream
    ],
)
def test_a_norm_or_bias_that_the_family_has_and_the_file_lacks_is_missing(tmp_path, role, without, said):
    assert missing(tmp_path, "gpt2", role, *without) == said
