from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from generators.findings import plantings
from generators.findings.attention import FINDING as ATTENTION
from generators.findings.attention import with_tokens
from generators.findings.attention.heads import random_keys
from generators.findings.inputs import Inputs
from generators.tokens.frequency import TokenFrequency
from tests import synthetic
from tests.findings.by_reference import attention_to

D = 16
SMALL = synthetic.architecture(n_ctx=26, d_model=D, n_layer=1, vocab_size=120)
NO_BIASES = ("ln1.bias", "attn.q.bias", "attn.k.bias")

# name -> what differs from a layer-normed decoder with biases: in the architecture, and roles that are left out
CASES = {
    "layer norm": ({}, ()),
    "layer norm, both ways": ({"causal": False}, ()),
    "root mean square": ({"norm": "rms"}, ("ln1.bias",)),
    "root mean square, both ways": ({"norm": "rms", "causal": False}, NO_BIASES),
    "no first norm": ({"post_norm": True, "n_layer": 2}, ("blocks.0.ln1.gain", "blocks.0.ln1.bias")),
    "no first norm, both ways": ({"causal": False}, ("ln1.gain", "ln1.bias")),
    "no biases": ({}, NO_BIASES),
    "biases of queries and keys alone": ({}, ("ln1.bias",)),
    "bias of the norm alone": ({}, ("attn.q.bias", "attn.k.bias")),
    "scores scaled by layer": ({"n_layer": 2, "scaled_by_layer": True}, ()),
    "scores not scaled": ({"score_scale": 1.0}, ()),
    "tokens multiplied": ({"embedding_scale": 4.0}, ()),
    "a large eps": ({"norm_eps": 0.5}, ()),
    "heads that share keys": ({"n_head": 4, "n_kv_head": 2}, ()),
    "heads that share one key, both ways": ({"n_head": 4, "n_kv_head": 1, "causal": False}, NO_BIASES),
    "the shortest": ({"n_ctx": 16}, ()),
    "the shortest, both ways": ({"n_ctx": 16, "causal": False}, ()),
    "longer than the offsets that are kept, both ways": ({"n_ctx": 40, "causal": False}, ()),
    "windows, in one layer of two": ({"n_layer": 2, "windows": (None, 6)}, ()),
    "windows both ways": ({"windows": (6,), "causal": False}, ()),
    "capped scores": ({"score_cap": 0.5}, ()),
    "slopes": ({"slopes": (0.5, 0.0625)}, ()),
    "late queries": ({"n_ctx": 200, "n_head": 1}, ()),
}


def claim_of(result):
    """Return the claim with tokens on the positions; without tokens that by position alone."""
    alone = result.metrics["token_kernels"] is None
    return synthetic.by_id(ATTENTION, result)["previous-token-head" if alone else "previous-token-with-tokens"]


def weights_of(arch, left_out=(), seed=0, types=False):
    weights = synthetic.gaussian_weights(arch, seed, vocab_size=arch.vocab_size)
    rng = np.random.default_rng([seed, 1])
    weights["token_embedding"] = (0.5 * rng.standard_normal((arch.vocab_size, D)) + 0.2).astype(np.float32)
    if types:
        weights["token_type_embedding"] = 2 * rng.standard_normal((2, D)).astype(np.float32)
    width = (arch.n_kv_head or arch.n_head) * arch.d_head
    for role in weights:
        if "attn.k" in role:
            weights[role] = weights[role][..., :width]
    return {role: array for role, array in weights.items() if not role.endswith(left_out)}


def compute(weights, arch, frequencies=()):
    return synthetic.measure(ATTENTION, weights, arch, frequencies=frequencies)


def plain_heads(weights, arch):
    """Return every head's mean weight by offset, its mean at 1 in every draw, and its means on random keys.

    It reads E[u] + P and what the model adds. Only which tokens stand where is taken from what is tested.
    """
    exact, n = {role: array.astype(np.float64) for role, array in weights.items()}, arch.n_ctx
    sample = with_tokens._sample(Inputs(weights, arch), n)
    ids = {(row * arch.embedding_scale).tobytes(): token for token, row in enumerate(exact["token_embedding"])}
    pool = np.array([ids[row.tobytes()] for row in sample.pool])
    by_offset, at_random = defaultdict(list), []
    for tokens, queries in zip(sample.tokens, sample.queries, strict=True):
        rows = exact["token_embedding"][pool[tokens]] * arch.embedding_scale
        rows = rows + exact["position_embedding"] + exact.get("token_type_embedding", [0])[0]
        layers = [attention_to(rows, exact, arch, layer) for layer in range(arch.n_layer)]
        keys = [random_keys(queries, n, arch.causal, window) for window in arch.windows or [None] * arch.n_layer]
        at_random.append([
            np.mean([head[query, keys[layer][row]] for row, query in enumerate(queries)], axis=0)
            for layer, heads in enumerate(layers) for head in heads
        ])  # fmt: skip
        heads, here = np.concatenate(layers), defaultdict(list)
        for query in queries:
            for key in range(query + 1 if arch.causal else n):
                here[query - key].append(heads[:, query, key])
        for offset, values in here.items():
            by_offset[offset].append(np.mean(values, axis=0))
    means = {offset: np.mean(values, axis=0) for offset, values in by_offset.items()}
    return means, np.array(by_offset[1]), np.mean(at_random, axis=0)


