from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from generators.findings import plantings
from generators.findings.channel_use import FINDING
from generators.findings.channel_use.measure import drawn_to_sweep
from generators.findings.measured import KnownOfModel
from generators.tokens.frequency import TokenFrequency
from tests import synthetic
from tests.findings.stand_in import measure_run

N, D, V, LAYERS = 24, 128, 120, 2
ARCH = synthetic.architecture(n_ctx=N, d_model=D, n_layer=LAYERS, vocab_size=V)
LOG_FREQUENCY = np.random.default_rng(1).uniform(0, 8, V)
FREQUENT, LN2, POSITION = 7, 11, 13
claims_of = partial(synthetic.by_id, FINDING)


def weights_of():
    weights = synthetic.gaussian_weights(ARCH, 0)
    E = np.random.default_rng(2).standard_normal((V, D)).astype(np.float32)
    E[:, FREQUENT] += LOG_FREQUENCY
    P = np.random.default_rng(3).standard_normal((N, D))
    P[:, POSITION] *= 10
    gains = plantings.gains_topped_by(LN2, range(LAYERS), LAYERS, D, 3.0)
    return plantings.with_gains({**weights, "token_embedding": E, "position_embedding": P}, "ln2", gains)


def measured(proxy=False, frequencies=True, **planted):
    weights = weights_of()
    known = (TokenFrequency("corpus", "a corpus", LOG_FREQUENCY, 1.0, proxy),) if frequencies else ()
    given = {"log_frequency": LOG_FREQUENCY, "affords": 4, **planted}
    return measure_run(FINDING, ARCH, weights["position_embedding"], weights, known, **given)


def test_the_channels_that_findings_name_and_all_channels():
    metrics = measured().metrics
    assert [(row["channel"], row["why"]) for row in metrics["channels"]] == [
        (FREQUENT, "frequency"), (LN2, "ln2"), (POSITION, "position"),
    ]  # fmt: skip
    assert [row["channel"] for row in metrics["swept"]] == list(range(D))
    assert metrics["channels"][0]["cost"] == pytest.approx(metrics["swept"][FREQUENT]["cost"])


def test_of_many_channels_some_are_drawn_and_those_that_findings_name_don_t_count_among_them():
    channels = drawn_to_sweep(768)
    assert len(channels) == len(set(channels)) == 128
    assert channels == drawn_to_sweep(768) != drawn_to_sweep(769)
    result = measured(costs={FREQUENT: 0.3})
    rows = [{**row, "channel": channel} for row, channel in zip(result.metrics["swept"], channels, strict=True)]
    named = next(channel for channel in range(768) if channel not in channels)
    row = {**result.metrics["channels"][0], "channel": rows[FREQUENT]["channel"]}
    swept = [*rows, {"channel": named, "cost": 0.9, "unigram_rho": -1.0}]
    found = replace(result, metrics={**result.metrics, "channels": [row], "swept": swept})
    assert claims_of(found)["leans-on-channel"].value == 2 / 129
    assert claims_of(replace(found, model=KnownOfModel(d_model=768)))["leans-on-channel"].value == 1 / 128


def test_planted_costs():
    result = measured(costs={FREQUENT: 0.3, LN2: 0.1})
    assert [row["cost"] for row in result.metrics["channels"]] == pytest.approx([0.3, 0.1, 0.0], rel=0.02)
    costs = {row["channel"]: row["cost"] for row in result.metrics["swept"]}
    assert (costs.pop(FREQUENT), costs.pop(LN2)) == pytest.approx((0.3, 0.1), rel=0.02)
    assert set(costs.values()) == {0.0}
    claim = claims_of(result)["leans-on-channel"]
    assert (claim.verdict, claim.value) == ("holds", 1 / D)


@pytest.mark.parametrize(("dearer", "cost", "verdict"), [
    (0, 0.3, "holds"), (1, 0.3, "partly"), (5, 0.3, "partly"), (6, 0.3, "fails"), (D, 0.3, "fails"),
    (0, 0, "fails"),  # the dearest, but it costs nothing
])  # fmt: skip
def test_the_rank_among_all_channels_judges(dearer, cost, verdict):
    others = [channel for channel in range(D) if channel != FREQUENT]
    costs = {channel: 0.5 if place < dearer else cost - 0.2 for place, channel in enumerate(others)}
    claim = claims_of(measured(costs={**costs, FREQUENT: cost - 0.05 * (cost == 0)}))["leans-on-channel"]
    assert claim.verdict == verdict
    assert cost == 0 or claim.value == (1 + min(dearer, D - 1)) / D


def test_without_frequencies_no_channel_is_that_of_frequency_and_some_models_predict_nothing():
    unknown, silent = measured(frequencies=False, costs={LN2: 0.3}), measured(predicts=False, costs={FREQUENT: 0.3})
    assert (unknown.metrics["channels"][0]["why"], unknown.metrics["values"]) == ("ln2", [])
    assert silent.metrics["channels"][0]["unigram_rho"] is None
    for result, verdict in ((unknown, "untested"), (silent, "holds")):
        claims = claims_of(result)
        assert claims["leans-on-channel"].verdict == verdict
        assert claims["guess-by-frequency"].verdict == "untested"
    synthetic.assert_drawn_and_described(FINDING, silent)


@pytest.mark.parametrize(("guesses", "proxy", "verdict"), [
    ({FREQUENT: -0.3}, False, "holds"), ({FREQUENT: 0.3}, False, "fails"),
    (dict.fromkeys(range(D), -0.3), False, "fails"), ({FREQUENT: -0.3}, True, "untested"),
])  # fmt: skip
def test_a_planted_guess_by_frequency(guesses, proxy, verdict):
    result = measured(guesses=guesses, proxy=proxy)
    row, claim = result.metrics["channels"][0], claims_of(result)["guess-by-frequency"]
    assert claim.verdict == verdict
    if not proxy:
        assert claim.value == row["unigram_rho"]
        assert row["unigram_rho"] * np.sign(guesses[FREQUENT]) > 0.9
        assert row["divergence"] is not None
