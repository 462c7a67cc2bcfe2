from dataclasses import replace

import numpy as np
import pytest

from generators.findings import plantings
from generators.findings.inputs import NotApplicableError
from generators.findings.position_reading import FINDING, forms
from generators.findings.position_reading.claims import STRONG
from generators.maths import turning
from tests import synthetic

D, N, HEADS = 48, 128, 4
ARCH = synthetic.architecture(n_ctx=N, d_model=D, n_head=HEADS)
TURNS = 4
Q, K = "blocks.0.attn.q", "blocks.0.attn.k"


def weights_of():
    """Return Gaussian weights in which positions lie on a helix without outliers."""
    P = plantings.embed(plantings.coil(N, TURNS), D, noise=0.02)
    return {**synthetic.gaussian_weights(ARCH, 0), "position_embedding": P.astype(np.float32)}


def measure(weights, arch=ARCH):
    return synthetic.measure(FINDING, weights, arch)


def components(weights):
    P = weights["position_embedding"].astype(float)
    P = P - P.mean(axis=1, keepdims=True)
    return np.linalg.svd(P - P.mean(axis=0), full_matrices=False)


def reading(weights, degrees_back, heads=range(HEADS)):
    """Let heads compare the helix with the place so many degrees behind it, and read nothing else."""
    scores, lengths, axes = components(weights)
    sense = np.sign(turning.angle_steps((scores * lengths)[:, :2]).sum())
    width, angle = D // HEADS, np.radians(degrees_back) * sense
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    planted = {**weights, Q: 0.01 * weights[Q], K: 0.01 * weights[K], "blocks.0.ln1.gain": np.ones(D)}
    for head in heads:
        columns = slice(head * width, head * width + 2)
        planted[Q][:, columns] = axes[:2].T @ rotation
        planted[K][:, columns] = axes[:2].T
    return planted


def scores_of(weights, head):
    """Return the part of a head's scores that positions alone decide, on the eight leading components."""
    U, s, Vt = components(weights)
    X = (U[:, :8] * s[:8]) @ Vt[:8]
    normed = (X - X.mean(axis=1, keepdims=True)) * weights["blocks.0.ln1.gain"].astype(float)
    columns = slice(head * D // HEADS, (head + 1) * D // HEADS)
    return (normed @ weights[Q][:, columns]) @ (normed @ weights[K][:, columns]).T, U[:, :2]


def test_strength_and_shares_are_those_of_the_scores():
    weights = weights_of()
    found = measure(weights).metrics
    sizes, plane, shares = [], [], []
    for head in range(HEADS):
        S, U = scores_of(weights, head)
        within = U @ (U.T @ S @ U) @ U.T
        sizes.append(np.linalg.norm(S))
        plane.append(np.linalg.norm(within) ** 2)
        shares.append(plane[-1] / sizes[-1] ** 2)
    sizes = np.array(sizes)
    np.testing.assert_allclose([h["times_median"] for h in found["heads"]], sizes / np.median(sizes), rtol=1e-6)
    np.testing.assert_allclose([h["in_plane"] for h in found["heads"]], shares, rtol=1e-6)
    assert found["effects"]["times_median"] == pytest.approx(max(sizes) / np.median(sizes))
    assert found["effects"]["in_plane"] == pytest.approx(sum(plane) / sum(sizes**2))


def test_profiles_are_means_along_diagonals_of_the_scores():
    rng = np.random.default_rng(0)
    B, X, offsets = rng.standard_normal((3, 5, 5)), rng.standard_normal((40, 5)), np.arange(-9, 10)
    means = [[np.diagonal(X @ form @ X.T, -offset).mean() for offset in offsets] for form in B]
    np.testing.assert_allclose(forms.profiles(B, X, offsets), means)


def test_a_resampling_is_what_resampled_scores_give():
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.standard_normal((90, 5)), axis=0)
    X -= X.mean(axis=0)
    B, counts = rng.standard_normal((3, 5, 5)), rng.integers(0, 3, (1, 90))
    rows = np.repeat(X, counts[0], axis=0)
    rows -= rows.mean(axis=0)
    S = [rows @ form @ rows.T for form in B]
    U = np.linalg.qr(rows[:, :2])[0]
    within = [U @ (U.T @ one @ U) @ U.T for one in S]
    sizes, plane = np.array([np.linalg.norm(one) for one in S]), sum(np.linalg.norm(one) ** 2 for one in within)
    expected = [sizes.max() / np.median(sizes), plane / np.sum(sizes**2)]
    np.testing.assert_allclose(forms.resampled_effects(B, X, counts.astype(float))[0], expected)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("degrees", [-120, -61, -20, 15, 45, 90])
