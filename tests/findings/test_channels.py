from functools import partial

import numpy as np
import pytest
import scipy.stats

from generators.checkpoint.positions import split_sinusoids
from generators.findings import plantings
from generators.findings.channels import FINDING as CHANNELS
from generators.findings.channels.measure import position_channels
from tests import synthetic

D = 64
PLANTED = [3, 17, 18, 40, 41, 60]
claims_of = partial(synthetic.by_id, CHANNELS)


def compute(P, E=None):
    weights = {"position_embedding": P} if E is None else {"position_embedding": P, "token_embedding": E}
    return synthetic.measure(CHANNELS, weights)


def planted_positions():
    return plantings.embed(plantings.coil(300, 4), D, channels=PLANTED, noise=0.02)


def tokens(quiet=()):
    """Return Gaussian tokens, each channel with its own spread and mean, the quiet ones with a tenth of it."""
    rng = np.random.default_rng(0)
    E = rng.standard_normal((900, D)) * rng.uniform(0.9, 1.1, D) + rng.standard_normal(D)
    E[:, list(quiet)] *= 0.1
    return E.astype(np.float32)


def two_humps(k, d, decades):
    """Return stds of which k are `decades` above the rest, in mixed order; neither hump has gaps of its own."""
    upper = np.linspace(0, 0.001 * k, k) + decades
    lower = -np.linspace(0, 0.001 * (d - k), d - k)
    return 10 ** np.random.default_rng(0).permutation(np.append(upper, lower))


def stairs(gap):
    """Return stds of which six hold three quarters of the variance; below the gap they fall by 0.08 decades."""
    return 10 ** -np.concatenate([np.zeros(6), gap + 0.08 * np.arange(58)])


@pytest.mark.parametrize(("std", "count"), [
    (two_humps(6, 64, 1.0), 6),
    (two_humps(2, 64, 1.0), 2), (two_humps(16, 64, 1.0), 16), (two_humps(15, 63, 1.0), 15),  # from 2 to d / 4
    (two_humps(1, 64, 1.0), 0), (two_humps(17, 64, 1.0), 0), (two_humps(16, 63, 1.0), 0),
    (two_humps(16, 64, 0.40), 16),
    (two_humps(16, 64, 0.11), 0), (two_humps(2, 64, 0.5), 0),  # a wide gap, but hardly a third of the variance
    (two_humps(2, 8, 1.0), 2),
    ([100] * 3 + [50] * 3 + [1] * 58, 6),  # the largest gap counts and not the first
    ([2] * 6 + [0] * 58, 6), ([2] * 4 + [0] * 60, 4), ([2] * 24 + [0] * 40, 0),
    (stairs(0.101), 6), (stairs(0.099), 0),
])  # fmt: skip
def test_position_channels_stand_above_a_gap(std, count):
    chosen, gap = position_channels(np.array(std, float))
    assert {*chosen.tolist()} == {*np.argsort(std)[::-1][:count].tolist()}
    assert std[0] != 100 or gap == pytest.approx(np.log10(50))


def test_position_std_leaves_out_the_first_row():
    P = planted_positions()
    P[0] = 0
    P[0, 5] = 1e6
    m = compute(P).metrics
    np.testing.assert_allclose(m["position_std"], P[1:].std(axis=0))
    assert sorted(m["position_channels"]) == PLANTED
    assert m["position_channels_variance_share"] > 0.95


def channels_needed(rows, share=0.90):
    """Count the strongest channels of centred rows that hold a share of their variance, one by one."""
    variances = sorted(rows.var(axis=0), reverse=True)
    return next(count for count in range(1, D + 1) if sum(variances[:count]) >= share * sum(variances))


def test_channels_for_a_share_are_counted_one_by_one():
    rng = np.random.default_rng(0)
    P = rng.standard_normal((120, D)) * rng.lognormal(0, 1, D) + 5
    m = compute(P).metrics
    for share in (90, 95, 99):
        assert m[f"channels_for_{share}"] == channels_needed(P[1:], share / 100)
    np.testing.assert_allclose(m["participation_ratio"], [1 / sum(v**4) for v in np.linalg.svd(P)[2][:5]])


def test_chance_is_what_turning_p_at_random_gives():
    P = planted_positions()
    turned = [channels_needed(P[1:] @ scipy.stats.ortho_group.rvs(D, random_state=seed)) / D for seed in range(200)]
    stored = compute(P).metrics["chance"]["channels_for_90"]
    assert stored["draws"] == 200
    assert stored["median"] == pytest.approx(np.median(turned), abs=0.02)
    assert stored["limit"] == pytest.approx(np.sort(turned)[1], abs=0.04)  # the second smallest of 200


