from functools import partial

import numpy as np
import pytest
from scipy.fft import dct, idct
from scipy.stats import rankdata, spearmanr

from generators.findings import plantings
from generators.findings.frequency import FINDING as FREQUENCY
from generators.findings.frequency.chances import rank_of_any
from generators.maths.drift import drifting_correlations
from generators.maths.ranks import unit_ranks
from generators.tokens.frequency import TokenFrequency
from tests import synthetic

V, D, PLANTED = 2000, 128, 11
verdicts = partial(synthetic.verdicts, FREQUENCY)
claims_of = partial(synthetic.by_id, FREQUENCY)


def compute(E, log_frequency=None, gains=None, proxy=False):
    known = ()
    if log_frequency is not None:
        coverage = float(np.isfinite(log_frequency).mean())
        source = "counts" if coverage == 1 else "wordfreq"  # counts know every token
        known = (TokenFrequency(source, "planted counts", log_frequency, coverage, proxy),)
    weights = {"token_embedding": E.astype(np.float32)}
    weights |= {f"blocks.{i}.ln2.gain": gain for i, gain in (gains or {}).items()}
    arch = synthetic.architecture(n_layer=4, d_model=E.shape[1])
    return synthetic.measure(FREQUENCY, weights, arch, frequencies=known)


def planted(strength, sign=1.0):
    rng = np.random.default_rng(0)
    log_frequency = np.log1p(rng.zipf(1.3, V).clip(max=10**6).astype(float))
    ranks = rng.permutation(V) * 1e-9 + log_frequency
    E = rng.standard_normal((V, D))
    E[:, PLANTED] += sign * strength * (ranks - ranks.mean()) / ranks.std()
    return E, log_frequency


def found(strength, gains=None, sign=1.0):
    return compute(*planted(strength, sign), gains)


def raising(channel, channels=D):
    gains = {i: np.random.default_rng(i).uniform(0.9, 1.1, channels) for i in range(4)}
    for gain in gains.values():
        gain[channel] = 2
    return gains


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_planted_channel_is_found_whatever_its_sign(sign):
    result = found(3, raising(PLANTED), sign)
    assert result.metrics["frequency_channel"]["channel"] == PLANTED
    assert result.metrics["ln2_channel_rank"] == 1
    assert result.metrics["intervals"]["ln2_channel_rank"] == [1, 1]
    assert [claim.verdict for claim in FREQUENCY.claims(result)] == ["holds", "holds", "fails"]


def test_a_channel_that_ln2_does_not_raise_is_not_ln2s():
    result = found(3, raising(PLANTED + 1))
    assert verdicts(result)["frequency-is-ln2"] == "fails"
    low, high = result.metrics["intervals"]["ln2_channel_rank"]
    assert low < result.metrics["ln2_channel_rank"] < high
    assert verdicts(found(3))["frequency-is-ln2"] == "untested"


def test_a_proxy_is_shown_and_not_judged():
    E, log_frequency = planted(3)
    for result in (compute(E, log_frequency, proxy=True), compute(E)):
        (answer,) = {claim.answer for claim in FREQUENCY.claims(result)}
        assert answer.startswith("No token frequencies are known for this model")
        assert result.metrics["proxy"]


def test_without_any_frequency_the_index_stands_in():
    result = compute(planted(3)[0])
    source = {"source": "index", "label": "token index (a proxy)", "coverage": 1.0, "proxy": True}
    assert result.metrics["sources"] == [source]
    assert result.metrics["channel_rho"]["frequency"] == result.metrics["channel_rho"]["index"]
    assert result.tables["extremes"].column("log_frequency") == [-i for i in result.tables["extremes"].column("id")]


def test_of_few_tokens_with_a_frequency_nothing_is_claimed():
    E, log_frequency = planted(3)
    log_frequency[99:] = np.nan
    result = compute(E, log_frequency)
    assert {*verdicts(result).values()} == {"untested"}
    assert result.metrics["probe"] is result.metrics["chance"] is None


