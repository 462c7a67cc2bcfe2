from dataclasses import replace

import numpy as np
import pytest

from generators.base.architecture import Buckets, Rotary
from generators.findings import plantings
from generators.findings.blurred import FINDING
from generators.findings.blurred.measure import COMPONENTS, GROUP, looks, reduce, why_not
from generators.findings.positional import queries_and_keys, scoring, stream_of
from generators.maths.curve import grouped
from tests import synthetic

ARCH = synthetic.architecture()
WEIGHTS = synthetic.gaussian_weights(ARCH, 0)
FEW = COMPONENTS // 2
CURVE = np.random.default_rng(5).standard_normal((ARCH.n_ctx, FEW)) + 0.5


# Positions that lie in fewer directions than are kept, off the origin.
OF_FEW = {**WEIGHTS, "position_embedding": plantings.embed(CURVE, ARCH.d_model, seed=3) + 0.3}


@pytest.mark.parametrize("size", [1, 7, GROUP])
@pytest.mark.parametrize(("changed", "lacking"), [
    ({}, ()), ({"causal": False}, ()), ({"norm": "rms"}, ("ln1.bias",)), ({}, ("ln1",)),
    ({"scaled_by_layer": True}, ()),
])  # fmt: skip
def test_positions_of_few_components_are_reduced_without_loss(size, changed, lacking):
    arch = replace(ARCH, **changed)
    weights = {role: value for role, value in OF_FEW.items() if not any(part in role for part in lacking)}
    P = weights["position_embedding"]
    reduced, variance = reduce(weights, arch, P)
    assert variance == pytest.approx(1)
    z = reduced.coordinates(grouped(reduced.scores, size, [0]))
    at = np.array([0, 3, 100, 255])
    for layer in range(arch.n_layer):
        scored = scoring(weights, arch, layer, len(P))
        queries, keys = queries_and_keys(weights, arch, stream_of(weights, arch, grouped(P, size, [0])), layer)
        for head in range(arch.n_head):
            exact = looks(queries[head][at], keys[head], at, scored, head)
            near = looks(z[at] @ reduced.heads[layer * arch.n_head + head], z, at, scored, head)
            assert near == pytest.approx(exact, abs=1e-4)


def test_what_is_stored_in_half_precision_is_near_enough():
    found = synthetic.measure(FINDING, OF_FEW, ARCH)
    assert found.metrics["reduction"]["components"] == COMPONENTS
    assert found.metrics["reduction"]["largest_error"] < 0.02
    noise = synthetic.measure(FINDING, WEIGHTS, ARCH).metrics["reduction"]
    assert noise["variance"] < 0.9
    assert noise["largest_error"] > 0.1, "components that are left out are shown as error"


def test_blur_takes_the_previous_token():
    weights = plantings.with_positional_heads(WEIGHTS, ARCH, {(1, 0): 1})
    rows = synthetic.measure(FINDING, weights, ARCH).metrics["heads"]
    planted = next(row for row in rows if (row["layer"], row["head"]) == (1, 0))
    assert planted["as_they_are"] > 0.9
    assert planted["in_groups"] < 2 / GROUP
    assert all(row["as_they_are"] < 0.2 for row in rows if row is not planted)


def test_positions_that_are_blurred_already_lose_nothing():
    blurred = grouped(np.asarray(WEIGHTS["position_embedding"], np.float64), GROUP, [0])
    for row in synthetic.measure(FINDING, {**WEIGHTS, "position_embedding": blurred}, ARCH).metrics["heads"]:
        assert row["in_groups"] == pytest.approx(row["as_they_are"], rel=1e-6)


@pytest.mark.parametrize(("changed", "given", "says"), [
    ({"rotary": (Rotary(8, (6.3, 20.0, 63.0, 200.0)), None)}, {}, "turned"),
    ({"slopes": (0.5, 0.25)}, {}, "bias by distance"),
    ({"buckets": Buckets(32, 128, both_ways=True)}, {}, "bias by distance"),
    ({"score_cap": 20.0}, {}, "capped"), ({"windows": (32, None)}, {}, "window"),
    ({}, {"embedding_norm.gain": np.ones(48)}, "a norm stands"),
    ({}, {"blocks.1.ln1.gain": None}, "some of its layers"),
])  # fmt: skip
def test_what_can_not_be_reduced_is_said_and_has_no_arrays(changed, given, says):
    arch = replace(ARCH, **changed)
    weights = {role: value for role, value in {**WEIGHTS, **given}.items() if value is not None}
    assert says in (why_not(weights, arch) or "")
    if arch.buckets is None and not arch.slopes:
        found = synthetic.measure(FINDING, weights, arch)
        assert found.metrics["reduction"] is None
        assert found.arrays == {}
        assert {row["error"] for row in found.metrics["heads"]} == {None}


def test_what_half_precision_cannot_hold_is_said_and_not_drawn():
    large = {**OF_FEW, "blocks.0.attn.q": 1e9 * OF_FEW["blocks.0.attn.q"]}
    result = synthetic.measure(FINDING, large, ARCH)
    assert result.arrays == {}
    assert "too large for the half precision" in result.metrics["why_not"]
    assert np.isfinite([row["in_groups"] for row in result.metrics["heads"]]).all()
