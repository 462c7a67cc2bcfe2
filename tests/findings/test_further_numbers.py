"""Numbers that findings give beside their claims: planted structure is recovered, and none is found in noise."""

from typing import Any

import numpy as np
import pytest

from generators.findings import FINDINGS
from generators.findings.outliers.ends import outlier_lists
from generators.findings.outliers.tokens import OutlierTokens
from generators.findings.zero_layer.measure import alike, partners
from tests import synthetic

BY_NAME = {finding.name: finding for finding in FINDINGS}
D = 32


def metrics_of(name: str, **changed: np.ndarray) -> Any:
    arch = synthetic.architecture(n_ctx=64, d_model=D)
    return synthetic.measure(BY_NAME[name], {**synthetic.gaussian_weights(arch, 0), **changed}, arch).metrics


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
