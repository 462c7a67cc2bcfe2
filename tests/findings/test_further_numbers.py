"""Numbers that findings give beside their claims: planted structure is recovered, and none is found in noise."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from generators.findings import FINDINGS
from generators.findings.channels.measure import centers
from generators.findings.frequency.measure import channel_line
from generators.findings.outliers.ends import outlier_lists
from generators.findings.outliers.tokens import OutlierTokens
from generators.findings.zero_layer.measure import alike, partners
from tests import synthetic

BY_NAME = {finding.name: finding for finding in FINDINGS}
D = 32


def metrics_of(name: str, weights: Mapping[str, np.ndarray]) -> Any:
    return synthetic.measure(BY_NAME[name], weights, synthetic.architecture(n_ctx=64, d_model=D)).metrics


# Channels: how far off zero


def test_channels_off_zero():
    rng = np.random.default_rng(0)
    std = rng.uniform(0.5, 2, D)
    rows = rng.standard_normal((4000, D)) * std
    off = rows + 2 * std * np.where(np.arange(D) < 8, 1, 0)
    found = centers(off, off.std(axis=0), (3 * std, std))
    assert found["position_centered_share"] == 24 / 32
    assert found["position_mean_over_std"] < 0.05
    assert found["token_mean_over_std"] == pytest.approx(3)
    assert found["token_rho"] == pytest.approx(1)


def test_constant_channels_are_left_out_of_centers():
    rows = np.random.default_rng(0).standard_normal((50, D))
    rows[:, :30] = 7
    found = centers(rows, np.where(np.ptp(rows, axis=0) > 0, rows.std(axis=0), 0), None)
    assert found["position_centered_share"] == 1
    assert (found["position_rho"], found["token_rho"]) == (None, None)


# Frequency: a line in log-frequency


def test_mean_of_a_straight_channel():
    rng = np.random.default_rng(1)
    x = rng.exponential(1, 3000).clip(max=6)
    middle = (x.min() + x.max()) / 2
    found = channel_line((2 * (x - middle)).astype(np.float32), x)
    assert found["r2"] == pytest.approx(1)
    assert found["zero_at"] == pytest.approx(0.5, abs=1e-6)
    assert found["mean"] == pytest.approx(found["mean_expected"], rel=1e-4)
    assert found["mean"] < -1
    assert found["rarer"] > 0.9
    assert found["skewness"] > 1


def test_a_bent_channel_is_explained_by_groups_and_not_by_a_line():
    x = np.linspace(-1, 1, 2000)
    found = channel_line(x**2, x)
    assert found["r2"] < 0.01
    assert found["r2_groups"] > 0.95


def test_mean_of_a_shifted_channel():
    x = np.linspace(0, 1, 2000)
    found = channel_line(x + 5, x)
    assert found["mean_expected"] == pytest.approx(0, abs=1e-6)
    assert found["mean"] > 10
    assert found["zero_at"] < 0


def test_constant_channels_and_frequencies_have_no_line():
    assert channel_line(np.ones(50), np.arange(50.0)) is None
    assert channel_line(np.arange(50.0), np.ones(50)) is None


# Zero layers: partners alike


def test_partners_alike():
    values = np.random.default_rng(2).standard_normal(5000)
    near = np.flatnonzero(np.abs(values - 1) < 0.05)
    found = alike(values, near)
    assert found["spread"] < found["chance"]["limit"] < found["chance"]["median"]
    assert found["place"] == pytest.approx(0.84, abs=0.02)
    assert alike(values, np.arange(200))["spread"] > found["chance"]["limit"]


def test_partners_are_compared_on_the_channel_of_frequency():
    rng = np.random.default_rng(3)
    E, frequency = rng.standard_normal((2000, D)), rng.standard_normal(2000)
    E[:, 5] = frequency
    shorter = np.flatnonzero(np.abs(frequency + 1) < 0.05)
    found = partners(E, np.linalg.norm(E, axis=1), shorter, frequency)
    assert (found["channel"], found["count"]) == (5, len(shorter))
    assert found["on_channel"]["spread"] < found["on_channel"]["chance"]["limit"]
    assert found["norm"]["spread"] > found["norm"]["chance"]["limit"]
    assert partners(E, np.linalg.norm(E, axis=1), shorter, None)["on_channel"] is None
    assert partners(E, np.linalg.norm(E, axis=1), shorter[:9], frequency) is None


# Outliers: lists by different measures


def test_tokens_that_are_outermost_on_many_axes_are_listed():
    E = np.random.default_rng(4).standard_normal((3000, D))
    E[100:110] = 30
    tokens = OutlierTokens(E, np.linalg.norm(E, axis=1), None)
    found, tables = outlier_lists(tokens, channel=3)
    assert found["length"] == 30
    assert found["on_many"] > found["chance"]["limit"]
    assert set(range(100, 110)) <= set(tables["listed"].column("id"))
    best = found["overlaps"][0]
    assert {best["first"], best["second"]} == {"longest", "far from the mean"}
    assert best["times_chance"] == pytest.approx(best["shared"] * 3000 / 30**2)


def test_lists_of_noise_do_not_overlap_between_channel_and_direction():
    E = np.random.default_rng(5).standard_normal((3000, D))
    found, _ = outlier_lists(OutlierTokens(E, np.linalg.norm(E, axis=1), None), channel=None)
    shared = {frozenset((row["first"], row["second"])): row["shared"] for row in found["overlaps"]}
    assert shared[frozenset(("longest", "shortest"))] == 0
    assert len(found["names"]) == 5


# Token directions and attention


def test_tokens_on_one_side_of_the_first_direction_are_counted():
    weights = synthetic.gaussian_weights(synthetic.architecture(n_ctx=64, d_model=D), 0)
    E = weights["token_embedding"] * 0.1
    E[:, 0] += 5
    E[:40, 0] = -5
    share = 1 - 40 / len(E)
    found = metrics_of("token_svd", {**weights, "token_embedding": E})
    assert found["one_sign_share"] == pytest.approx(share)


def test_output_matrix_away_from_tokens():
    rng = np.random.default_rng(6)
    weights = synthetic.gaussian_weights(synthetic.architecture(n_ctx=64, d_model=D), 0)
    weights["token_embedding"] = weights["token_embedding"] * np.geomspace(1, 0.05, D, dtype=np.float32)
    output = rng.standard_normal((D, D))
    output[:6] = 0
    found = metrics_of("attention", {**weights, "blocks.0.attn.o": output.astype(np.float32)})
    assert found["shares"]["E"]["O"][0]["raw"] < found["chance"]["writes_tokens"]["limit"]
    plain = metrics_of("attention", weights)
    assert plain["shares"]["E"]["O"][0]["raw"] > plain["chance"]["writes_tokens"]["limit"]
