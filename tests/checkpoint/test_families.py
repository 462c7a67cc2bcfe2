"""What config.json says becomes an architecture, or a sentence."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from generators.base.errors import InputError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.families import choose_family, families
from generators.checkpoint.families.bert import BERT
from generators.checkpoint.families.gpt2 import GPT2
from generators.checkpoint.reading import read_architecture
from generators.checkpoint.sources import in_folder
from tests.checkpoints import WEIGHTS, config_of, read_model, write_json

RELATIVE = {"position_embedding_type": "relative_key"}, {"position_embedding_type": "relative_key_query"}
SWITCHES = ("rotary_dim", "alibi", "attn_softcap", "use_relative_positions", "rope_theta")


@pytest.mark.parametrize(
    ("family", "changed", "said"),
    [
        (GPT2, {"n_embd": "24"}, "'24' as n_embd"),
        (GPT2, {"n_embd": 24.0}, "24.0 as n_embd"),
        (GPT2, {"n_layer": True}, "True as n_layer"),
        (GPT2, {"n_layer": 0}, "0 as n_layer"),
        (GPT2, {"n_layer": 10_000_000}, "10000000 as n_layer"),
        (GPT2, {"n_head": -2}, "-2 as n_head"),
        (GPT2, {"n_head": 5}, "5 heads share a width of 24"),
        (GPT2, {"vocab_size": 10**30}, "as vocab_size"),
        *((GPT2, {"layer_norm_epsilon": e}, "as layer_norm_epsilon") for e in ("1e-5", float("nan"), -1, False)),
        (GPT2, {"scale_attn_weights": "no"}, "'no' as scale_attn_weights, neither true nor false"),
        *((GPT2, {name: 64}, f"{name} to 64, which the table of the family 'gpt2' does not") for name in SWITCHES),
        *(
            (BERT, said, f"'{said['position_embedding_type']}' as .*; the atlas knows 'absolute'")
            for said in RELATIVE
        ),
    ],
)
def test_settings_that_cannot_be_or_that_no_table_knows_are_refused(family, changed, said):
    with pytest.raises(InputError, match=said):
        read_architecture({**config_of(family.name), **changed}, family)


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_switch_that_is_off_is_read_over(switch):
    assert all(read_architecture({**config_of("gpt2"), switch: off}, GPT2) for off in (None, False))


def test_names_of_families_and_types_are_given_once():
    names = [family.name for family in families()]
    assert len(set(names)) == len(names)
    types = [(model_type, family.stack) for family in families() for model_type in family.model_types]
    assert len(set(types)) == len(types)


KNOWN = "the atlas knows gpt2, openai-gpt, bert"


@pytest.mark.parametrize(
    ("config", "named", "said"),
    [
        *(({"model_type": kind}, None, KNOWN) for kind in ("mamba", "GPT2", "", 7, ["gpt2"], {"gpt2": 1})),
        ({}, None, "no model_type; the atlas knows the families gpt2, openai-gpt, bert"),
        ({"model_type": "gpt2"}, "rwkv", f"There is no family 'rwkv'; {KNOWN}"),
        ({"model_type": "gpt2"}, "lllama", r"There is no family 'lllama' \(nearest: llama\); the atlas knows"),
    ],
)
def test_an_unknown_family_is_refused_with_those_there_are(config, named, said):
    with pytest.raises(InputError, match=said):
        choose_family(config, named)


HALF = {"partial_rotary_factor": 0.5}
SIZES_BY_ANY_NAME = {
    **dict.fromkeys(("num_hidden_layers", "n_layers", "encoder_layers", "num_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_heads", "encoder_attention_heads", "num_heads"), 4),
    **dict.fromkeys(("hidden_size", "d_model"), 32),
    **dict.fromkeys(("max_position_embeddings", "max_seq_len"), 64),
    "vocab_size": 100,
    "head_dim": 8,
}


@pytest.mark.parametrize(
    ("family", "setting", "said"),
    [
        ("mpt", {"attn_config": {"alibi": True, "clip_qkv": 6}}, "gives 6 as attn_config.clip_qkv: .* are clipped"),
        ("mpt", {"attn_config": {"alibi": True, "alibi_bias_max": 16}}, "gives 16 .* transformers computes with 8"),
        ("olmo", {"clip_qkv": 8.0}, "gives 8.0 as clip_qkv: .* are clipped"),
        ("gemma3_text", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}, "can't read"),
        ("m2m_100--encoder", {"pad_token_id": 0}, "gives 0 as pad_token_id"),
        ("smollm3", {"no_rope_layers": True}, "no_rope_layers that are not"),
        ("smollm3", {"no_rope_layers": [1, 2]}, "no_rope_layers that are not"),
        ("ernie", {"use_task_id": True}, "gives True as use_task_id"),
    ],
)
def test_settings_that_no_table_describes_are_refused_with_the_reason(family, setting, said):
    table = next(known for known in families() if known.name == family)
    with pytest.raises(InputError, match=said):
        read_architecture({**SIZES_BY_ANY_NAME, **setting}, table)


@pytest.mark.parametrize(
    ("family", "setting"),
    [
        ("mpt", {"attn_config": {"alibi": True, "clip_qkv": None, "alibi_bias_max": 8}}),
        ("olmo", {"clip_qkv": None}),
        ("llama", HALF),
        ("gemma3_text", {"attn_logit_softcapping": 50.0}),
        ("apertus", {"qk_norm": True, "post_norm": False, "rope_scaling": None}),
        ("umt5--encoder", {"scalable_attention": True}),
        ("pegasus--encoder", {"static_position_embeddings": True, "normalize_before": True}),
    ],
)
def test_settings_that_change_nothing_are_read_over(family, setting):
    table = next(known for known in families() if known.name == family)
    architecture = read_architecture({**SIZES_BY_ANY_NAME, **setting}, table)
    assert architecture == read_architecture(SIZES_BY_ANY_NAME, table)
    assert all(turn.dim == architecture.d_head for turn in architecture.rotary)


def test_what_a_pair_lacks_is_called_by_both_of_its_names(tmp_path):
    config = {"model_type": "bart", **SIZES_BY_ANY_NAME, "decoder_layers": 1, "decoder_attention_heads": 4}
    write_json(tmp_path / "config.json", config)
    save_file({"model.decoder.layers.0.fc1.bias": np.zeros(4, np.float32)}, tmp_path / WEIGHTS)
    checkpoint = open_checkpoint(in_folder(tmp_path, stack="decoder"))
    said = checkpoint.lacking("token_embedding")
    assert said == "decoder.embed_tokens.weight or shared.weight (token_embedding)"


@pytest.mark.parametrize("pad", [1, 0, 4])
def test_rows_up_to_the_padding_s_are_no_positions(tmp_path, pad):
    table = np.arange(10 * 32, dtype=np.float32).reshape(10, 32)
    config = {**SIZES_BY_ANY_NAME, "model_type": "roberta", "max_position_embeddings": 10, "pad_token_id": pad}
    checkpoint = read_model(tmp_path, config, {"roberta.embeddings.position_embeddings.weight": table})
    assert checkpoint.architecture.n_ctx == 9 - pad
    np.testing.assert_array_equal(checkpoint["position_embedding"], table[pad + 1 :])


@pytest.mark.parametrize("names", [("embed.weight", "embeddings.weight"), ("head.weight",), ("embed_tokens.bias",)])
def test_without_a_table_one_matrix_alone_must_fit(tmp_path, names):
    tensors = {name: np.full((30, 24), i, np.float32) for i, name in enumerate(names)}
    with pytest.raises(InputError, match=r"'mamba' is unknown.*how to add a table.*only its token embedding could"):
        read_model(tmp_path, {"model_type": "mamba", "num_hidden_layers": 2, "vocab_size": 30}, tensors)


def test_half_of_a_pair_must_be_named(tmp_path):
    write_json(tmp_path / "config.json", {"model_type": "t5"})
    with pytest.raises(InputError, match="several models in one: name one by its ending, --encoder or --decoder"):
        open_checkpoint(in_folder(tmp_path))
    with pytest.raises(InputError, match="has no vision of its own"):
        open_checkpoint(in_folder(tmp_path, stack="vision"))