def test_frequency_spread_over_channels():
    rng = np.random.default_rng(5)
    log_frequency = rng.uniform(0, 10, V)
    direction = plantings.orthonormal(16, 1, seed=3)[:, 0]
    E = 0.5 * rng.standard_normal((V, 16)) + np.outer(log_frequency - 5, direction)
    result = compute(E, log_frequency)
    claim, chance = claims_of(result)["frequency-channel"], result.metrics["chance"]["frequency_channel"]
    assert abs(result.metrics["frequency_channel"]["rho"]) > 0.9
    assert claim.verdict == "fails"
    assert claim.threshold == chance["limit"] > chance["median"] > 0.5
    assert result.metrics["probe"]["rho"] > 0.95
    assert f"{result.metrics['probe']['rho']:.2f}" in claim.answer
    noise = compute(rng.standard_normal((V, 16)), log_frequency)
    assert abs(noise.metrics["probe"]["rho"]) < 0.1


def test_a_norm_that_follows_frequency_is_not_one_that_drifts():
    rng = np.random.default_rng(7)
    drifting, E = -np.arange(V) / V + 0.05 * rng.standard_normal(V), rng.standard_normal((V, 32))
    claim = claims_of(compute(E * (1 + np.arange(V) / V)[:, None], drifting))["frequent-shorter"]
    assert claim.value < -0.7
    assert claim.verdict == "fails"
    log_frequency = -np.arange(V) / V + 0.3 * rng.standard_normal(V)
    shorter = E * np.exp(-0.5 * log_frequency)[:, None]
    claim = claims_of(compute(shorter, log_frequency))["frequent-shorter"]
    assert claim.verdict == "holds"
    assert claim.value < claim.chance.limit - 0.02
    assert claim.chance.median == 0
    assert claim.interval[0] < claim.value < claim.interval[1]


def test_drifting_correlations_by_dct():
    rng = np.random.default_rng(9)
    rows, values = rng.standard_normal((3, 200)), rng.standard_normal(200)
    found = drifting_correlations(unit_ranks(rows, np.float32), values, 2, np.random.default_rng(4))
    signs = np.where(np.random.default_rng(4).random((1, 200), dtype=np.float32) < 0.5, -1, 1)[0]
    ranks = rankdata(values) - 100.5
    turned = idct(signs * dct(ranks, norm="ortho"), norm="ortho")
    expected = [np.corrcoef(rankdata(row), turned)[0, 1] for row in rows]
    np.testing.assert_allclose(found[0], expected, atol=0.02)  # but for the constant wave, which has no sign to have
    np.testing.assert_array_equal(found[1], -found[0])
    assert not unit_ranks(np.ones((1, 5))).any()


@pytest.mark.parametrize(("channels", "limit"), [(128, 2), (199, 2), (200, 3), (768, 8)])
def test_rank_of_a_random_channel(channels, limit):
    chance = rank_of_any(channels)
    assert (chance["median"], chance["limit"]) == ((channels + 1) / 2, limit)
    assert (limit - 1) / channels <= 0.01


def test_tied_channels_are_not_singled_out():
    gains = raising(PLANTED)
    for layer in (0, 1):
        gains[layer][PLANTED + 1] = 3
    result = found(3, gains)
    assert result.metrics["ln2_tied"] == [PLANTED, PLANTED + 1]
    assert verdicts(result)["frequency-is-ln2"] == "untested"


@pytest.mark.parametrize(("channels", "of_gains", "raised"), [
    (64, 64, PLANTED),  # of few channels none can be singled out
    (D, 2 * D, PLANTED), (D, 2 * D, 2 * D - 1),  # projected embeddings have other channels
])  # fmt: skip
def test_channels_that_can_not_be_ln2s(channels, of_gains, raised):
    E, log_frequency = planted(3)
    result = compute(E[:, :channels], log_frequency, raising(raised, of_gains))
    assert verdicts(result)["frequency-is-ln2"] == "untested"
    assert channels < D or result.metrics["ln2_channel"] is None


def test_correlations_lie_within_their_intervals():
    E, log_frequency = planted(1)
    first, *others = compute(E, log_frequency).metrics["correlations"]
    assert all(row["low"] <= row["rho"] <= row["high"] for row in (first, *others))
    assert (first["of"], first["with"]) == ("log_frequency", "frequency_channel")
    assert first["rho"] == pytest.approx(spearmanr(log_frequency, E.astype(np.float32)[:, PLANTED])[0])


def test_tokens_that_buck_a_planted_trend_are_listed_first():
    E, log_frequency = planted(6)
    rebels = [17, 1234]
    E[rebels, PLANTED] = -E[:, PLANTED].max() * np.sign(log_frequency[rebels] - np.median(log_frequency))
    table = compute(E, log_frequency).tables["against_the_trend"]
    assert set(rebels) <= set(table.column("id"))