@pytest.mark.parametrize("types", [False, True], ids=["", "token types"])
@pytest.mark.parametrize("case", CASES)
def test_kernels_with_tokens_are_those_of_a_plain_computation(case, types):
    changed, left_out = CASES[case]
    arch = replace(SMALL, **changed, d_head=D // changed.get("n_head", SMALL.n_head))
    weights = weights_of(arch, left_out, len(case), types)
    result = compute(weights, arch)
    described = result.metrics["token_kernels"]["heads"]
    offsets, kernels = result.arrays["token_kernel_offsets"].tolist(), result.arrays["token_kernels"]
    means, _, at_random = plain_heads(weights, arch)
    assert offsets == sorted(offset for offset in means if abs(offset) <= 32)
    expected = np.array([means[offset] for offset in offsets]).T
    np.testing.assert_allclose(kernels, expected, rtol=1e-3, atol=1e-6)
    for index, (reported, kernel) in enumerate(zip(described, expected, strict=True)):
        peak, at_1 = offsets[kernel.argmax()], means[1][index]
        assert (reported["layer"], reported["head"]) == divmod(index, arch.n_head)
        assert (reported["peak_offset"], reported["previous_token_head"]) == (peak, bool(peak == 1 and at_1 >= 0.5))
        assert reported["weight_at_1"] == pytest.approx(at_1, rel=1e-3)
    stored, chance = result.metrics["chance"]["previous_token_with_tokens"], at_random.max(axis=0)
    assert stored["median"] == pytest.approx(np.median(chance), rel=1e-3)
    assert stored["limit"] == pytest.approx(chance.max(), rel=1e-3)  # of 100


def test_the_interval_of_the_best_head_draws_draws_again():
    arch = replace(SMALL, causal=False, n_head=4, d_head=4)
    weights = weights_of(arch, seed=2)
    result = compute(weights, arch)
    means, at_1, _ = plain_heads(weights, arch)
    best, (low, high) = means[1].argmax(), result.metrics["token_kernels"]["interval_of_best"]
    assert low < means[1][best] < high
    assert (high - low) / 2 == pytest.approx(1.96 * at_1[:, best].std() / np.sqrt(64), rel=0.2)
    assert claim_of(result).interval == (low, high)


def frequency(source, log_frequency, proxy=False):
    return TokenFrequency(source, f"the {source}", log_frequency, 1.0, proxy)


def drawn_tokens(frequencies, arch=SMALL):
    weights = weights_of(arch)
    sample = with_tokens._sample(Inputs(weights, arch, frequencies=frequencies), arch.n_ctx)
    rows = weights["token_embedding"].astype(np.float64)
    found = [int(np.flatnonzero((rows == row).all(axis=1))[0]) for row in sample.pool]
    return np.bincount(found, minlength=len(rows)) / len(found), sample


WORDS = np.where(np.isin(np.arange(120), (3, 7)), np.log(np.where(np.arange(120) == 3, 0.09, 0.01)), np.nan)
COUNTS = np.zeros(120)
COUNTS[[3, 7, 50]] = [600, 300, 100]
INDEX = frequency("index", -np.arange(120.0), True)


@pytest.mark.parametrize(("frequencies", "expected"), [
    ((frequency("counts", np.log1p(COUNTS)),), {3: 0.6, 7: 0.3, 50: 0.1}),
    ((frequency("wordfreq", WORDS), INDEX), {3: 0.9, 7: 0.1}), ((), {}), ((INDEX,), {}),
])  # fmt: skip
def test_tokens_are_drawn_by_their_frequency(frequencies, expected):
    shares, _ = drawn_tokens(frequencies)
    if expected:
        np.testing.assert_allclose(shares[[*expected]], [*expected.values()], atol=0.04)
        assert shares[[*expected]].sum() == pytest.approx(1)
    else:
        assert np.count_nonzero(shares) > 110
        assert shares.max() < 3 / 120


@pytest.mark.parametrize(("n", "causal", "first", "last"), [
    (16, True, 1, 15), (16, False, 1, 14), (199, True, 1, 198), (200, True, 100, 199), (300, False, 100, 298),
])  # fmt: skip
def test_64_draws_of_tokens_are_each_looked_at_from_16_positions(n, causal, first, last):
    _, sample = drawn_tokens((), replace(SMALL, n_ctx=n, causal=causal))
    assert sample.tokens.shape == (64, n)
    assert sample.queries.shape == (64, min(16, last - first + 1))
    assert (sample.queries.min(), sample.queries.max()) == (first, last)
    assert all(len({*queries}) == len(queries) for queries in sample.queries)


def test_frequent_tokens_decide_what_a_head_sees():
    arch = synthetic.architecture(n_ctx=128, vocab_size=120)
    weights = plantings.with_positional_heads(synthetic.gaussian_weights(arch, 0, vocab_size=120), arch, {(0, 1): 1})
    weights["token_embedding"][:60] *= 0.02
    weights["token_embedding"][60:] *= 20
    faint, loud = (np.log1p(1000.0 * there) for there in (np.arange(120) < 60, np.arange(120) >= 60))
    assert claim_of(compute(weights, arch, (frequency("counts", faint),))).verdict == "holds"
    assert claim_of(compute(weights, arch, (frequency("counts", loud),))).verdict == "fails"


@pytest.mark.parametrize(("planted", "said"), [
    ([(0, 1)], "one head"), ([(1, 0)], "head is beyond layer 0"), ([(0, 1), (1, 0), (2, 1)], "2 of these 3 heads"),
])  # fmt: skip
def test_heads_beyond_layer_0_are_counted(planted, said):
    arch = synthetic.architecture(n_ctx=128, n_layer=3)
    weights = synthetic.gaussian_weights(arch, seed=0)
    weights["token_embedding"] *= np.float32(0.02)
    weights = plantings.with_positional_heads(weights, arch, dict.fromkeys(planted, 1))
    assert said in claim_of(compute(weights, arch)).answer


def judged(heads, limit, stored):
    """Judge heads given as (peak, weight at offset 1), with tokens on the positions or, without, positions alone."""
    metrics = compute(weights_of(SMALL), SMALL).metrics
    plain = metrics[stored]["heads"][0]
    described = []
    for i, (peak, at_1) in enumerate(heads):
        found = peak == 1 and at_1 >= 0.5
        described.append({**plain, "head": i, "peak_offset": peak, "weight_at_1": at_1, "previous_token_head": found})
    changed = {"token_kernels": None, stored: {**metrics[stored], "heads": described}}
    chance = {name: synthetic.null(0.05, limit) for name in ("previous_token", "previous_token_with_tokens")}
    return claim_of(synthetic.measured_with(metrics, {"chance": chance}, query_bias=None, **changed))


@pytest.mark.parametrize(("heads", "limit", "value", "verdict"), [
    ([(1, 0.49), (0, 0.1)], 0.1, 0.49, "fails"),
    ([(1, 0.50), (0, 0.1)], 0.1, 0.50, "holds"),
    ([(1, 0.50), (0, 0.1)], 0.5, 0.50, "fails"),  # as much on keys at random
    ([(1, 0.50), (-20, 0.6)], 0.1, 0.50, "holds"),  # a far offset exists for few queries and can hold more than 1
    ([(-20, 0.6), (0, 0.1)], 0.1, 0.60, "fails"),
    ([(0, 0.25), (0, 0.1)], 0.1, 0.25, "fails"),
])  # fmt: skip
@pytest.mark.parametrize("stored", ["token_kernels", "positional_kernels"])
def test_thresholds_of_a_previous_token_head(heads, limit, value, verdict, stored):
    claim = judged(heads, limit, stored)
    assert (claim.verdict, claim.value, claim.baseline, claim.threshold) == (verdict, value, 0.05, 0.5)


def test_the_row_enters_kernels_with_tokens_alone():
    arch = replace(SMALL, causal=False)
    weights = weights_of(arch, types=True)
    zero = {"token_type_embedding": 0 * weights["token_type_embedding"]}
    stored, none = (compute({**weights, **changed}, arch).metrics for changed in ({}, zero))
    assert stored["positional_kernels"] == none["positional_kernels"]
    assert stored["token_kernels"] != none["token_kernels"]