def test_the_interval_comes_from_positions_in_blocks():
    P = np.random.default_rng(4).standard_normal((257, D)) * np.linspace(1, 0.1, D)
    m = compute(P).metrics
    low, high = m["intervals"]["channels_for_90"]
    assert low <= m["channels_for_90"] / D <= high
    assert 0 < high - low < 0.2
    again = np.vstack([P[0], np.tile(P[1:17], (16, 1))])
    low, high = compute(again).metrics["intervals"]["channels_for_90"]
    assert low == high == pytest.approx(channels_needed(again[1:]) / D)
    claim = claims_of(compute(P))["few-channels"]
    assert claim.interval == tuple(m["intervals"]["channels_for_90"])


@pytest.mark.parametrize(("needed", "median", "limit", "verdict"), [
    (100, 0.5, 0.2, "holds"), (101, 0.5, 0.4, "partly"), (250, 0.5, 0.4, "partly"), (251, 0.5, 0.4, "fails"),
    (100, 0.5, 0.1, "fails"), (99, 0.5, 0.1, "holds"), (200, 0.5, 0.2, "fails"), (199, 0.5, 0.2, "partly"),
    (40, 0.08, 0.05, "untested"),
])  # fmt: skip
def test_few_channels_are_a_tenth_and_fewer_than_turned_ones(planted, needed, median, limit, verdict):
    changed = {"n_channels": 1000, "channels_for_90": needed}
    chance = {"channels_for_90": synthetic.null(median, limit)}
    claim = claims_of(synthetic.measured_with(planted, {"chance": chance}, **changed))["few-channels"]
    assert claim.verdict == verdict


def test_how_many_channels_of_a_table_of_sines_vary_is_decided_by_its_formula():
    assert claims_of(compute(split_sinusoids(256, 64)))["few-channels"].verdict == "untested"


def test_rank_correlations_with_tokens():
    P, E = planted_positions(), tokens()
    m = compute(P, E).metrics
    std, mean = E.astype(float).std(axis=0), E.astype(float).mean(axis=0)
    np.testing.assert_allclose(m["token_std"], std, rtol=1e-5)
    np.testing.assert_allclose(m["token_mean"], mean, atol=1e-6)
    for of, values in (("std", std), ("mean", abs(mean))):
        expected = scipy.stats.spearmanr(P[1:].std(axis=0), values).statistic
        assert m[f"spearman_position_std_token_{of}"] == pytest.approx(expected)
    low, high = m["intervals"]["spearman_position_std_token_std"]
    assert low <= m["spearman_position_std_token_std"] <= high


@pytest.mark.parametrize(("quiet", "overlap", "verdict"), [
    (PLANTED, 6, "holds"),
    ([3, 17, 18, 1, 2, 4], 3, "fails"),  # half of them, but one draw in a hundred of turned axes reaches 4
    ([3, 17, 0, 1, 2, 4], 2, "fails"),
    ([0, 1, 2, 4, 5, 6], 0, "fails"),
])  # fmt: skip
def test_tokens_avoid_position_channels(quiet, overlap, verdict):
    result = compute(planted_positions(), tokens(quiet))
    assert result.metrics["low_variance_overlap"] == overlap
    assert result.metrics["low_variance_overlap_chance"] == 36 / 64
    turned = result.metrics["chance"]["low_variance_overlap"]
    claim = claims_of(result)["tokens-avoid"]
    assert (claim.value, claim.threshold, claim.baseline, claim.verdict) == (overlap, 3, turned["median"], verdict)
    assert "6 random channels would share 0.56" in claim.answer


@pytest.fixture(scope="module")
def planted():
    return compute(planted_positions(), tokens(PLANTED)).metrics


@pytest.mark.parametrize(("overlap", "limit", "by_chance", "median", "verdict"), [
    (3, 2, 1.5, 0, "holds"),  # half of the six, twice chance, beyond turned axes
    (2, 1, 0.5, 0, "fails"),  # less than half
    (3, 2, 1.6, 0, "fails"),  # less than twice chance
    (3, 3, 0.5, 0, "fails"),  # one turned draw in a hundred does it too
    (4, 3, 0.5, 0, "holds"),
    (6, 5, 36 / 64, 3, "holds"),  # turned axes share half themselves: more than almost all of them share
    (5, 5, 36 / 64, 3, "fails"),
    (6, 3, 36 / 64, 3, "untested"),
])  # fmt: skip
def test_tokens_avoid_thresholds(planted, overlap, limit, by_chance, median, verdict):
    changed = {"low_variance_overlap": overlap, "low_variance_overlap_chance": by_chance}
    chance = {"low_variance_overlap": synthetic.null(median, limit)}
    claim = claims_of(synthetic.measured_with(planted, {"chance": chance}, **changed))["tokens-avoid"]
    assert claim.verdict == verdict
    assert median == 0 or claim.threshold == (None if verdict == "untested" else limit)


