"""The frequency finding: planted channels recovered, correlations against SciPy, proxies never judged."""

import json

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError
from scipy.stats import spearmanr

from generators.findings.frequency import FINDING as FREQUENCY
from generators.findings.frequency.claims import NO_FREQUENCIES
from generators.site.words import caption
from generators.tokens.frequency import Frequency
from tests import synthetic

V, D, PLANTED = 3000, 32, 11


def frequencies(log_frequency: np.ndarray, proxy: bool = False) -> tuple[Frequency, ...]:
    coverage = float(np.isfinite(log_frequency).mean())
    source = "counts" if coverage == 1 else "wordfreq"  # counts know every token
    return (Frequency(source, "planted counts", log_frequency, coverage, proxy, "0"),)


def compute(E: np.ndarray, known: tuple[Frequency, ...], gains: dict[int, np.ndarray] | None = None):
    weights = {"token_embedding": E.astype(np.float32)}
    weights |= {f"blocks.{i}.ln2.gain": gain for i, gain in (gains or {}).items()}
    arch = synthetic.architecture(n_layer=4, d_model=E.shape[1])
    return synthetic.measure(FREQUENCY, weights, arch, frequencies=known)


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
    for known in (frequencies(log_frequency, proxy=True), ()):
        result = compute(E, known)
        assert set(verdicts(result).values()) == {"untested"}
        assert {claim.answer for claim in FREQUENCY.claims(result)} == {NO_FREQUENCIES.reason}
        assert result.metrics["proxy"]


def test_without_any_frequency_the_index_stands_in():
    E, _ = planted(3)
    result = compute(E, ())
    assert result.metrics["sources"] == [
        {"source": "index", "label": "token index (a proxy)", "coverage": 1.0, "proxy": True}
    ]
    assert result.metrics["channel_rho"]["frequency"] == result.metrics["channel_rho"]["index"]
    assert result.tables["extremes"].column("log_frequency") == [-i for i in result.tables["extremes"].column("id")]


@pytest.mark.parametrize("seed", range(6))
def test_noise_has_no_frequency_channel(seed):
    rng = np.random.default_rng(seed)
    known = frequencies(np.log1p(rng.zipf(1.3, V).clip(max=10**6).astype(float)))
    result = compute(rng.standard_normal((V, D)), known, {i: rng.standard_normal(D) for i in range(4)})
    assert set(verdicts(result).values()) == {"fails"}


def test_a_tiny_vocabulary_of_noise_does_not_pass():
    rng = np.random.default_rng(0)
    known = frequencies(rng.standard_normal(14))
    assert verdicts(compute(rng.standard_normal((14, 64)), known))["frequency-channel"] == "fails"


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
    assert set(rebels) <= set(table.column("id"))


def test_tokens_without_a_frequency_are_left_out():
    E, log_frequency = planted(3)
    log_frequency[::2] = np.nan
    result = compute(E, frequencies(log_frequency))
    assert result.metrics["coverage"] == 0.5
    assert result.metrics["frequency_channel"]["channel"] == PLANTED
    assert result.metrics["frequency_channel"]["rho"] == pytest.approx(
        spearmanr(E.astype(np.float32)[1::2, PLANTED], log_frequency[1::2])[0]
    )


def test_a_frequency_that_is_not_known_is_none_in_tables():
    E, log_frequency = planted(3)
    log_frequency[::2] = np.nan
    for row in compute(E, frequencies(log_frequency)).tables["extremes"].named():
        assert row["log_frequency"] == (log_frequency[row["id"]] if row["id"] % 2 else None)


def test_where_no_frequency_is_known_no_channel_tracks_it():
    E, log_frequency = planted(3)
    result = compute(E, frequencies(np.full_like(log_frequency, np.nan)), raising(PLANTED))
    assert result.metrics["frequency_channel"]["rho"] == result.metrics["chance_rho"] == 0
    assert verdicts(result) == {
        "frequency-channel": "fails",
        "frequency-is-ln2": "fails",
        "frequent-shorter": "untested",
    }
    assert set(result.tables["against_the_trend"].column("rank_residual")) == {0}


@pytest.mark.parametrize(
    ("rho", "chance", "verdict"),
    [
        (0.51, 0.25, "holds"),
        (0.51, 0.26, "fails"),
        (0.49, 0.1, "partly"),
        (0.29, 0.1, "fails"),
        (-0.51, 0.1, "holds"),
    ],
)
def test_frequency_channel_claim(rho, chance, verdict):
    E, log_frequency = planted(3)
    metrics = compute(E, frequencies(log_frequency)).metrics
    found = {"channel": PLANTED, "rho": rho}
    changed = synthetic.measured_with(metrics, frequency_channel=found, chance_rho=chance)
    claim = {c.id: c for c in FREQUENCY.claims(changed)}["frequency-channel"]
    assert (claim.value, claim.baseline, claim.verdict) == (abs(rho), chance, verdict)


@pytest.mark.parametrize(("place", "rho", "verdict"), [(1, 0.31, "holds"), (1, 0.29, "fails"), (2, 0.9, "fails")])
def test_frequency_is_ln2_claim(place, rho, verdict):
    E, log_frequency = planted(3)
    metrics = compute(E, frequencies(log_frequency), raising(PLANTED)).metrics
    changed = synthetic.measured_with(metrics, ln2_channel_rank=place, ln2_channel_rho=rho)
    assert verdicts(changed)["frequency-is-ln2"] == verdict


# Figures, and what is stored


def test_every_figure_is_drawn():
    E, log_frequency = planted(1)
    result = compute(E, frequencies(log_frequency), raising(3))
    for figure in FREQUENCY.figures(result):
        assert caption("frequency", figure.name, result).how_to_read
        assert caption("frequency", figure.name, result).alt
        figure.draw()


def test_what_the_pictures_show_is_told():
    E, log_frequency = planted(1)
    result = compute(E, frequencies(log_frequency), raising(3))
    said = {figure.name: caption("frequency", figure.name, result) for figure in FREQUENCY.figures(result)}
    m = result.metrics
    rho, contrast, row = m["frequency_channel"]["rho"], m["contrast_channel"], m["correlations"][0]
    assert said["frequency-channel"].alt == (
        f"Channel {PLANTED} against log-frequency (rho {rho:+.2f}), norm and token index, "
        f"above channel {contrast['channel']} (rho {contrast['rho']:+.2f})."
    )
    assert "from planted counts; 100% of the tokens are covered." in said["frequency-channel"].how_to_read
    assert said["frequency-candidates"].alt.startswith(
        f"With log-frequency: frequency channel {rho:+.2f} ({row['low']:+.2f} to {row['high']:+.2f}); norm "
    )
    unknown = synthetic.measured_with(m, norm_rho=None)
    assert caption("frequency", "norm-frequency", unknown).alt == "Norm against log-frequency: rho +0.00."


@pytest.mark.parametrize("gains", [None, raising(3)])
@pytest.mark.parametrize("known", [True, False])
def test_the_type_of_the_metrics_is_theirs(gains, known):
    E, log_frequency = planted(1)
    result = compute(E, frequencies(log_frequency) if known else (), gains)
    stored = json.loads(json.dumps(result.metrics, allow_nan=False))
    typed = TypeAdapter(FREQUENCY.metrics)
    assert typed.validate_python(stored, strict=True) == stored
    for lost in stored:
        with pytest.raises(ValidationError):
            typed.validate_python({key: value for key, value in stored.items() if key != lost})
