from functools import partial

import numpy as np
import pytest

from generators.drawing.svg import svg
from generators.findings import plantings
from generators.findings.gains import FINDING as GAINS
from generators.findings.gains.measure import log_correlation
from generators.maths.channels import most_layers_by_chance
from generators.site.words import caption
from tests import synthetic

D = 48
PLANTED = 13
claims_of = partial(synthetic.by_id, GAINS)


def gaussian(n_layer=4, seed=0):
    return synthetic.gaussian_weights(synthetic.architecture(n_ctx=64, d_model=D, n_layer=n_layer), seed)


def compute(weights, n_layer=4):
    return synthetic.measure(GAINS, weights, synthetic.architecture(n_ctx=64, d_model=D, n_layer=n_layer))


def varied_positions(seed=0):
    """Return positions (64, D) whose channels vary by stds from 0.01 to 1; row 0 is far away and must not count."""
    rng = np.random.default_rng([seed, 8])
    P = rng.standard_normal((64, D)) * 10 ** rng.uniform(-2, 0, D)
    P[0] = 100 * rng.standard_normal(D)
    return P


def test_correlation_of_every_norm():
    weights = {**gaussian(), "position_embedding": varied_positions()}
    result = compute(weights)
    std = weights["position_embedding"][1:].std(axis=0)
    for norm in ("ln1", "ln2"):
        for layer in range(4):
            gain = np.abs(weights[f"blocks.{layer}.{norm}.gain"].astype(float))
            expected = np.corrcoef(np.log10(std), np.log10(gain))[0, 1]
            assert result.metrics["correlation"][norm][str(layer)] == pytest.approx(expected)


@pytest.mark.parametrize(("value", "median", "limit", "verdict"), [
    (-0.501, 0, -0.2, "holds"), (-0.499, 0, -0.2, "partly"), (-0.251, 0, -0.2, "partly"), (-0.249, 0, -0.2, "fails"),
    (0.9, 0, -0.2, "fails"), (-0.6, -0.3, -0.7, "fails"),  # turned channels reach it too
])  # fmt: skip
def test_dials_down_claim(value, median, limit, verdict):
    metrics = compute(gaussian()).metrics
    chance = {"dials_down": synthetic.null(median, limit)}
    changed = synthetic.measured_with(metrics, {"correlation": {"ln1": {"0": value, "1": -0.9}}, "chance": chance})
    claim = claims_of(changed)["ln1-dials-down"]
    assert (claim.value, claim.verdict) == (value, verdict)


def test_channels_that_tie_are_all_named_and_none_is_singled_out():
    gains = plantings.gains_topped_by(PLANTED, [0, 1, 2], 6, D, 3.0)
    for layer in (3, 4, 5):
        gains[layer] = np.roll(gains[0], 7)
    result = compute(plantings.with_gains(gaussian(6), "ln2", gains), 6)
    assert result.metrics["consistent_channel"]["ln2"]["tied"] == sorted([PLANTED, (PLANTED + 7) % D])
    assert claims_of(result)["ln2-one-channel"].verdict != "holds"


def test_where_ln2s_channel_stands_among_all():
    weights = with_planted_channel([0, 2, 3], 5, 1.7)
    P, E = weights["position_embedding"].copy(), weights["token_embedding"].copy()
    P[:, PLANTED] *= 0.01
    E[:, PLANTED] = 9 + 5 * E[:, PLANTED]
    ranks = compute({**weights, "position_embedding": P, "token_embedding": E}, 5).metrics["ln2_channel"]
    assert (ranks["channel"], ranks["position_std"], ranks["token_mean"], ranks["token_std"]) == (PLANTED, D, 1, 1)
    assert ranks["share_of_first_direction"] > 0.9


def test_the_sign_of_a_gain_does_not_matter_and_channels_at_exactly_0_are_left_out():
    signs = np.random.default_rng(1).choice([-1.0, 1.0], D)
    weights = gaussian()
    flipped = {role: rows * signs if role.endswith(".gain") else rows for role, rows in weights.items()}
    assert compute(flipped).metrics == compute(weights).metrics
    std, gain = np.array([[0.0, 1, 10, 100, 5, 7], [3, 1, 0.1, 0.01, 0.0, 0.0]])
    assert log_correlation(std, gain) == pytest.approx(-1)
    assert log_correlation(std[:3], gain[:3]) is None


