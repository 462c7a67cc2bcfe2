import json

import numpy as np
import pytest
import scipy.stats

from generators.findings.channels import FINDING as CHANNELS
from generators.findings.channels.measure import position_channels
from generators.findings.contract import NotApplicableError
from generators.site.words import caption
from tests import synthetic

D = 64
PLANTED = [3, 17, 18, 40, 41, 60]


def compute(P, E=None):
    weights = {"position_embedding": P} if E is None else {"position_embedding": P, "token_embedding": E}
    return synthetic.measure(CHANNELS, weights)


def claims_of(result):
    return {claim.id: claim for claim in CHANNELS.claims(result)}


def planted_positions(n=300, noise=0.02):
    return synthetic.embed(synthetic.helix(n, 4), D, channels=PLANTED, noise=noise)


def tokens(quiet=(), factor=0.1, seed=0):
    """Return Gaussian tokens, each channel with its own spread and mean, the quiet channels `factor` as spread."""
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((900, D)) * rng.uniform(0.9, 1.1, D) + rng.standard_normal(D)
    E[:, list(quiet)] *= factor
    return E.astype(np.float32)


# Position channels


def plain_position_channels(std):
    """Try every number of channels from 2 to d/4 and keep the one with the largest gap below it."""
    ordered = sorted(range(len(std)), key=lambda c: -std[c])
    gaps = {k: np.log10(std[ordered[k - 1]] / std[ordered[k]]) for k in range(2, len(std) // 4 + 1) if k < len(std)}
    if not gaps:
        return []
    best = max(gaps, key=gaps.__getitem__)
    share = sum(std[c] ** 2 for c in ordered[:best]) / sum(std**2)
    return ordered[:best] if gaps[best] >= 0.1 and share >= 0.5 else []


def two_humps(k, d, decades, seed=0):
    """Return stds of which k are `decades` above the rest, in mixed order; neither hump has gaps of its own."""
    upper = np.linspace(0, 0.001 * k, k) + decades
    lower = -np.linspace(0, 0.001 * (d - k), d - k)
    return 10 ** np.random.default_rng(seed).permutation(np.append(upper, lower))


@pytest.mark.parametrize(("k", "d", "decades", "there"), [
    (6, 64, 1.0, True),
    (2, 64, 1.0, True),  # the fewest
    (16, 64, 1.0, True),  # the most, d / 4
    (1, 64, 1.0, False),
    (17, 64, 1.0, False),
    (15, 63, 1.0, True),
    (16, 63, 1.0, False),
    (16, 64, 0.40, True),
    (16, 64, 0.11, False),  # a wide gap, but hardly a third of the variance
    (2, 64, 0.5, False),  # likewise
    (2, 8, 1.0, True),
    (2, 7, 1.0, False),  # a quarter of 7 is less than 2
])  # fmt: skip
def test_position_channels_stand_above_a_gap(k, d, decades, there):
    std = two_humps(k, d, decades)
    chosen, _ = position_channels(std)
    assert chosen.tolist() == plain_position_channels(std)
    assert chosen.tolist() == (sorted(range(d), key=lambda c: -std[c])[:k] if there else [])


@pytest.mark.parametrize(("gap", "there"), [(0.101, True), (0.099, False)])
def test_the_gap_is_a_tenth_of_a_decade(gap, there):
    """Six channels hold three quarters of the variance; below the gap stds fall in steps of 0.08 decades."""
    std = 10 ** -np.concatenate([np.zeros(6), gap + 0.08 * np.arange(58)])
    chosen, largest = position_channels(std)
    assert largest == pytest.approx(gap)
    assert sorted(chosen.tolist()) == ([0, 1, 2, 3, 4, 5] if there else [])


def test_the_largest_gap_counts_and_not_the_first():
    std = np.concatenate([np.full(3, 100.0), np.full(3, 50.0), np.full(58, 1.0)])
    chosen, gap = position_channels(std)
    assert sorted(chosen) == [0, 1, 2, 3, 4, 5]
    assert gap == pytest.approx(np.log10(50))


@pytest.mark.parametrize("seed", range(5))
def test_position_channels_of_random_stds(seed):
    std = np.random.default_rng(seed).lognormal(0, 2, 80)
    assert position_channels(std)[0].tolist() == plain_position_channels(std)


@pytest.mark.parametrize(("silent", "channels"), [(58, 6), (60, 4), (40, 0)])
def test_channels_that_do_not_vary_stand_below_the_gap(silent, channels):
    """Where more than a quarter of the channels vary, alike, there is no gap among the strongest quarter."""
    std = np.append(np.full(64 - silent, 2.0), np.zeros(silent))
    assert len(position_channels(std)[0]) == channels


@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_too_few_channels_have_no_quarter(d):
    chosen, gap = position_channels(np.ones(d))
    assert (chosen.tolist(), gap) == ([], None)


def test_planted_channels_are_found():
    m = compute(planted_positions()).metrics
    assert sorted(m["position_channels"]) == PLANTED
    assert m["position_channels_variance_share"] > 0.95


def test_noise_has_no_position_channels():
    m = compute(np.random.default_rng(0).standard_normal((256, D))).metrics
    assert m["position_channels"] == []
    assert m["position_channels_variance_share"] == 0


# Spread over channels


def test_position_std_leaves_out_the_first_row():
    P = planted_positions()
    P[0] = 0
    P[0, 5] = 1e6
    m = compute(P).metrics
    expected = [np.sqrt(np.mean((P[1:, c] - np.mean(P[1:, c])) ** 2)) for c in range(D)]
    np.testing.assert_allclose(m["position_std"], expected)
    assert sorted(m["position_channels"]) == PLANTED


@pytest.mark.parametrize("seed", [0, 1])
def test_channels_for_a_share_are_counted_one_by_one(seed):
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((120, D)) * rng.lognormal(0, 1, D) + 5
    m = compute(P).metrics
    variances = sorted(P[1:].var(axis=0), reverse=True)
    for share in (90, 95, 99):
        held, count = 0.0, 0
        while held < share / 100 * sum(variances):
            held += variances[count]
            count += 1
        assert m[f"channels_for_{share}"] == count


@pytest.mark.parametrize(("n", "d"), [(300, 40), (30, 90)])
def test_participation_ratio_of_the_right_singular_vectors_of_all_rows(n, d):
    P = 0.5 + np.random.default_rng(0).standard_normal((n, d)) * np.linspace(3, 0.1, d)
    vectors = np.linalg.svd(P)[2][:5]
    expected = [1 / sum(v**4) for v in vectors]
    np.testing.assert_allclose(compute(P).metrics["participation_ratio"], expected)


def test_participation_ratio_counts_planted_channels():
    """The first row alone gives the strongest direction: one channel."""
    P = np.zeros((60, D))
    P[:, PLANTED[:4]] = np.random.default_rng(0).standard_normal((60, 1)) * [1, -1, 1, 1]
    P[0] = 0
    P[0, 30] = 1000
    np.testing.assert_allclose(compute(P).metrics["participation_ratio"][:2], [1, 4])


def test_gaussian_rows_need_almost_all_channels():
    result = compute(np.random.default_rng(5).standard_normal((256, D)))
    claim = claims_of(result)["few-channels"]
    assert claim.value == pytest.approx(claim.baseline, abs=0.05)
    assert claim.value > 0.8
    assert claim.verdict == "fails"


@pytest.mark.parametrize(
    ("used", "needed", "verdict"), [(6, 6, "holds"), (7, 7, "partly"), (16, 15, "partly"), (17, 16, "fails")]
)
def test_few_channels_claim(used, needed, verdict):
    """Of 60 channels some vary, all alike: 90 % of the variance takes nine tenths of them."""
    P = np.zeros((201, 60))
    P[:, :used] = np.cos(2 * np.pi * np.arange(201) / 20)[:, None]
    claim = claims_of(compute(P))["few-channels"]
    assert claim.value == pytest.approx(needed / 60)
    assert claim.verdict == verdict


@pytest.mark.parametrize(("needed", "verdict"), [(100, "holds"), (101, "partly"), (250, "partly"), (251, "fails")])
def test_few_channels_thresholds(needed, verdict):
    m = compute(planted_positions()).metrics
    result = synthetic.measured_with(m, n_channels=1000, channels_for_90=needed)
    assert claims_of(result)["few-channels"].verdict == verdict


# Beside tokens


def test_rank_correlations_with_tokens():
    P, E = planted_positions(), tokens()
    m = compute(P, E).metrics
    std, mean = E.astype(float).std(axis=0), E.astype(float).mean(axis=0)
    position_std = P[1:].std(axis=0)
    np.testing.assert_allclose(m["token_std"], std, rtol=1e-5)
    np.testing.assert_allclose(m["token_mean"], mean, atol=1e-6)
    expected = scipy.stats.spearmanr(position_std, std).statistic
    assert m["spearman_position_std_token_std"] == pytest.approx(expected)
    expected = scipy.stats.spearmanr(position_std, abs(mean)).statistic
    assert m["spearman_position_std_token_mean"] == pytest.approx(expected)


@pytest.mark.parametrize(("quiet", "overlap", "verdict"), [
    (PLANTED, 6, "holds"),
    ([3, 17, 18, 1, 2, 4], 3, "holds"),
    ([3, 17, 0, 1, 2, 4], 2, "fails"),
    ([0, 1, 2, 4, 5, 6], 0, "fails"),
])  # fmt: skip
def test_tokens_avoid_position_channels(quiet, overlap, verdict):
    result = compute(planted_positions(), tokens(quiet))
    assert result.metrics["low_variance_overlap"] == overlap
    assert result.metrics["low_variance_overlap_chance"] == 36 / 64
    claim = claims_of(result)["tokens-avoid"]
    assert (claim.value, claim.threshold, claim.baseline, claim.verdict) == (overlap, 3, 36 / 64, verdict)


def test_the_overlap_counts_variance_and_not_energy():
    """Quiet channels may stand far from 0."""
    E = tokens(PLANTED)
    E[:, PLANTED] += 50
    assert compute(planted_positions(), E).metrics["low_variance_overlap"] == 6


def test_without_tokens_only_what_needs_them_is_null():
    result = compute(planted_positions())
    m = result.metrics
    names = [name for name, value in m.items() if value is None]
    assert sorted(names) == [
        "low_variance_overlap", "low_variance_overlap_chance", "spearman_position_std_token_mean",
        "spearman_position_std_token_std", "token_mean", "token_std",
    ]  # fmt: skip
    claims = claims_of(result)
    assert claims["few-channels"].verdict == "holds"
    assert claims["tokens-avoid"].verdict == "untested"


def test_without_position_channels_there_is_nothing_to_avoid():
    result = compute(np.random.default_rng(0).standard_normal((256, D)), tokens())
    assert result.metrics["low_variance_overlap"] is None
    assert result.metrics["low_variance_overlap_chance"] is None
    assert claims_of(result)["tokens-avoid"].verdict == "untested"


@pytest.mark.parametrize("d", [10, 11])
def test_what_is_said_of_pictures_is_what_numpy_says(d):
    rng = np.random.default_rng(d)
    result = compute(rng.standard_normal((50, d)), (rng.standard_normal((40, d)) - 1).astype(np.float32))
    m = result.metrics
    assert (
        f"the median channel has {np.median(m['position_std']):.4f}"
        in caption("channels", "channel-traces", result).alt
    )
    assert f"with a median of {np.median(m['token_std']):.3g}." in caption("channels", "token-moments", result).alt
    striped = int(np.sum(np.abs(m["token_mean"]) > m["token_std"]))
    assert (
        f"in {striped} of these {d} channels, and in {striped} of all {d}"
        in caption("channels", "embedding-chunk", result).alt
    )


# What can't be computed, and what is hostile


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_rows_that_are_alike_but_for_the_first(value):
    P = np.full((300, 12), value)
    P[0] = 5
    with pytest.raises(NotApplicableError):
        compute(P)


@pytest.mark.parametrize("shape", [(16, D), (3, D), (40, 1), (40, 2), (20, 7), (20, 8)])
def test_small_embeddings_give_numbers_or_null(shape):
    rng = np.random.default_rng(0)
    E = rng.standard_normal((50, shape[1])).astype(np.float32)
    result = compute(rng.standard_normal(shape).astype(np.float32), E)
    json.dumps(result.metrics, allow_nan=False)
    assert len(CHANNELS.claims(result)) == 2


def test_tokens_that_are_all_alike_have_no_correlation():
    m = compute(planted_positions(), np.full((50, D), 0.3, np.float32)).metrics
    assert m["spearman_position_std_token_std"] is None
    assert m["spearman_position_std_token_mean"] is None
    json.dumps(m, allow_nan=False)
