"""Which channels the bias of queries favors: as plain loops find them, planted, and not found in noise."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from generators.base.architecture import Rotary
from generators.findings.attention import FINDING as ATTENTION
from generators.findings.attention.query_bias import query_bias, turned_leads
from tests import synthetic

ARCH = synthetic.architecture(n_ctx=40, d_model=48, n_layer=3, n_head=4)


def noise():
    return synthetic.gaussian_weights(ARCH, 0)


def plain_sizes(weights, *, folded):
    """Return by layer and channel what a key of that channel alone adds to every query's score, a head at a time."""
    found = np.zeros((ARCH.n_layer, ARCH.d_model))
    for layer in range(ARCH.n_layer):
        keys, bias = (weights[f"blocks.{layer}.attn.{name}"].astype(float) for name in ("k", "q.bias"))
        for channel in range(ARCH.d_model):
            state = np.zeros(ARCH.d_model)
            state[channel] = weights[f"blocks.{layer}.ln1.gain"][channel] if folded else 1
            scores = [(state @ keys)[part] @ bias[part] for part in np.split(np.arange(ARCH.d_model), ARCH.n_head)]
            found[layer, channel] = np.mean(np.abs(scores))
    return found / found.mean(axis=1, keepdims=True)


def test_sizes_head_by_head():
    weights = noise()
    found, tables = query_bias(weights, ARCH)
    for form, folded in (("raw", False), ("folded", True)):
        sizes = plain_sizes(weights, folded=folded)
        best = int(sizes.mean(axis=0).argmax())
        assert (found[form]["channel"], found[form]["lead"]) == (best, pytest.approx(sizes.mean(axis=0)[best]))
        top = [row[form] for row in tables["query_bias"].named()]
        assert top == np.argsort(-sizes, axis=1)[:, :5].tolist()


def test_heads_that_share_keys():
    narrow, wide = noise(), noise()
    for role in [role for role in narrow if role.endswith("attn.k")]:
        narrow[role] = narrow[role][:, :24]
        wide[role] = np.repeat(narrow[role].reshape(48, 2, 12), 2, axis=1).reshape(48, 48)
    assert query_bias(narrow, replace(ARCH, n_kv_head=2))[0] == query_bias(wide, ARCH)[0]


def test_the_gain_decides_which_channel_leads():
    weights = noise()
    for layer in range(ARCH.n_layer):
        weights[f"blocks.{layer}.attn.k"][[5, 11]] = np.sign(weights[f"blocks.{layer}.attn.q.bias"])
        weights[f"blocks.{layer}.attn.k"][11] *= 0.7
        weights[f"blocks.{layer}.ln1.gain"][[5, 11]] = 0.5, 2
    result = synthetic.measure(ATTENTION, weights, ARCH)
    found = result.metrics["query_bias"]
    assert (found["raw"]["channel"], found["folded"]["channel"]) == (5, 11)
    answer = synthetic.by_id(ATTENTION, result)["query-bias-channel"].answer
    assert ("channel 11" in answer, answer.count("leads in layers 0 to 2")) == (True, 2)


@pytest.mark.parametrize("zeros", [False, True])
def test_without_a_gain_raw_weights_are_judged(zeros):
    weights = noise() | {"blocks.1.ln1.gain": np.zeros(48)}
    kept = {role: rows for role, rows in weights.items() if zeros or ".ln1." not in role}
    found, _ = query_bias(kept, ARCH)
    assert (found["raw"] is None, found["folded"]) == (False, None)


def test_axes_turned_at_random_as_full_rotations_give_them():
    pulls = np.random.default_rng(0).standard_normal((3, 2, 40))
    plain = []
    for seed in range(300):
        turned = pulls @ scipy.stats.special_ortho_group.rvs(40, random_state=seed)
        sizes = np.abs(turned).mean(axis=1)
        plain.append((sizes / sizes.mean(axis=1, keepdims=True)).mean(axis=0).max())
    assert scipy.stats.ks_2samp(turned_leads(pulls), plain).pvalue > 0.01


@pytest.mark.parametrize("kind", ["none", "zero", "turned"])
def test_queries_without_a_bias_that_stays(kind):
    weights, arch = noise(), ARCH
    if kind == "turned":
        arch = replace(ARCH, rotary=(Rotary(12, (1.0,) * 6),) * 3)
    elif kind == "zero":
        weights = {role: rows * (not role.endswith("q.bias")) for role, rows in weights.items()}
    else:
        weights = {role: rows for role, rows in weights.items() if not role.endswith("q.bias")}
    assert query_bias(weights, arch) == (None, {})