def test_tokens_without_a_frequency_are_left_out():
    E, log_frequency = planted(3)
    log_frequency[::2] = np.nan
    result = compute(E, log_frequency)
    known = E.astype(np.float32)[1::2, PLANTED], log_frequency[1::2]
    assert result.metrics["coverage"] == 0.5
    assert result.metrics["frequency_channel"] == {"channel": PLANTED, "rho": pytest.approx(spearmanr(*known)[0])}
    for row in result.tables["extremes"].named():
        assert row["log_frequency"] == (log_frequency[row["id"]] if row["id"] % 2 else None)
    none = compute(E, np.full_like(log_frequency, np.nan), raising(PLANTED))
    assert none.metrics["frequency_channel"]["rho"] == 0
    assert set(verdicts(none).values()) == {"untested"}
    assert set(none.tables["against_the_trend"].column("rank_residual")) == {0}


@pytest.fixture(scope="module")
def metrics():
    return found(3, raising(PLANTED)).metrics


@pytest.mark.parametrize(("rho", "axes", "drift", "verdict", "threshold"), [
    (0.51, 0.2, 0.1, "holds", 0.5), (0.49, 0.2, 0.1, "partly", 0.5), (0.29, 0.2, 0.1, "fails", 0.5),
    (-0.51, 0.2, 0.1, "holds", 0.5), (0.63, 0.74, 0.1, "fails", 0.74), (0.75, 0.74, 0.1, "holds", 0.74),
    (0.51, 0.2, 0.495, "fails", 0.515), (0.51, 0.2, 0.485, "holds", 0.505), (0.35, 0.36, 0.1, "fails", 0.5),
])  # fmt: skip
def test_frequency_channel_claim(metrics, rho, axes, drift, verdict, threshold):
    chance = {"frequency_channel": synthetic.null(axes - 0.1, axes), "drift": synthetic.null(drift / 2, drift)}
    channel = {"channel": PLANTED, "rho": rho}
    changed = synthetic.measured_with(metrics, {"chance": chance}, frequency_channel=channel)
    claim = claims_of(changed)["frequency-channel"]
    assert (claim.value, claim.verdict, claim.threshold) == (abs(rho), verdict, pytest.approx(threshold))


@pytest.mark.parametrize(("claim", "null", "limit", "changed", "verdict", "threshold"), [
    ("frequency-is-ln2", "frequency_channel", 0.2, {"ln2_channel_rank": 1, "ln2_channel_rho": 0.31}, "holds", 1),
    ("frequency-is-ln2", "frequency_channel", 0.2, {"ln2_channel_rank": 1, "ln2_channel_rho": 0.29}, "fails", 1),
    ("frequency-is-ln2", "frequency_channel", 0.2, {"ln2_channel_rank": 2, "ln2_channel_rho": 0.9}, "fails", 1),
    ("frequency-is-ln2", "frequency_channel", 0.74, {"ln2_channel_rank": 1, "ln2_channel_rho": 0.63}, "fails", 1),
    ("frequent-shorter", "norm_rho", -0.1, {"norm_rho": -0.31}, "holds", -0.3),
    ("frequent-shorter", "norm_rho", -0.1, {"norm_rho": -0.29}, "fails", -0.3),
    ("frequent-shorter", "norm_rho", -0.44, {"norm_rho": -0.45}, "fails", -0.46),
    ("frequent-shorter", "norm_rho", -0.44, {"norm_rho": -0.47}, "holds", -0.46),
    ("frequent-shorter", "norm_rho", -0.44, {"norm_rho": 0.82}, "fails", -0.46),
])  # fmt: skip
def test_other_claims(metrics, claim, null, limit, changed, verdict, threshold):
    chance = {null: synthetic.null(max(0.0, limit - 0.1), limit)}
    found = claims_of(synthetic.measured_with(metrics, {"chance": chance}, **changed))[claim]
    assert (found.verdict, found.threshold) == (verdict, pytest.approx(threshold))
    assert found.value == next(iter(changed.values()))
    assert claim != "frequent-shorter" or found.weak == (changed["norm_rho"] == -0.29)  # -0.45 is close to drift's


def test_no_channel_is_that_of_frequency_where_none_exceeds_chance(metrics):
    chance = {"frequency_channel": synthetic.null(0.98, 0.99)}
    changed = synthetic.measured_with(metrics, {"chance": chance}, ln2_channel_rank=1)
    assert verdicts(changed)["frequency-is-ln2"] == "untested"
