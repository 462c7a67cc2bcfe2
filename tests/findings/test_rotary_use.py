from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from generators.base.architecture import Rotary
from generators.findings.rotary_use import FINDING
from generators.findings.rotary_use.measure import within
from tests import synthetic
from tests.findings.by_reference import attention_to
from tests.findings.stand_in import measure_run

N, D, LAYERS, HEADS, PAIRS = 72, 128, 3, 4, 16
PERIODS = tuple(2 * np.pi * 10000 ** (np.arange(PAIRS) / PAIRS))
ARCH = replace(
    synthetic.architecture(n_ctx=N, d_model=D, n_layer=LAYERS, n_head=HEADS),
    positions="rotary",
    rotary=(Rotary(2 * PAIRS, PERIODS),) * LAYERS,
)
FAST, SLOW = range(PAIRS // 2), range(PAIRS // 2, PAIRS)
claims_of = partial(synthetic.by_id, FINDING)


def weights_of(previous):
    """Return weights whose `previous` heads look one token back by fast pairs; others compare content."""
    rng = np.random.default_rng(0)
    weights = {}
    for layer in range(LAYERS):
        q, k = rng.standard_normal((2, D, HEADS, 2 * PAIRS)) * 0.15
        bias = np.zeros((2, HEADS, 2 * PAIRS))
        for head in range(HEADS):
            if (layer, head) in previous:
                q[:, head] = k[:, head] = 0
                angle = 1 / (np.array(PERIODS) / (2 * np.pi))
                for pair in FAST:
                    bias[1, head, pair] = 4
                    bias[0, head, [pair, pair + PAIRS]] = 4 * np.cos(angle[pair]), -4 * np.sin(angle[pair])
            else:
                q[:, head, [*FAST, *(pair + PAIRS for pair in FAST)]] = 0
        for name, matrix, row in (("q", q, bias[0]), ("k", k, bias[1])):
            weights[f"blocks.{layer}.attn.{name}"] = matrix.reshape(D, -1).astype(np.float32)
            weights[f"blocks.{layer}.attn.{name}.bias"] = row.ravel().astype(np.float32)
        weights[f"blocks.{layer}.ln1.gain"] = np.ones(D, np.float32)
    return weights


def measured(costs, weights=None, arch=ARCH):
    def states(stage, ids):
        return np.random.default_rng([7, stage]).standard_normal((*ids.shape, D)).astype(np.float32)

    def attend(layer, ids, silenced):
        return np.stack([attention_to(rows, weights, arch, layer) for rows in states(layer, ids)])

    planted = {"states": states, "attend": attend if weights else no_attention, "pairs": costs}
    return measure_run(FINDING, arch, None, weights, kind="rotary", **planted)


FALLING = 0.6 ** np.arange(PAIRS)  # what each pair costs, fastest first


def test_pairs_that_are_hardly_needed_can_stand_still():
    result = measured(FALLING)
    assert result.metrics["pairs"] == PAIRS
    assert result.metrics["stopped"]["mean"] == pytest.approx(FALLING.sum(), rel=0.01)
    rows = {(row["which"], row["turning"]): row["damage"] for row in result.metrics["damages"]}
    assert rows["fastest", 4] == pytest.approx(FALLING[4:].sum() / FALLING.sum(), abs=0.01)
    assert rows["slowest", 12] == pytest.approx(FALLING[:4].sum() / FALLING.sum(), abs=0.01)
    claims = claims_of(result)
    assert claims["slow-pairs-idle"].verdict == "holds"
    assert claims["fast-half-enough"].verdict == "holds"
    assert claims["fast-half-enough"].value == rows["fastest", 8]
    assert claims["previous-token-fast"].verdict == claims["length-in-slow-pairs"].verdict == "untested"
    for limit, verdict in ((0.9, "holds"), (0.0, "partly")):  # of random halves
        changed = {"half_by_chance": synthetic.null(1.0, limit)}
        claim = claims_of(synthetic.measured_with(result.metrics, changed))["fast-half-enough"]
        assert claim.verdict == verdict


def examples():
    yield measured(FALLING, weights_of({(0, 1)}))
    yield with_lengths(2.0)


@pytest.mark.parametrize(("costs", "verdict"), [
    (FALLING[::-1], "fails"), (np.zeros(PAIRS), "untested"),
    ([1.0, 1.0, 0.6, 0.0], "untested"), ([1.0] * 4, "untested"),  # of few pairs, whatever they cost
])  # fmt: skip
def test_slow_pairs_that_are_needed_and_few_pairs(costs, verdict):
    periods = PERIODS[:: PAIRS // len(costs)]
    arch = replace(ARCH, rotary=(Rotary(2 * len(costs), periods),) * LAYERS)
    claims = claims_of(measured(np.array(costs), arch=arch))
    assert claims["slow-pairs-idle"].verdict == claims["fast-half-enough"].verdict == verdict


def test_previous_token_heads_that_use_fast_pairs():
    previous = {(0, 1), (0, 3), (1, 0), (1, 2), (2, 2), (2, 3)}
    result = measured(np.ones(PAIRS), weights_of(previous))
    rows = {(row["layer"], row["head"]): row for row in result.metrics["heads"]}
    for head, row in rows.items():
        assert (row["previous"] > 0.3) == (head in previous)
        assert row["fast_share"] == pytest.approx(float(head in previous), abs=0.05)
    claim = claims_of(result)["previous-token-fast"]
    assert claim.value > 0.7
    assert claim.verdict == "holds"


def with_lengths(slow):
    """Return what is measured where the slower half of the pairs is `slow` times as long in queries and keys."""
    long = np.where(np.isin(np.arange(2 * PAIRS) % PAIRS, SLOW), slow, 1.0)

    def compare(layer, ids):
        rng = np.random.default_rng([0, layer])
        q, k, v = (rng.standard_normal((len(ids), heads, N, 2 * PAIRS)) for heads in (HEADS, 2, 2))
        return q * long, k * long, v

    return measure_run(FINDING, ARCH, None, kind="rotary", pairs=np.ones(PAIRS), attend=no_attention, compare=compare)


def no_attention(layer, ids, silenced):
    return np.zeros((len(ids), HEADS, N, N))


def test_lengths_in_slow_pairs():
    result = with_lengths(2.0)
    found = result.metrics["lengths"]
    assert found["slow_share"]["mean"] == pytest.approx(4 / 5, abs=0.02)  # 2 x 2 to 1 x 1
    assert found["values_slow_share"] == pytest.approx(0.5, abs=0.02)
    assert found["by_chance"]["median"] == pytest.approx(0.5, abs=0.02)
    rows = found["pairs"]
    assert [row["pair"] for row in rows] == list(range(PAIRS))
    assert [row["share"] * 5 * PAIRS / 2 for row in rows] == pytest.approx([1] * len(FAST) + [4] * len(SLOW), rel=0.1)
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert claims_of(result)["length-in-slow-pairs"].verdict == "holds"
    for slow, verdict in ((1.2, "partly"), (1.0, "fails"), (0.5, "fails")):
        assert claims_of(with_lengths(slow))["length-in-slow-pairs"].verdict == verdict


def test_wrong_weights_leave_heads_unknown():
    weights = weights_of(set())
    other = {**weights, "blocks.1.attn.q": 3 * weights["blocks.1.attn.q"]}

    def attend(layer, ids, silenced):
        return np.stack([attention_to(np.eye(N, D), other, ARCH, layer)] * len(ids))

    result = measure_run(FINDING, ARCH, None, weights, kind="rotary", pairs=np.ones(PAIRS), attend=attend)
    assert result.metrics["heads"] is None


def test_heads_are_exchanged_within_their_layers():
    layers = np.repeat([0, 1, 2], 5)
    order = within(layers, np.random.default_rng(0))
    assert sorted(order) == list(range(15))
    np.testing.assert_array_equal(layers[order], layers)
