"""The frequency finding: planted channels recovered, correlations against SciPy, proxies never judged."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from generators.findings.finding import TokenFacts
from generators.findings.frequency import FREQUENCY, channel_correlations, rank
from generators.tokens.frequency import Frequency
from tests import synthetic

V, D, PLANTED = 3000, 32, 11


def frequencies(log_frequency: np.ndarray, proxy: bool = False) -> TokenFacts:
    coverage = float(np.isfinite(log_frequency).mean())
    return TokenFacts(None, (Frequency("counts", "planted counts", log_frequency, coverage, proxy, "0"),))


def compute(E: np.ndarray, facts: TokenFacts, gains: dict[int, np.ndarray] | None = None):
    weights = {"token_embedding": E.astype(np.float32)}
    weights |= {f"blocks.{i}.ln2.gain": gain for i, gain in (gains or {}).items()}
    return FREQUENCY.compute(weights, synthetic.architecture(n_layer=4, d_model=E.shape[1]), facts)


def verdicts(result) -> dict[str, str]:
    return {claim.id: claim.verdict for claim in FREQUENCY.claims(result)}


def planted(strength: float, sign: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    log_frequency = np.log1p(rng.zipf(1.3, V).clip(max=10**6).astype(float))
    ranks = rng.permutation(V) * 1e-9 + log_frequency
    E = rng.standard_normal((V, D))
    E[:, PLANTED] += sign * strength * (ranks - ranks.mean()) / ranks.std()
    return E, log_frequency


def raising(channel: int) -> dict[int, np.ndarray]:
    gains = {i: np.random.default_rng(i).uniform(0.9, 1.1, D) for i in range(4)}
    for gain in gains.values():
        gain[channel] = 2
    return gains


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_planted_channel_is_found_whatever_its_sign(sign):
    E, log_frequency = planted(3, sign)
    result = compute(E, frequencies(log_frequency), raising(PLANTED))
    assert result.metrics["frequency_channel"]["channel"] == PLANTED
    assert result.metrics["ln2_channel_rank"] == 1
    assert verdicts(result) == {
        "frequency-channel": "holds",
        "frequency-is-ln2": "holds",
        "frequent-shorter": "fails",
    }


def test_a_channel_that_ln2_does_not_raise_is_not_ln2s():
    E, log_frequency = planted(3)
    result = compute(E, frequencies(log_frequency), raising(PLANTED + 1))
    assert verdicts(result)["frequency-is-ln2"] == "fails"
    assert verdicts(compute(E, frequencies(log_frequency)))["frequency-is-ln2"] == "untested"


@pytest.mark.parametrize(("sign", "verdict"), [(-1, "holds"), (1, "fails")])
def test_the_sign_of_norm_and_frequency_is_told(sign, verdict):
    rng = np.random.default_rng(1)
    log_frequency = rng.uniform(0, 10, V)
    E = rng.standard_normal((V, D)) * np.exp(sign * 0.05 * log_frequency)[:, None]
    claim = {c.id: c for c in FREQUENCY.claims(compute(E, frequencies(log_frequency)))}["frequent-shorter"]
    assert claim.verdict == verdict
    assert claim.answer.endswith("frequent tokens are shorter." if sign < 0 else "frequent tokens are longer.")


def test_a_proxy_is_shown_and_not_judged():
    E, log_frequency = planted(3)
    for facts in (frequencies(log_frequency, proxy=True), TokenFacts()):
        result = compute(E, facts)
        assert set(verdicts(result).values()) == {"untested"}
        assert result.metrics["proxy"]


@pytest.mark.parametrize("seed", range(6))
def test_noise_has_no_frequency_channel(seed):
    rng = np.random.default_rng(seed)
    facts = frequencies(np.log1p(rng.zipf(1.3, V).clip(max=10**6).astype(float)))
    result = compute(rng.standard_normal((V, D)), facts, {i: rng.standard_normal(D) for i in range(4)})
    assert set(verdicts(result).values()) == {"fails"}


def test_a_tiny_vocabulary_of_noise_does_not_pass():
    rng = np.random.default_rng(0)
    facts = frequencies(rng.standard_normal(14))
    assert verdicts(compute(rng.standard_normal((14, 64)), facts))["frequency-channel"] == "fails"


@pytest.mark.parametrize("ties", [False, True])
def test_correlations_are_those_of_scipy(ties):
    rng = np.random.default_rng(2)
    E = rng.standard_normal((500, 40)).astype(np.float32)
    E = np.round(E, 1) if ties else E
    E[:, 7] = 3  # constant
    known = rng.random(500) < 0.6
    values = np.where(known, np.round(E[:, 0] + rng.standard_normal(500), 1), np.nan)
    everyone = rng.standard_normal(500)
    found = channel_correlations(E, [rank(values, known), rank(everyone, np.ones(500, bool))])
    for channel in range(40):
        if channel == 7:
            assert found[:, channel].tolist() == [0, 0]
        else:
            assert found[0, channel] == pytest.approx(spearmanr(E[known, channel], values[known])[0])
            assert found[1, channel] == pytest.approx(spearmanr(E[:, channel], everyone)[0])


def test_intervals_hold_the_correlation_and_shrink_with_more_tokens():
    E, log_frequency = planted(1)
    many = compute(E, frequencies(log_frequency)).metrics["correlations"]
    few = compute(E[:300], frequencies(log_frequency[:300])).metrics["correlations"]
    for row in many:
        assert row["low"] <= row["rho"] <= row["high"]
    first = many[0]
    assert (first["of"], first["with"]) == ("log_frequency", "frequency_channel")
    assert first["rho"] == pytest.approx(spearmanr(log_frequency, E.astype(np.float32)[:, PLANTED])[0])
    assert few[0]["high"] - few[0]["low"] > 2 * (first["high"] - first["low"])


def test_tokens_that_buck_a_planted_trend_are_listed_first():
    E, log_frequency = planted(6)
    rebels = [17, 1234]
    E[rebels, PLANTED] = -E[:, PLANTED].max() * np.sign(log_frequency[rebels] - np.median(log_frequency))
    table = compute(E, frequencies(log_frequency)).tables["against_the_trend"]
    assert set(rebels) <= {row[0] for row in table.rows}


def test_tokens_without_a_frequency_are_left_out():
    E, log_frequency = planted(3)
    log_frequency[::2] = np.nan
    result = compute(E, frequencies(log_frequency))
    assert result.metrics["coverage"] == 0.5
    assert result.metrics["frequency_channel"]["channel"] == PLANTED
    assert result.metrics["frequency_channel"]["rho"] == pytest.approx(
        spearmanr(E.astype(np.float32)[1::2, PLANTED], log_frequency[1::2])[0]
    )


def test_every_figure_is_drawn():
    E, log_frequency = planted(1)
    for figure in FREQUENCY.figures(compute(E, frequencies(log_frequency), raising(3))):
        assert figure.alt
        figure.draw()