@pytest.mark.parametrize("P", [None, np.zeros((64, D)), np.ones((1, D))])
def test_gains_without_varying_positions(P):
    weights = {**gaussian(), "position_embedding": P}
    result = compute({role: array for role, array in weights.items() if array is not None})
    assert claims_of(result)["ln1-dials-down"].verdict == "untested"
    assert set(result.metrics["correlation"]["ln1"].values()) == {None}
    assert result.metrics["consistent_channel"]["ln2"] is not None
    (figure,) = GAINS.figures(result)
    svg(figure.draw())


@pytest.mark.parametrize("layers", [1, 12, 13, 60])
def test_deep_models_have_a_panel_for_layers_evenly_spaced(layers):
    result = compute(gaussian(layers), layers)
    (figure,) = GAINS.figures(result)
    drawn = [int(ax.get_title().removeprefix("layer ")) for ax in figure.draw().axes]
    assert (len(drawn), drawn[0], drawn[-1]) == (min(layers, 12), 0, layers - 1)
    assert {*np.diff(drawn)} <= {max(1, layers // 12), layers // 12 + 1}
    said = caption("gains", "gains-ln2", result).how_to_read
    assert (f"12 layers, evenly spaced among {layers}" in said) == (layers > 12)


def test_without_a_norm_before_the_first_attention():
    weights = gaussian()
    del weights["blocks.0.ln1.gain"]
    result = compute(weights)
    assert list(result.metrics["correlation"]["ln1"]) == ["1", "2", "3"]
    assert result.arrays["ln1_layers"].tolist() == [1, 2, 3]
    assert claims_of(result)["ln1-dials-down"].verdict == "untested"


def with_planted_channel(layers, n_layer, ratio, norm="ln2"):
    gains = plantings.gains_topped_by(PLANTED, layers, n_layer, D, ratio)
    return plantings.with_gains(gaussian(n_layer), norm, gains)


@pytest.mark.parametrize(("topped", "n_layer", "verdict"), [
    (2, 2, "partly"), (2, 4, "partly"), (3, 4, "holds"), (3, 6, "holds"), (3, 7, "partly"), (4, 7, "holds"),
    (2, 8, "partly"), (2, 9, "fails"), (3, 9, "partly"), (5, 12, "partly"), (6, 12, "holds"), (2, 12, "fails"),
])  # fmt: skip
def test_one_channel_claim_by_layers(topped, n_layer, verdict):
    metrics = compute(with_planted_channel(range(topped), n_layer, 1.5), n_layer).metrics
    wide = synthetic.measured_with(metrics, {"chance": {"layers_topped": synthetic.null(1, 1)}})
    claim = claims_of(wide)["ln2-one-channel"]
    assert (claim.value, claim.threshold, claim.verdict) == (topped, max(3, n_layer / 2), verdict)


@pytest.mark.parametrize(("ratio", "last", "verdict"), [
    (1.09, None, "fails"), (1.11, None, "holds"), (4.0, None, "holds"), (1.05, 50, "fails"),  # the median counts
])  # fmt: skip
def test_one_channel_claim_by_ratio(ratio, last, verdict):
    weights = with_planted_channel([0, 1, 2], 4, ratio)
    if last is not None:
        weights["blocks.2.ln2.gain"] = np.where(np.arange(D) == PLANTED, last, weights["blocks.2.ln2.gain"])
    assert claims_of(compute(weights))["ln2-one-channel"].verdict == verdict


@pytest.mark.parametrize(
    ("layers", "verdict"), [(6, "holds"), (4, "holds"), (2, "fails"), (1, "fails"), (0, "fails")]
)
def test_a_channel_muted_in_some_layers_of_six(layers, verdict):
    weights = gaussian(6)
    for layer in range(layers):
        weights[f"blocks.{layer}.ln2.gain"][PLANTED] = 0.09 * np.median(weights[f"blocks.{layer}.ln2.gain"])
    weights["blocks.5.ln2.gain"][PLANTED] *= 1 if layers == 6 else 4
    result = compute(weights, 6)
    found, claim = result.metrics["muted_channel"], claims_of(result)["ln2-mutes-channel"]
    assert (found["layers"], claim.value, claim.verdict) == (list(range(layers)), layers, verdict)
    if layers:
        gain = np.abs(weights["blocks.5.ln2.gain"].astype(float))
        assert (found["channel"], found["tied"]) == (PLANTED, [PLANTED])
        assert layers == 6 or (found["most"], found["most_in"]) == (pytest.approx(gain[PLANTED] / np.median(gain)), 5)


def test_no_channel_is_singled_out_where_two_are_muted():
    weights = gaussian()
    for layer in range(4):
        weights[f"blocks.{layer}.ln2.gain"][[3, 8]] = 0
    claim = claims_of(compute(weights))["ln2-mutes-channel"]
    assert (claim.value, claim.verdict) == (4, "partly")


@pytest.mark.parametrize(("marked", "layers", "d", "limit"), [(1, 5, 64, 2), (1, 12, 48, 3), (4, 6, 48, 4)])
def test_channels_permuted_in_every_layer_are_marked_as_draws_say(marked, layers, d, limit):
    # Five layers of 64 have three alike in C(5, 3) / 64^2 = 0.24 % at most; 200 draws once gave 3 as the limit.
    found = most_layers_by_chance(np.arange(d) < np.full((layers, 1), marked))
    rng, rows = np.random.default_rng(0), np.arange(4000)[:, None]
    counts = np.zeros((4000, d))
    for _ in range(layers):
        counts[rows, rng.random((4000, d)).argpartition(marked, axis=1)[:, :marked]] += 1
    most = counts.max(axis=1)
    assert (found.median, found.limit, found.draws) == (np.median(most), limit, 0)
    assert (most > limit).mean() <= 0.012 < (most > limit - 1).mean()
    if (marked, d) == (1, D):
        assert compute(gaussian(layers), layers).metrics["chance"]["layers_topped"]["limit"] == 3


def test_top_five_channels():
    weights = gaussian()
    gain = np.full(D, 0.1)
    gain[[7, 30, 2, 11, 19]] = [5, -4, 3, -2, 1]
    result = compute({**weights, "blocks.1.ln2.gain": gain})
    (row,) = [row for row in result.tables["norms"].named() if (row["norm"], row["layer"]) == ("ln2", 1)]
    assert row["top_channels"] == [7, 30, 2, 11, 19]


@pytest.mark.parametrize("value", [1.0, 0.9, 0.3, -0.7, 0.0])
def test_constant_gains_say_nothing(value):
    weights = {role: rows * 0 + value if role.endswith(".gain") else rows for role, rows in gaussian().items()}
    result = compute(weights)
    assert result.metrics["consistent_channel"] == {"ln1": None, "ln2": None}
    assert set(result.metrics["correlation"]["ln1"].values()) == {None}
    assert {claim.verdict for claim in GAINS.claims(result)} == {"untested"}
    assert claims_of(result)["ln1-dials-down"].answer.startswith("The first norm's gain is equal")
    synthetic.assert_of_its_type(GAINS, result)


def test_the_consistent_channel_and_its_ratios():
    strong = plantings.gains_topped_by(PLANTED, [0, 1], 2, D, 2.0)
    weak = plantings.gains_topped_by(5, [0, 1], 2, D, 1.3)
    constant = with_planted_channel([0, 1, 2, 3], 4, 1.5) | {"blocks.1.ln2.gain": np.ones(D)}
    for norm, weights, topped, ratios in (
        ("ln1", with_planted_channel([0, 2, 3], 4, 1.7, "ln1"), 3, [1.7] * 3),
        ("ln2", constant, 3, [1.5] * 3),
        ("ln2", plantings.with_gains(gaussian(), "ln2", [2 * np.eye(D)[PLANTED]] * 4), 4, []),
        ("ln2", plantings.with_gains(gaussian(), "ln2", [weak[0], strong[0], weak[1], strong[1]]), 2, [2.0] * 2),
    ):
        found = compute(weights).metrics["consistent_channel"][norm]
        assert (found["channel"], found["layers_topped"], found["n_layers"]) == (PLANTED, topped, 4)
        assert found["ratios"] == pytest.approx(ratios)


def test_one_norm_can_not_agree_with_others():
    arch = synthetic.architecture(n_layer=1)
    found = synthetic.verdicts(GAINS, synthetic.measure(GAINS, synthetic.gaussian_weights(arch, 0), arch))
    assert (found["ln2-one-channel"], found["ln2-mutes-channel"]) == ("untested", "untested")
