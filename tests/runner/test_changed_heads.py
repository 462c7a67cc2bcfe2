"""Rotary pairs that stand still and heads that are silenced, against a computation of our own."""

import numpy as np
import pytest
import torch

from generators.base.runs import Rotations
from tests.runner.models import BERT, HEADS, LAYERS, D, Kind, by_stage, last_states, random_ids

N_IDS, WIDTH = 16, 16
WIDE = {**BERT, "num_attention_heads": 2, "num_key_value_heads": 2}
GEMMA = {**WIDE, "head_dim": WIDTH, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"] * 2}
WHOLE = {"rope_type": "default", "rope_theta": 10000.0}
PARTIAL = {**WHOLE, "partial_rotary_factor": 0.5}
# Kinds that turn channel c with c + half, neighbours, half of the channels, and layers at speeds of their own.
TURNING = {
    "llama": (Kind("llama", True, None, WIDE), WIDTH, False),
    "cohere": (Kind("cohere", True, None, {**WIDE, "rope_parameters": WHOLE}), WIDTH, True),
    "gpt_neox": (Kind("gpt_neox", True, None, {**WIDE, "rope_parameters": PARTIAL}), WIDTH // 2, False),
    "gemma3_text": (Kind("gemma3_text", True, None, {**GEMMA, "num_hidden_layers": 4}), WIDTH, False),
}
OUTPUTS = {
    "gpt2": "h.1.attn.c_proj",
    "bert": "encoder.layer.1.attention.output.dense",
    "llama": "layers.1.self_attn.o_proj",
    "gpt_neox": "layers.1.attention.dense",
    "bloom": "h.1.self_attention.dense",
    "mpt": "blocks.1.attn.out_proj",
    "falcon": "h.1.self_attention.dense",
}


@pytest.fixture
def turning(opened):
    """Return a function that opens a model that turns queries and keys, and gives how: pairs' channels, neighbors."""

    def open_once(name):
        kind, dim, adjacent = TURNING[name]
        layers = kind.settings["num_hidden_layers"]
        return opened(f"turning {name}", kind, n_head=2, d_head=WIDTH, n_layer=layers), dim, adjacent

    return open_once


def first_attention(run, ids):
    return by_stage(run.attention, ids, layers=[0])[0]


def queries_and_keys(run, ids):
    """Return what the first layer compares before anything is turned: (windows, heads, n, width) each."""
    block, states = run._blocks[0], by_stage(run.hidden_states, ids)[0]
    attention = getattr(block, "self_attn", None) or block.attention
    with torch.no_grad():
        read = block.input_layernorm(torch.from_numpy(states))
        if hasattr(attention, "query_key_value"):
            joined = attention.query_key_value(read).reshape(*ids.shape, 2, 3, WIDTH)
            q, k = joined[..., 0, :], joined[..., 1, :]
        else:
            q, k = (getattr(attention, f"{name}_proj")(read).reshape(*ids.shape, 2, WIDTH) for name in "qk")
            if hasattr(attention, "q_norm"):
                q, k = attention.q_norm(q), attention.k_norm(k)
    return q.transpose(1, 2).numpy().astype(np.complex128), k.transpose(1, 2).numpy().astype(np.complex128)


def turned(x, dim, adjacent, pairs=range(WIDTH), base=10000.0):
    """Turn `pairs` as complex numbers; others stay."""
    a = np.arange(0, dim, 2) if adjacent else np.arange(dim // 2)
    b = a + 1 if adjacent else a + dim // 2
    speed = np.where(np.isin(np.arange(dim // 2), pairs), base ** (-np.arange(0, dim, 2) / dim), 0)
    z = (x[..., a] + 1j * x[..., b]) * np.exp(1j * np.arange(x.shape[-2])[:, None] * speed)
    x = x.copy()
    x[..., a], x[..., b] = z.real, z.imag
    return x.real


@pytest.mark.parametrize("pairs", [[0, 1], [2, 3], [], [1]])
@pytest.mark.parametrize("name", TURNING)
def test_only_chosen_pairs_turn(turning, name, pairs):
    (run, dim, adjacent), ids = turning(name), random_ids(3, N_IDS)
    q, k = (turned(x, dim, adjacent, pairs) for x in queries_and_keys(run, ids))
    check_attention(run, ids, name, q, k, Rotations(pairs=pairs))


def check_attention(run, ids, name, q, k, rotations):
    """Compare attention of the first layer under other rotations with that of queries and keys turned here."""
    scores = q @ k.swapaxes(-1, -2) * (256**-0.5 if "gemma" in name else WIDTH**-0.5)
    offsets = np.arange(N_IDS)[:, None] - np.arange(N_IDS)
    hidden = (offsets < 0) | (offsets >= 8 if "gemma" in name else False)
    expected = np.exp(np.where(hidden, -np.inf, scores))
    expected /= expected.sum(axis=-1, keepdims=True)
    before = first_attention(run, ids)
    with run.replaced(rotations=rotations):
        np.testing.assert_allclose(first_attention(run, ids), expected, atol=1e-5)
    np.testing.assert_array_equal(first_attention(run, ids), before)
    assert np.abs(before - expected).max() > 1e-4


@pytest.mark.parametrize("name", TURNING)
def test_other_bases_and_other_pairs(turning, name):
    (run, dim, adjacent), ids = turning(name), random_ids(3, N_IDS)
    given = queries_and_keys(run, ids)
    q, k = (turned(x, dim, adjacent, base=1e6) for x in given)
    check_attention(run, ids, name, q, k, Rotations(theta=100.0))
    q, k = (turned(x, dim, not adjacent) for x in given)
    channels = np.arange(dim).reshape((2, -1) if adjacent else (-1, 2)).T.ravel()
    check_attention(run, ids, name, q, k, Rotations(channels=channels))


def test_layers_exchange_their_rotations(turning):
    # Its sliding layers have base 10,000, its full ones 1,000,000.
    (run, dim, _), ids = turning("gemma3_text"), random_ids(3, N_IDS)
    q, k = (turned(x, dim, False, base=1e6) for x in queries_and_keys(run, ids))
    check_attention(run, ids, "gemma3_text", q, k, Rotations(exchanged=True))


@pytest.mark.parametrize("name", [*TURNING, "bert", "albert"])
def test_queries_keys_and_values_are_those_that_give_attention(opened, turning, name):
    run = turning(name)[0] if name in TURNING else opened(name)
    ids, seen = random_ids(5, N_IDS), {}
    assert run.queries_keys_values(ids, lambda layer, begin, *arrays: seen.setdefault(layer, []).append(arrays))
    looks = by_stage(run.attention, ids)
    assert list(seen) == list(looks)
    for layer, found in seen.items():
        q, k, v = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        assert k.shape == v.shape
        scores = q @ k.swapaxes(-1, -2) * (256**-0.5 if "gemma" in name else q.shape[-1] ** -0.5)
        weights = np.exp(np.where(looks[layer] > 0, scores, -np.inf))
        np.testing.assert_allclose(weights / weights.sum(axis=-1, keepdims=True), looks[layer], atol=1e-5)


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_silenced_head_is_one_whose_output_weights_are_zero(opened, anew, name):
    run, other, ids = opened(name), anew(name), random_ids(3, N_IDS)
    before = last_states(run, ids)
    with run.silenced(1, [2]):
        silenced = last_states(run, ids)
    np.testing.assert_array_equal(last_states(run, ids), before)
    weight, width = other._base.get_submodule(OUTPUTS[name]).weight, D // HEADS
    inputs = weight if name == "gpt2" else weight.T  # Conv1D keeps the input first
    inputs[2 * width : 3 * width] = 0
    np.testing.assert_allclose(silenced, last_states(other, ids), atol=1e-6)
    assert np.abs(silenced - before).max() > 1e-4
    assert len(run._outputs) == LAYERS
