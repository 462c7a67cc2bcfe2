from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from generators.findings import plantings
from generators.findings.inputs import NotApplicableError
from generators.findings.position_use import FINDING, variants
from generators.maths.curve import grouped
from tests import synthetic
from tests.findings.stand_in import measure_run

N, D = 120, 48
ARCH = synthetic.architecture(n_ctx=N, d_model=D, n_layer=2)
claims_of = partial(synthetic.by_id, FINDING)


def helix(noise=0.0):
    return plantings.embed(plantings.coil(N, 2), D, noise=noise)


def measured(P, kind="table", **planted):
    return measure_run(FINDING, ARCH, P, {} if P is None else {"position_embedding": P}, kind=kind, **planted)


def damages(result):
    return {(row["kind"], row["amount"]): row["damage"] for row in result.metrics["damages"]}


def off(P, changed):
    return np.mean((changed - P) ** 2) / np.mean((P - P.mean(axis=0)) ** 2)


def test_damage_is_the_share_of_what_removing_costs():
    P = helix(0.02)
    result = measured(P, noise=0)
    found = damages(result)
    removed, but_first = result.metrics["removed"]["mean"], result.metrics["removed_but_first"]["mean"]
    assert removed == pytest.approx(1)
    assert but_first == pytest.approx(off(P, grouped(P, N, [0])))
    for row in result.metrics["damages"]:
        assert row["cost"] == pytest.approx(row["damage"] * removed) == pytest.approx(row["share"] * but_first)
    for size in variants.GROUPS:
        assert found["groups", size] == pytest.approx(off(P, grouped(P, size, [0])))
    assert found["permuted", None] == pytest.approx(2, abs=0.3), "worse than none"
    for width in variants.WIDTHS:
        assert found["smoothed", width] == pytest.approx(off(P, variants.smoothed(P, width)))


def test_smooth_helix():
    claims = claims_of(measured(helix(0.001)))
    assert {claims[name].verdict for name in claims if name != "weak-channels-disposable"} == {"holds"}
    assert claims["exact-positions"].baseline > 0.8
    low, high = claims["exact-positions"].interval
    assert low <= claims["exact-positions"].value <= high


def test_without_a_curve_everything_is_needed():
    P = np.random.default_rng(0).standard_normal((N, D))
    claims = claims_of(measured(P))
    assert {claim.verdict for claim in claims.values()} == {"fails"}


def test_channels_that_hold_all_are_all_that_is_needed():
    P = np.full((N, D), 0.5)
    P[:, : D // 2] += np.random.default_rng(0).standard_normal((N, D // 2))
    found = damages(measured(P, noise=0))
    assert found["strongest", 50] == pytest.approx(0, abs=1e-12)
    assert found["strongest", 25] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("needs", [0.0, -0.1])
def test_a_model_that_does_as_well_without_positions_is_untested(needs):
    result = measured(helix(), needs_positions=needs)
    assert {claim.verdict for claim in FINDING.claims(result)} == {"untested"}
    assert np.isfinite([row["damage"] for row in result.metrics["damages"]]).all()


@pytest.mark.parametrize("kind", ["rotary", "alibi"])
def test_models_without_a_table_are_given_ids(kind):
    result = measured(None, kind, noise=0)
    ids = np.arange(N, dtype=float)
    assert damages(result)["groups", 10] == pytest.approx(off(ids, grouped(ids, 10)))
    claims = claims_of(result)
    assert claims["exact-positions"].verdict == "holds"
    assert {claims[name].verdict for name in claims if name != "exact-positions"} == {"untested"}
    assert [figure.name for figure in FINDING.figures(result)] == ["position-damage"]


@pytest.mark.parametrize(
    ("positions", "reason"), [("rotary", "rotates queries and keys within"), ("relative", "Nothing in the positions")]
)
def test_positions_that_nothing_can_replace(positions, reason):
    with pytest.raises(NotApplicableError, match=reason):
        measure_run(FINDING, replace(ARCH, positions=positions))
    with pytest.raises(NotApplicableError, match="The rows of P are alike"):
        measured(np.zeros((N, D)))


@pytest.mark.parametrize(("rows", "size", "apart", "means"), [
    ([0, 1, 2, 3, 4], 2, (), [0.5, 0.5, 2.5, 2.5, 4]),  # the last group may be smaller
    ([0, 1, 2, 3, 4], 1, (), [0, 1, 2, 3, 4]), ([0, 1, 2, 3, 4], 99, (), [2] * 5),
    ([99, 1, 2, 3, 77, 5], 3, [0], [99, 2, 2, 2, 41, 41]), ([99, 1, 2, 3, 77, 5], 3, [0, 4], [99, 2, 2, 2, 77, 5]),
    ([99, 1, 2, 3, 77, 5], 3, range(6), [99, 1, 2, 3, 77, 5]),
])  # fmt: skip
def test_groups_are_averaged_but_for_rows_apart(rows, size, apart, means):
    assert grouped(np.array(rows, float), size, apart).tolist() == means
    assert grouped(np.array(rows, float)[:, None], size, apart)[:, 0].tolist() == means


def test_the_first_row_decides_nothing_of_what_groups_cost():
    P = helix(0.001)
    far = P.copy()
    far[0, 0] += 50
    near, result = measured(P, noise=0), measured(far, noise=0)
    scale = np.mean((P - P.mean(axis=0)) ** 2) / np.mean((far - far.mean(axis=0)) ** 2)  # the stand-in's unit of cost
    for one, other in zip(near.metrics["damages"], result.metrics["damages"], strict=True):
        if one["kind"] in ("groups", "smoothed"):
            assert other["cost"] == pytest.approx(one["cost"] * scale, rel=1e-6)
    assert result.metrics["removed_but_first"]["mean"] < 0.1 * result.metrics["removed"]["mean"]


def test_smoothing_leaves_a_straight_line_and_position_0_alone():
    P = np.column_stack([np.arange(200.0), np.full(200, 3.0)])
    P[0] = 1000
    smooth = variants.smoothed(P, 2)
    np.testing.assert_array_equal(smooth[0], P[0])
    np.testing.assert_allclose(smooth[20:-20], P[20:-20])


def test_projection_keeps_what_lies_in_the_directions():
    P = helix()
    mean, directions = P[1:].mean(axis=0), variants.principal_directions(P[1:])
    np.testing.assert_allclose(variants.projected(P, mean, directions[:3]), P, atol=1e-10)
    assert off(P[1:], variants.projected(P, mean, directions[:1])[1:]) > 0.1


def test_random_groups_have_the_same_sizes():
    found = {variant.kind: variant.positions for variant in variants.of_ids(95)}
    sizes = np.unique(found["random groups"], return_counts=True)[1]
    assert sizes.max() <= 20
    assert sorted(found["permuted"]) == list(range(95))