def test_chance_turns_positions_and_tokens_together():
    P, E = planted_positions(), tokens(PLANTED)
    overlaps, rhos = [], []
    for seed in range(200):
        rotation = scipy.stats.ortho_group.rvs(D, random_state=seed)
        loud, quiet = (P[1:] @ rotation).std(axis=0), (E @ rotation).std(axis=0)
        overlaps.append(len({*np.argsort(-loud)[:6]} & {*np.argsort(quiet)[:6]}))
        rhos.append(scipy.stats.spearmanr(loud, quiet).statistic)
    chance = compute(P, E).metrics["chance"]
    assert chance["low_variance_overlap"]["median"] == pytest.approx(np.median(overlaps), abs=1)
    assert chance["low_variance_overlap"]["limit"] == pytest.approx(np.sort(overlaps)[-2], abs=1)
    assert chance["spearman_position_std_token_std"]["median"] == pytest.approx(np.median(rhos), abs=0.05)
    assert chance["spearman_position_std_token_std"]["limit"] == pytest.approx(np.sort(rhos)[1], abs=0.1)


@pytest.mark.parametrize(("rho", "limit", "median", "channels", "verdict"), [
    (-0.30, -0.1, 0, 768, "holds"), (-0.29, -0.1, 0, 768, "partly"), (-0.15, -0.1, 0, 768, "partly"),
    (-0.14, -0.1, 0, 768, "fails"), (-0.30, -0.3, 0, 768, "fails"), (-0.31, -0.3, 0, 768, "holds"),
    (-0.20, -0.3, 0, 768, "fails"), (0.02, -0.3, 0, 768, "fails"), (0.02, 0.1, 0, 768, "fails"),
    (-0.41, -0.1, 0, 64, "fails"),  # of 64 unrelated channels one in a hundred is at -0.3
    (-0.42, -0.1, 0, 64, "holds"), (-0.9, -0.6, -0.4, 768, "untested"),
])  # fmt: skip
def test_quiet_where_loud_thresholds(planted, rho, limit, median, channels, verdict):
    changed = {"spearman_position_std_token_std": rho, "n_channels": channels}
    chance = {"spearman_position_std_token_std": synthetic.null(median, limit)}
    claim = claims_of(synthetic.measured_with(planted, {"chance": chance}, **changed))["quiet-where-loud"]
    assert (claim.verdict, claim.value) == (verdict, None if verdict == "untested" else rho)
    assert verdict == "untested" or (claim.chance.median, claim.chance.limit) == (median, limit)


@pytest.mark.parametrize("shape", [(256, D), (16, D), (17, 16), (40, 16), (20, 90)])
def test_noise_has_no_position_channels_to_avoid(shape):
    rng = np.random.default_rng(0)
    result = compute(rng.standard_normal(shape), rng.standard_normal((100, shape[1])).astype(np.float32))
    m = result.metrics
    synthetic.assert_of_its_type(CHANNELS, result)
    assert (m["position_channels"], m["position_channels_variance_share"]) == ([], 0)
    assert m["low_variance_overlap"] is m["low_variance_overlap_chance"] is None
    claims = claims_of(result)
    assert (claims["tokens-avoid"].verdict, claims["quiet-where-loud"].verdict) == ("untested", "fails")


@pytest.mark.parametrize("E", [None, np.full((150, D), 0.3, np.float32)], ids=["no tokens", "tokens alike"])
def test_without_tokens_that_vary_only_what_needs_them_is_untested(E):
    result = compute(planted_positions(), E)
    m = result.metrics
    assert m["spearman_position_std_token_std"] is m["spearman_position_std_token_mean"] is None
    synthetic.assert_of_its_type(CHANNELS, result)
    claims = claims_of(result)
    assert (claims["few-channels"].verdict, claims["quiet-where-loud"].verdict) == ("holds", "untested")
    assert E is not None or claims["tokens-avoid"].verdict == "untested"
