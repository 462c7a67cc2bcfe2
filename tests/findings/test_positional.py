"""What positions alone give inside attention, against the reference that torch's own models were compared with."""

from dataclasses import replace

import numpy as np
import pytest

from generators.base.architecture import Buckets, Rotary
from generators.findings.attention import FINDING as ATTENTION
from generators.findings.attention.heads import PAIRINGS, random_keys
from generators.findings.heads.measure import weights_on_previous
from generators.findings.inputs import NotApplicableError
from generators.findings.positional import queries_and_keys, scoring, stream_of
from generators.maths.kernels import attention
from tests import synthetic
from tests.findings.by_reference import attention_to_positions as theirs

N, D, HEADS, LAYERS = 40, 32, 4, 3
PLAIN = synthetic.architecture(n_ctx=N, d_model=D, n_layer=LAYERS, n_head=HEADS)
TURNS = Rotary(4, (6.5, 30.0), adjacent=True, strength=1.3)
CASES = {
    "plain": {},
    "GPT-Neo: windows in every second layer, scores not scaled": {"windows": (None, 8, None), "score_scale": 1.0},
    "windows both ways": {"windows": (5, None, 5), "causal": False},
    "capped scores": {"score_cap": 0.7},
    "slopes": {"slopes": (0.5, 0.25, 0.125, 0.0625)},
    "MPNet: P and relative biases": {"buckets": Buckets(8, 16, both_ways=True), "causal": False, "post_norm": True},
    "relative biases of a decoder": {"buckets": Buckets(8, 16, both_ways=False)},
    "rotations in some layers": {"rotary": (TURNS, None, TURNS)},
    "root mean squares and shared keys": {"norm": "rms", "n_kv_head": 2},
    "all at once": {
        "windows": (9, None, 9),
        "score_cap": 2.0,
        "slopes": (0.5, 0.25, 0.125, 0.0625),
        "buckets": Buckets(8, 16, both_ways=False),
        "rotary": (TURNS,) * LAYERS,
        "scaled_by_layer": True,
        "n_kv_head": 1,
    },
}


def weights_of(arch, *, embedding_norm=False):
    weights = synthetic.gaussian_weights(arch, seed=4)
    rng = np.random.default_rng(5)
    shared = (arch.n_kv_head or HEADS) * arch.d_head
    for i in range(LAYERS):
        for role in (f"blocks.{i}.attn.k", f"blocks.{i}.attn.k.bias"):
            weights[role] = 2 * weights[role][..., :shared]
        if arch.buckets is not None:
            weights[f"blocks.{i}.attn.relative_bias"] = rng.standard_normal((8, HEADS)).astype(np.float32)
        if arch.norm == "rms":
            del weights[f"blocks.{i}.ln1.bias"]
    if embedding_norm:
        weights["embedding_norm.gain"] = (1 + rng.standard_normal(D)).astype(np.float32)
        if arch.norm == "layer":
            weights["embedding_norm.bias"] = rng.standard_normal(D).astype(np.float32)
    return weights


def ours(weights, arch, layer):
    """Return attention (heads, queries, keys) of a layer that reads positions alone, by what findings use."""
    stream = stream_of(weights, arch, weights["position_embedding"].astype(np.float64))
    queries, keys = queries_and_keys(weights, arch, stream, layer)
    scored = scoring(weights, arch, layer, N)
    return np.stack([whole(attention(queries[head], keys[head], scored, head)) for head in range(HEADS)])


def whole(parts):
    """Return attention (queries, keys) of a head that is given some queries at a time, every one of them once."""
    positions, weights = zip(*parts, strict=True)
    np.testing.assert_array_equal(np.concatenate(positions), np.arange(N))
    return np.concatenate(weights)


@pytest.mark.parametrize("embedding_norm", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_attention_by_positions_is_that_of_the_reference(case, embedding_norm):
    arch = replace(PLAIN, **CASES[case])
    weights = weights_of(arch, embedding_norm=embedding_norm)
    for layer in range(LAYERS):
        np.testing.assert_allclose(ours(weights, arch, layer), theirs(weights, arch, layer), atol=2e-5)


@pytest.mark.parametrize("case", [name for name in CASES if name != "plain"])
def test_each_of_these_changes_attention(case):
    """Left out, every one of them would be seen: what the comparison with the reference passes is not its absence."""
    arch = replace(PLAIN, **CASES[case])
    weights = weights_of(arch)
    without = replace(PLAIN, causal=arch.causal, n_kv_head=arch.n_kv_head)
    assert max(np.abs(ours(weights, arch, i) - ours(weights, without, i)).max() for i in range(LAYERS)) > 0.02


@pytest.mark.parametrize("case", CASES)
def test_both_findings_tell_the_same_kernel(case):
    arch = replace(PLAIN, **CASES[case])
    weights = weights_of(arch)
    P = weights["position_embedding"].astype(np.float64)
    expected = [
        np.mean([layer[head, query, query - 1] for query in range(1, N)])
        for layer in (theirs(weights, arch, i) for i in range(LAYERS))
        for head in range(HEADS)
    ]
    np.testing.assert_allclose(weights_on_previous(weights, arch, P), expected, atol=2e-5)
    heads = synthetic.measure(ATTENTION, weights, arch).metrics["positional_kernels"]["heads"]
    np.testing.assert_allclose([head["weight_at_1"] for head in heads], expected, atol=2e-5)


def test_keys_at_random_are_of_those_that_are_seen():
    queries = np.arange(1, N)
    for causal, window in ((True, 5), (False, 5), (True, None), (False, None)):
        offsets = queries[:, None] - random_keys(queries, N, causal, window)
        assert offsets.shape == (N - 1, PAIRINGS)
        assert offsets.max() == (N if window is None else window) - 1
        ahead = N - 2 if window is None else window - 1  # the first query is number 1
        assert offsets.min() == (0 if causal else -ahead)
    assert 0 <= random_keys(queries, N, False, 5).min() <= random_keys(queries, N, False, 5).max() < N


@pytest.mark.parametrize(("changed", "why"), [
    ({"positions": "relative"}, "DeBERTa"),
    ({"buckets": Buckets(8, 16, both_ways=False)}, "isn't in this checkpoint"),  # not taken for none
])  # fmt: skip
def test_no_kernel_for_distances(changed, why):
    arch = replace(PLAIN, **changed)
    with pytest.raises(NotApplicableError, match=why):
        synthetic.measure(ATTENTION, weights_of(PLAIN), arch)


def test_embeddings_of_a_width_of_their_own_give_no_kernel():
    weights = weights_of(PLAIN)
    with pytest.raises(NotApplicableError, match="a projection stands in between"):
        weights_on_previous(weights, PLAIN, weights["position_embedding"][:, :8])


@pytest.mark.parametrize("changed", [{"rotary": (TURNS,) * LAYERS}, {}])
def test_no_token_kernels_if_more_is_projected(changed):
    arch = replace(PLAIN, **changed)
    weights = weights_of(arch, embedding_norm=not changed)
    assert synthetic.measure(ATTENTION, weights, arch).metrics["token_kernels"] is None
    assert synthetic.measure(ATTENTION, weights_of(PLAIN), PLAIN).metrics["token_kernels"] is not None
