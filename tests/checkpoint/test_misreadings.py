"""What was once read wrongly without a word: each is read rightly now, or refused. Weights are made here, by hand."""

import json

import numpy as np
import pytest

from generators.base.errors import InputError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.sources import in_folder
from tests.checkpoints import read_model, tensors_of, write_checkpoint

D, HEADS, HEAD, N, V, F = 24, 3, 8, 10, 30, 8
HF = {"num_hidden_layers": 2, "num_attention_heads": HEADS, "hidden_size": D, "max_position_embeddings": N}
HF |= {"vocab_size": V, "intermediate_size": F}


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("pad", [1, 0, 4])
def test_rows_up_to_the_padding_s_are_no_positions(tmp_path, pad):
    table = noise(N, D)
    config = {"model_type": "roberta", **HF, "pad_token_id": pad}
    checkpoint = read_model(tmp_path, config, {"roberta.embeddings.position_embeddings.weight": table})
    assert checkpoint.architecture.n_ctx == N - pad - 1
    np.testing.assert_array_equal(checkpoint["position_embedding"], table[pad + 1 :])


@pytest.mark.parametrize("names", [("embed.weight", "embeddings.weight"), ("head.weight",), ("embed_tokens.bias",)])
def test_without_a_table_one_matrix_alone_must_fit(tmp_path, names):
    tensors = {name: noise(V, D, seed=i) for i, name in enumerate(names)}
    with pytest.raises(InputError, match="'mamba' is unknown"):
        read_model(tmp_path, {"model_type": "mamba", "num_hidden_layers": 2, "vocab_size": V}, tensors)


@pytest.mark.parametrize("typed", ["hubert", "gemma3n", "Llama"])
def test_the_sentence_on_an_unknown_type_names_none_that_sounds_like_it(tmp_path, typed):
    with pytest.raises(InputError, match=r"how to add a table.*only its token embedding could be read") as refusal:
        read_model(tmp_path, {"model_type": typed, "vocab_size": 3}, tensors_of("gpt2"))
    assert "nearest" not in str(refusal.value)
    assert "gemma" not in str(refusal.value).replace(typed, "")


def test_half_of_a_pair_must_be_named(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    with pytest.raises(InputError, match="several models in one: name one by its ending, --encoder or --decoder"):
        open_checkpoint(in_folder(tmp_path))
    with pytest.raises(InputError, match="has no vision of its own"):
        open_checkpoint(in_folder(tmp_path, stack="vision"))


NARROW = 6
OPT_350M = {"model_type": "opt", **HF, "do_layer_norm_before": False, "word_embed_proj_dim": NARROW}


def test_narrow_embeddings_are_read_in_the_stream_by_both_of_their_tensors(tmp_path):
    tensors = {
        "model.decoder.embed_tokens.weight": noise(V, NARROW),
        "model.decoder.project_in.weight": noise(D, NARROW, seed=1),
        "model.decoder.project_out.weight": noise(NARROW, D, seed=2),
    }
    E, put_in, put_out = tensors.values()
    checkpoint = read_model(tmp_path, OPT_350M, tensors)
    np.testing.assert_allclose(checkpoint["token_embedding"], E @ put_in.T, rtol=1e-5)
    np.testing.assert_allclose(checkpoint["unembedding"], E @ put_out, rtol=1e-5)
    assert not checkpoint.architecture.tied
    assert checkpoint.to_come(["token_embedding"]) == 0
    record = checkpoint.record("token_embedding")
    assert record.name == "model.decoder.embed_tokens.weight x model.decoder.project_in.weight"
    tensors["model.decoder.project_in.weight"] = noise(D, NARROW, seed=3)
    after = read_model(tmp_path / "after", OPT_350M, tensors)
    assert after.record("token_embedding").sha256 != record.sha256
    assert after["token_embedding"].shape == (V, D)
    assert after.changed_since({record.name: record.sha256}) == record.name
    assert "through" in after.layout("token_embedding")
    del tensors["model.decoder.project_in.weight"]
    checkpoint = read_model(tmp_path / "partial", OPT_350M, tensors)
    assert "token_embedding" not in checkpoint
    assert checkpoint.lacking("token_embedding") == "project_in.weight (token_embedding)"
    assert "unembedding" in checkpoint


def test_layouts_say_only_what_is_unusual(tmp_path):
    write_checkpoint(tmp_path)
    assert open_checkpoint(in_folder(tmp_path)).layout("token_embedding") == {"shape": "V d"}