def test_a_planted_rotation_is_found_at_its_distance_where_a_query_can_reach_it(degrees, causal):
    found = measure(reading(weights_of(), degrees), replace(ARCH, causal=causal)).metrics
    assert found["rotation"] > 0.99
    for head in found["heads"]:
        assert head["in_plane"] > 0.99
        if degrees < 0 and causal:
            assert head["best_offset"] >= 0
        else:
            turns = head["best_offset"] * TURNS / N - degrees / 360  # one turn ahead is the same place
            assert turns - round(turns) == pytest.approx(0, abs=TURNS / N)


def test_a_reflection_is_no_rotation():
    assert forms.rotation_energy(np.diag([1.0, -1.0])) == 0
    assert forms.rotation_energy(np.array([[0.6, -0.8], [0.8, 0.6]])) == pytest.approx(2)


def test_one_strong_head_is_found_and_named():
    weights = weights_of()
    strong = reading(weights, -60, heads=[2])
    for role in (Q, K):
        strong[role][:, 24:26] *= 3
    result = measure(strong)
    claim = synthetic.by_id(FINDING, result)["position-heads"]
    assert claim.verdict == "holds"
    assert "L0H2" in claim.answer
    assert synthetic.alts(FINDING, result)["position-reading"].startswith("L0H2 ")
    assert claim.value == max(head["times_median"] for head in result.metrics["heads"])


def test_a_gain_moved_into_queries_and_keys_changes_nothing():
    weights = weights_of()
    gain = weights["blocks.0.ln1.gain"][:, None]
    moved = {**weights, Q: gain * weights[Q], K: gain * weights[K], "blocks.0.ln1.gain": np.ones(D)}
    a, b = (measure(one).metrics["effects"] for one in (weights, moved))
    assert a == pytest.approx(b, rel=1e-6)


def test_heads_that_share_keys_each_use_theirs():
    weights, shared = weights_of(), D // HEADS * 2
    weights[K] = weights[K][:, :shared]
    few = measure(weights, replace(ARCH, n_kv_head=2)).metrics
    copied = np.concatenate([weights[K][:, : shared // 2]] * 2 + [weights[K][:, shared // 2 :]] * 2, axis=1)
    assert few["heads"] == measure({**weights, K: copied}).metrics["heads"]


@pytest.mark.parametrize(("change", "words"), [
    ({"position_embedding": np.ones((N, D))}, "alike"), ({Q: np.zeros((D, D))}, "zeros"),
    ({"position_embedding": np.outer(np.arange(N), np.arange(D))}, "one direction"),
    ({"position_embedding": np.ones((N, 20))}, "20 channels"),
])  # fmt: skip
def test_what_has_no_curve_or_no_reader_is_a_sentence(change, words):
    with pytest.raises(NotApplicableError, match=words):
        measure({**weights_of(), **change})


def test_two_heads_have_no_median():
    arch = synthetic.architecture(n_ctx=N, d_model=D, n_head=2)
    assert synthetic.verdicts(FINDING, measure(weights_of(), arch))["position-heads"] == "untested"


@pytest.mark.parametrize(
    ("value", "median", "limit", "verdict"),
    [(5.1, 1, 2, "holds"), (4.9, 1, 2, "fails"), (11, 6, 8, "fails"), (12.1, 6, 8, "holds"), (12.1, 6, 13, "fails")],
)
def test_a_strong_head_must_pass_twice_chance(value, median, limit, verdict):
    metrics = measure(weights_of()).metrics
    chance = {"times_median": synthetic.null(median, limit)}
    changed = synthetic.measured_with(metrics, {"effects": {"times_median": value}, "chance": chance})
    claim = synthetic.by_id(FINDING, changed)["position-heads"]
    assert (claim.verdict, claim.threshold) == (verdict, max(STRONG, 2 * median))
