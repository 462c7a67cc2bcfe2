from dataclasses import replace

import numpy as np
import pytest

from generators.base.architecture import Rotary
from generators.findings import plantings
from generators.findings.blurred import FINDING
from generators.findings.blurred.measure import GROUP
from generators.maths.curve import grouped
from tests import synthetic
from tests.findings.by_reference import attention_to_positions

ARCH = synthetic.architecture()
WEIGHTS = synthetic.gaussian_weights(ARCH, 0)
P = np.asarray(WEIGHTS["position_embedding"], np.float64)


@pytest.mark.parametrize("changed", [
    {}, {"causal": False}, {"scaled_by_layer": True}, {"score_cap": 20.0}, {"windows": (32, None)},
    {"slopes": (0.5, 0.25)}, {"rotary": (Rotary(8, (6.3, 20.0, 63.0, 200.0)), None)},
])  # fmt: skip
def test_weights_are_those_of_the_reference_with_every_position_and_with_groups(changed):
    arch = replace(ARCH, **changed)
    found = synthetic.measure(FINDING, WEIGHTS, arch).metrics
    asked = np.unique(np.linspace(100, 255, 64).astype(int))
    for name, rows in (("as_they_are", P), ("in_groups", grouped(P, GROUP, [0]))):
        weights = {**WEIGHTS, "position_embedding": rows}
        heads = np.concatenate([attention_to_positions(weights, arch, layer) for layer in range(arch.n_layer)])
        expected = heads[:, asked, asked - 1].mean(axis=1)
        np.testing.assert_allclose([row[name] for row in found["heads"]], expected, rtol=1e-3)


def test_blur_takes_the_previous_token():
    weights = plantings.with_positional_heads(WEIGHTS, ARCH, {(1, 0): 1})
    rows = synthetic.measure(FINDING, weights, ARCH).metrics["heads"]
    planted = next(row for row in rows if (row["layer"], row["head"]) == (1, 0))
    assert planted["as_they_are"] > 0.9
    assert planted["in_groups"] < 2 / GROUP
    assert all(row["as_they_are"] < 0.2 for row in rows if row is not planted)


def test_positions_that_are_blurred_already_lose_nothing():
    weights = {**WEIGHTS, "position_embedding": grouped(P, GROUP, [0])}
    for row in synthetic.measure(FINDING, weights, ARCH).metrics["heads"]:
        assert row["in_groups"] == pytest.approx(row["as_they_are"], rel=1e-6)
