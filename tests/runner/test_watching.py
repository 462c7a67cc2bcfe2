"""What is seen of a running model, against what PyTorch says of the same model."""

import numpy as np
import pytest
import torch

from tests.runner.models import KINDS, random_ids


@pytest.mark.parametrize("name", sorted(KINDS))
def test_scores_are_what_attention_is_the_softmax_of(opened, name):
    run, ids = opened(name), random_ids(2, 8)
    weights, scores = {}, {}
    run.attention(ids, lambda layer, _, seen: weights.setdefault(layer, seen.copy()))
    run.attention(ids, lambda layer, _, seen: scores.setdefault(layer, seen.copy()), scores=True)
    assert set(weights) == set(scores)
    for layer, given in scores.items():
        again = np.exp(given - given.max(axis=-1, keepdims=True))
        np.testing.assert_allclose(again / again.sum(axis=-1, keepdims=True), weights[layer], atol=1e-6)


def test_scores_are_not_rounded_to_nothing(opened):
    run, ids = opened("gpt2"), random_ids(2, 8)
    with torch.no_grad():
        block = run._blocks[0].attn.c_attn.weight
        before = block.clone()
        block *= 60
    try:
        seen = {}
        run.attention(ids, lambda layer, _, given: seen.setdefault(layer, given.copy()), scores=True)
    finally:
        with torch.no_grad():
            block.copy_(before)
    below = np.tril(np.ones((8, 8), bool))
    assert seen[0][..., below].min() < -200


@pytest.mark.parametrize("name", ["gpt2"])
def test_mlp_outputs_are_what_blocks_add(opened, name):
    run, ids = opened(name), random_ids(3, 8)
    wrote, stream = {}, {}
    assert run.mlp_outputs(ids, lambda layer, begin, seen: wrote.setdefault(layer, []).append(seen.copy()))
    run.hidden_states(ids, lambda stage, begin, seen: stream.setdefault(stage, []).append(seen.copy()))
    block = run._blocks[0]
    written = torch.as_tensor(np.concatenate(wrote[0]))
    before = torch.as_tensor(np.concatenate(stream[1])) - written
    with torch.inference_mode():
        np.testing.assert_allclose(written, block.mlp(block.ln_2(before)), atol=1e-5)


def test_a_shift_is_a_vector_added_to_every_position_embedding(opened):
    run, ids = opened("gpt2"), random_ids(2, 8)
    by = np.random.default_rng(0).standard_normal(run.architecture.d_model)
    shifted, replaced = [], []
    with run.shifted(by):
        run.logits(ids, lambda _, seen: shifted.append(seen.copy()))
    P = run._model.transformer.wpe.weight.detach().numpy()
    with run.replaced(rows=P + by):
        run.logits(ids, lambda _, seen: replaced.append(seen.copy()))
    np.testing.assert_allclose(np.concatenate(shifted), np.concatenate(replaced), atol=1e-4)
