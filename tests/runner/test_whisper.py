"""Whisper's decoder is run as in the whole model that hears silence."""

import json

import numpy as np
import pytest
import torch
import transformers

from generators.checkpoint.sources import in_folder
from generators.compute import running
from generators.runner.texts import TokenizedText
from generators.runner.usual import SILENCE
from tests.checkpoint import other_software as other
from tests.compute.harness import opened_in
from tests.runner.models import KINDS, by_stage, joined, write_tokenizer

V = 50_300  # beyond the tokens that Whisper's config names where a file says nothing


@pytest.fixture(scope="module")
def whole():
    torch.manual_seed(0)
    config = transformers.WhisperConfig(**{**other.WHISPER_CONFIG, "vocab_size": V}, attn_implementation="eager")
    model = transformers.WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(0.2 * torch.randn_like(parameter) * ("encoder.embed_positions" not in name))
    return model


def in_ct2(whole):
    return other.whisper_in_ct2({name: tensor.numpy() for name, tensor in whole.state_dict().items()})


@pytest.fixture(scope="module", params=["safetensors", "CTranslate2"])
def run(request, whole, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whisper")
    if request.param == "safetensors":
        whole.save_pretrained(folder)
    else:
        other.write_ctranslate2(folder / "model.bin", in_ct2(whole))
    write_tokenizer(folder, KINDS["gpt2"])
    np.save(folder / "held_out_tokens.npy", np.random.default_rng(0).integers(0, V, 2000).astype(np.uint16))
    opened = opened_in(folder, stack="decoder")
    assert opened.why_no_run is None
    return opened.run


def test_it_is_the_decoder_of_a_model_that_hears_silence(whole, run):
    ids = np.random.default_rng(1).integers(0, V, (5, 9)).astype(np.int32)
    sound = torch.full((5, 80, 24), SILENCE)
    with torch.no_grad():
        asked = {"input_features": sound, "decoder_input_ids": torch.as_tensor(ids)}
        found = whole(**asked, output_attentions=True, output_hidden_states=True)
    np.testing.assert_allclose(joined(run.logits, ids), found.logits, atol=1e-4)
    looks, states = by_stage(run.attention, ids), by_stage(run.hidden_states, ids)
    for layer in range(2):
        np.testing.assert_allclose(looks[layer], found.decoder_attentions[layer], atol=1e-5)
    for stage in range(3):
        np.testing.assert_allclose(states[stage], found.decoder_hidden_states[stage], atol=1e-4)
    assert run.position_kind == "table"


def test_silence_is_what_its_own_preprocessing_makes_of_it():
    made = transformers.WhisperFeatureExtractor()(np.zeros(16_000), sampling_rate=16_000, return_tensors="np")
    np.testing.assert_allclose(made["input_features"], SILENCE, atol=1e-6)


def test_every_tensor_of_ctranslate2_has_its_name_in_transformers(whole, tmp_path):
    other.write_ctranslate2(tmp_path / "model.bin", in_ct2(whole))
    found = dict(in_folder(tmp_path, stack="decoder").as_transformers())
    for name, tensor in whole.state_dict().items():
        np.testing.assert_array_equal(found.pop(name), tensor, err_msg=name)
    assert all(name.endswith("k_proj.bias") and not array.any() for name, array in found.items())


def test_a_text_comes_after_what_asks_for_english(tmp_path):
    write_tokenizer(tmp_path, KINDS["gpt2"])
    text = TokenizedText("a text", "0", np.zeros(9, np.int32), before=(7,))
    assert running.transcribed(tmp_path, text).before == (7,)  # a tokenizer without such tokens
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    names = running.ASKED.replace("><", "> <").split()
    as_is = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer["added_tokens"] = [{"id": 40 + i, "content": name, **as_is} for i, name in enumerate(names)]
    tokenizer["model"]["vocab"] |= {name: 40 + i for i, name in enumerate(names)}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    asked = running.transcribed(tmp_path, text)
    assert asked.before == (40, 41, 42, 43)
    assert asked.name == "a text, hearing silence"
