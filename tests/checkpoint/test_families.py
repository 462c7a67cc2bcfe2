"""What config.json says becomes an architecture, or a sentence."""

import pytest

from generators.base.architecture import Architecture
from generators.base.errors import InputError
from generators.checkpoint.families import choose_family, families
from generators.checkpoint.families.bert import BERT
from generators.checkpoint.families.gpt2 import GPT1, GPT2
from generators.checkpoint.reading import read_architecture
from tests.checkpoints import config_of

ARCHITECTURE = {"n_layer": 2, "n_head": 2, "d_model": 24, "n_ctx": 64, "vocab_size": 50, "d_head": 12}


@pytest.mark.parametrize(
    ("family", "particular"),
    [
        (GPT2, {"norm_eps": 1e-5, "causal": True, "post_norm": False}),
        (GPT1, {"norm_eps": 1e-5, "causal": True, "post_norm": True}),
        (BERT, {"norm_eps": 1e-12, "causal": False, "post_norm": True}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_architecture_is_what_the_config_says(family, particular):
    read = read_architecture(config_of(family.name), family)
    assert read == Architecture(family=family.name, **ARCHITECTURE, **particular)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n_embd": "24"}, "'24' as n_embd"),
        ({"n_embd": 24.0}, "24.0 as n_embd"),
        ({"n_embd": None}, "None as n_embd"),
        ({"n_embd": [24]}, r"\[24\] as n_embd"),
        ({"n_layer": True}, "True as n_layer"),
        ({"n_layer": 0}, "0 as n_layer"),
        ({"n_layer": 10_000_000}, "10000000 as n_layer"),
        ({"n_head": 0}, "0 as n_head"),
        ({"n_head": -2}, "-2 as n_head"),
        ({"n_head": 5}, "5 heads share a width of 24"),
        ({"vocab_size": 10**30}, "as vocab_size"),
        ({"layer_norm_epsilon": "1e-5"}, "as layer_norm_epsilon"),
        ({"layer_norm_epsilon": float("nan")}, "as layer_norm_epsilon"),
        ({"layer_norm_epsilon": -1}, "as layer_norm_epsilon"),
        ({"layer_norm_epsilon": False}, "as layer_norm_epsilon"),
    ],
)
def test_sizes_that_cannot_be_are_refused(changed, said):
    with pytest.raises(InputError, match=said):
        read_architecture({**config_of("gpt2"), **changed}, GPT2)


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_the_family_is_described_by_model_type(family):
    for model_type in family.model_types:
        assert choose_family({"model_type": model_type}, None, family.stack or None) is family
    assert choose_family({}, family.name, family.stack or None) is family


def test_names_of_families_and_types_are_given_once():
    names = [family.name for family in families()]
    assert len(set(names)) == len(names)
    types = [(model_type, family.stack) for family in families() for model_type in family.model_types]
    assert len(set(types)) == len(types)


@pytest.mark.parametrize("model_type", ["mamba", "GPT2", "", 7, ["gpt2"], {"gpt2": 1}])
def test_an_unknown_family_is_refused_with_those_there_are(model_type):
    with pytest.raises(InputError, match="the atlas knows gpt2, openai-gpt, bert"):
        choose_family({"model_type": model_type}, None)


def test_a_config_without_model_type_is_refused_with_the_families_there_are():
    with pytest.raises(InputError, match="no model_type; the atlas knows the families gpt2, openai-gpt, bert"):
        choose_family({}, None)


def test_an_unknown_family_in_the_registry_is_refused_though_the_config_knows_one():
    with pytest.raises(InputError, match="There is no family 'rwkv'; the atlas knows gpt2, openai-gpt, bert"):
        choose_family({"model_type": "gpt2"}, "rwkv")


def test_a_family_that_was_mistyped_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"There is no family 'lllama' \(nearest: llama\); the atlas knows"):
        choose_family({"model_type": "gpt2"}, "lllama")
