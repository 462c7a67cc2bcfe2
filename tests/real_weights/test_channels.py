"""Channels of real weights: the values that were measured apart from the atlas, and a plain computation of others."""

import numpy as np
import pytest
from scipy.stats import ortho_group, spearmanr

from tests.real_weights.measured import each, row, shows

NO_TOKENS = "This model has no token embedding, or the checkpoint lacks it."
GPT2 = [
    row("channels-for-90", "47", lambda m: m["channels_for_90"]),
    row("channels-for-95", "52", lambda m: m["channels_for_95"]),
    row("channels-for-99", "66", lambda m: m["channels_for_99"]),
    row("of-channels", "768", lambda m: m["n_channels"]),
    row("position-channels", "52", lambda m: len(m["position_channels"])),
    row("gap-above-them", "0.121", lambda m: m["largest_gap"]),
    *each("participation-ratio", "20.4 20.9 24.2 11.5 27.9", lambda m: m["participation_ratio"]),
]


test_numbers = shows("channels", gpt2=GPT2)


def test_positions_of_gpt2_live_in_few_channels(gpt2):
    claim = gpt2["channels"].claims["few-channels"]
    assert claim.verdict == "holds"
    assert claim.value == 47 / 768
    assert claim.interval[0] <= claim.value <= claim.interval[1] < 0.07
    assert claim.chance.draws >= 100
    assert claim.chance.limit > 0.6  # whichever way the stream is turned, it takes more than half of its channels
    assert claim.answer.startswith(
        "47 of 768 channels (6.1\N{NO-BREAK SPACE}%) hold 90\N{NO-BREAK SPACE}% of P's variance"
    )


def test_gpt2_without_its_tokens_can_not_test_what_they_do(gpt2):
    found = gpt2["channels"]
    assert found.metrics["token_std"] is None
    for claim in ("tokens-avoid", "quiet-where-loud"):
        assert found.claims[claim].verdict == "untested"
        assert found.claims[claim].answer == NO_TOKENS


@pytest.mark.parametrize("model", ["minilm_l6", "gpt1", "stdlib"])
def test_only_gpt2_has_position_channels(model, request):
    found = request.getfixturevalue(model)["channels"]
    assert found.metrics["position_channels"] == []
    assert found.claims["few-channels"].verdict == "fails"
    assert found.claims["tokens-avoid"].verdict == "untested"


def test_gpt1_has_a_gap_above_which_too_little_varies(gpt1):
    """A twelfth of a decade and more, and still no position channels: those above it hold less than half."""
    metrics = gpt1["channels"].metrics
    std = np.sort(gpt1.tensor("position_embedding")[1:].std(axis=0))[::-1]
    gaps = np.log10(std[1:192] / std[2:193])
    above = int(np.argmax(gaps)) + 2
    assert metrics["largest_gap"] == pytest.approx(gaps.max()) == pytest.approx(0.122, abs=5e-4)
    assert np.sum(std[:above] ** 2) < 0.5 * np.sum(std**2)


@pytest.mark.parametrize("model", ["gpt2", "gpt1", "minilm_l6", "stdlib"])
def test_channels_counted_one_by_one(model, request):
    real = request.getfixturevalue(model)
    metrics, P = real["channels"].metrics, real.tensor("position_embedding")
    variances = sorted(P[1:].var(axis=0), reverse=True)
    for share in (90, 95, 99):
        held = np.cumsum(variances) / sum(variances)
        assert metrics[f"channels_for_{share}"] == np.flatnonzero(held >= share / 100)[0] + 1
    vectors = np.linalg.svd(P, full_matrices=False)[2][:5]
    np.testing.assert_allclose(metrics["participation_ratio"], 1 / np.sum(vectors**4, axis=1), rtol=1e-5)


@pytest.mark.parametrize("model", ["minilm_l6", "stdlib"])
def test_tokens_are_no_quieter_where_positions_are_loud(model, request):
    """The correlation as scipy gives it, and a few of those that turning both alike gives."""
    real = request.getfixturevalue(model)
    P, E = (real.tensor(f"{kind}_embedding") for kind in ("position", "token"))
    claim = real["channels"].claims["quiet-where-loud"]
    assert claim.verdict == "fails"
    assert claim.value == pytest.approx(spearmanr(P[1:].std(axis=0), E.std(axis=0)).statistic, abs=1e-6)
    assert claim.interval[0] < claim.value < claim.interval[1]
    C_P, C_E = np.cov(P[1:].T), np.cov(E.T)
    turned = []
    for seed in range(12):
        rotation = ortho_group.rvs(len(C_P), random_state=seed)
        loud, quiet = (np.einsum("ij,ik,kj->j", rotation, C, rotation, optimize=True) for C in (C_P, C_E))
        turned.append(spearmanr(loud, quiet).statistic)
    assert claim.chance.median == pytest.approx(np.median(turned), abs=3 * np.std(turned) / np.sqrt(12))
    assert claim.chance.limit < np.median(turned)
