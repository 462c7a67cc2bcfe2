"""Numbers that findings give beside their claims: planted structure is recovered, and none is found in noise."""

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


def metrics_of(name: str, **changed: np.ndarray) -> Any:
    arch = synthetic.architecture(n_ctx=64, d_model=D)
    return synthetic.measure(BY_NAME[name], {**synthetic.gaussian_weights(arch, 0), **changed}, arch).metrics


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
    rows[:, :30] = 7  # constant channels are left out
    found = centers(rows, np.where(np.ptp(rows, axis=0) > 0, rows.std(axis=0), 0), None)
    assert found["position_centered_share"] == 1
    assert (found["position_rho"], found["token_rho"]) == (None, None)


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


def test_lines_of_bent_shifted_and_constant_channels():
    x = np.linspace(-1, 1, 2000)
    bent, shifted = channel_line(x**2, x), channel_line(x / 2 + 5.5, (x + 1) / 2)
    assert bent["r2"] < 0.01
    assert bent["r2_groups"] > 0.95
    assert shifted["mean_expected"] == pytest.approx(0, abs=1e-6)
    assert shifted["mean"] > 10
    assert shifted["zero_at"] < 0
    assert channel_line(np.ones(50), np.arange(50.0)) is channel_line(np.arange(50.0), np.ones(50)) is None
    assert channel_line(np.ones(0), np.ones(0)) is None


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
    E = np.random.default_rng(5).standard_normal((3000, D))
    found, _ = outlier_lists(OutlierTokens(E, np.linalg.norm(E, axis=1), None), channel=None)
    shared = {frozenset((row["first"], row["second"])): row["shared"] for row in found["overlaps"]}
    assert shared[frozenset(("longest", "shortest"))] == 0
    assert len(found["names"]) == 5


def test_tokens_on_one_side_of_the_first_direction_are_counted():
    E = 0.1 * synthetic.gaussian_weights(synthetic.architecture(n_ctx=64, d_model=D), 0)["token_embedding"]
    E[:, 0] += np.where(np.arange(len(E)) < 40, -5, 5)
    assert metrics_of("token_svd", token_embedding=E)["one_sign_share"] == pytest.approx(1 - 40 / len(E))


@pytest.mark.parametrize("away", [True, False])
def test_output_matrix_away_from_tokens(away):
    rng = np.random.default_rng(6)
    E = rng.standard_normal((400, D)) * np.geomspace(1, 0.05, D)
    output = rng.standard_normal((D, D)) * (np.arange(D) >= 6 * away)[:, None]
    found = metrics_of("attention", token_embedding=E.astype(np.float32), **{"blocks.0.attn.o": output})
    assert (found["shares"]["E"]["O"][0]["raw"] < found["chance"]["turned"]["O"]["raw"]["least"]["limit"]) == away
