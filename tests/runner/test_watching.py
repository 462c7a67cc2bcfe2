"""What is seen of a running model, against what PyTorch and transformers compute of the same model."""

import numpy as np
import pytest
import torch
import transformers

from tests.runner.models import KINDS, N, by_stage, joined, last_states, random_ids


@pytest.mark.parametrize("name", sorted(KINDS))
def test_scores_are_what_attention_is_the_softmax_of(opened, name):
    run, ids = opened(name), random_ids(2, 8)
    weights, scores = by_stage(run.attention, ids), by_stage(run.attention, ids, scores=True)
    assert set(weights) == set(scores)
    for layer, given in scores.items():
        again = np.exp(given - given.max(axis=-1, keepdims=True))
        np.testing.assert_allclose(again / again.sum(axis=-1, keepdims=True), weights[layer], atol=1e-6)


def test_scores_are_not_rounded_to_nothing(anew):
    run = anew("gpt2")
    run._blocks[0].attn.c_attn.weight.mul_(60)
    seen = by_stage(run.attention, random_ids(2, 8), scores=True)
    assert seen[0][..., np.tril(np.ones((8, 8), bool))].min() < -200


def test_mlp_outputs_are_what_blocks_add(opened):
    run, ids = opened("gpt2"), random_ids(3, 8)
    block = run._blocks[0]
    written = torch.as_tensor(by_stage(run.mlp_outputs, ids)[0])
    before = torch.as_tensor(by_stage(run.hidden_states, ids)[1]) - written
    with torch.inference_mode():
        np.testing.assert_allclose(written, block.mlp(block.ln_2(before)), atol=1e-5)


def test_a_shift_is_a_vector_added_to_every_position_embedding(opened):
    run, ids = opened("gpt2"), random_ids(2, 8)
    by = np.random.default_rng(0).standard_normal(run.architecture.d_model)
    with run.shifted(by):
        shifted = joined(run.logits, ids)
    P = run._model.transformer.wpe.weight.detach().numpy()
    with run.replaced(rows=P + by):
        np.testing.assert_allclose(shifted, joined(run.logits, ids), atol=1e-4)


@pytest.mark.parametrize("name", KINDS)
def test_attention_computed_step_by_step_gives_what_transformers_computes_by_itself(name, opened):
    run, ids = opened(name), random_ids(3, N)
    model = transformers.AutoModel.from_pretrained(run._folder, dtype=torch.float32).eval()
    assert model.config._attn_implementation != "eager" or name in ("mpt", "bloom")  # which have no other
    with torch.no_grad():
        expected = model(input_ids=torch.from_numpy(ids.astype(np.int64))).last_hidden_state.numpy()
    np.testing.assert_allclose(last_states(run, ids), expected, atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.causal])
def test_last_logits_are_those_of_whole_rows(opened, name):
    run, ids = opened(name), random_ids(9, 12)
    np.testing.assert_allclose(joined(run.last_logits, ids), joined(run.logits, ids)[:, -1], rtol=1e-4, atol=1e-4)
