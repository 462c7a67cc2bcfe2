import json
import math

import numpy as np
import pytest

from generators.findings.contract import NotApplicableError
from generators.findings.helix import FINDING as HELIX
from generators.site.words import caption
from tests import synthetic
from tests.findings.test_curves import plain_look_back

SHAPES = [(256, 48), (300, 16), (210, 320), (200, 24), (199, 24), (16, 48), (16, 5), (40, 2)]


def metrics_of(P, E=None):
    weights = {"position_embedding": P} if E is None else {"position_embedding": P, "token_embedding": E}
    return synthetic.measure(HELIX, weights).metrics


def claims_of(P):
    return synthetic.claims_of(HELIX, {"position_embedding": P})


def positions(n, d, seed=0):
    """Return rows that are neither noise nor a clean curve, about a mean far from 0, as float32."""
    curve = synthetic.helix(n, 3)[:, : min(3, d)]
    return (1 + synthetic.embed(curve, d, noise=0.1, seed=seed)).astype(np.float32)


@pytest.fixture(scope="module", params=SHAPES, ids=str)
def computed(request):
    P = positions(*request.param)
    return P.astype(np.float64), synthetic.measure(HELIX, {"position_embedding": P})


# Spectrum


def three(rows):
    squares = np.linalg.svd(rows - np.mean(rows, axis=0), compute_uv=False) ** 2
    return sum(squares[:3]) / sum(squares)


def test_explained_variance_of_each_range(computed):
    P, result = computed
    n = len(P)
    found = result.metrics["explained_variance_3d"]
    assert found["all"] == pytest.approx(three(P))
    assert found["no_first"] == pytest.approx(three(P[1:]))
    if n >= 200:
        assert found["late"] == pytest.approx(three(P[100:]))
        assert found["early"] == pytest.approx(three(P[1:100]))
        assert result.metrics["fraying"] == pytest.approx(three(P[100:]) - three(P[1 : n - 99]))
    else:
        assert (found["late"], found["early"], result.metrics["fraying"]) == (None, None, None)


def test_components_by_their_variances(computed):
    P, result = computed
    rows = P[1:]
    squares = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    ratios = squares / sum(squares)
    np.testing.assert_allclose(result.metrics["explained_variance_ratio"], ratios[:10], atol=1e-9)
    for share in (0.90, 0.99):
        needed = next(k for k in range(1, len(ratios) + 1) if sum(ratios[:k]) >= share)
        assert result.metrics[f"components_for_{share * 100:.0f}"] == needed


def test_singular_values_of_all_rows_uncentred(computed):
    P, result = computed
    s = np.linalg.svd(P, compute_uv=False)
    np.testing.assert_allclose(result.metrics["singular_values"], s[:50], rtol=1e-6)
    assert result.metrics["energy_top30"] == pytest.approx(sum(s[:30] ** 2) / sum(s**2))


def test_gaussian_values_are_those_of_gaussian_rows():
    m = metrics_of(positions(256, 48))
    rng = np.random.default_rng(99)
    energies = [np.linalg.svd(rng.standard_normal((256, 48)), compute_uv=False) ** 2 for _ in range(20)]
    assert m["energy_top30_gaussian"] == pytest.approx(np.mean([sum(e[:30]) / sum(e) for e in energies]), abs=0.01)
    variance = np.mean([three(rng.standard_normal((255, 48))) for _ in range(20)])
    assert m["explained_variance_3d_gaussian"] == pytest.approx(variance, abs=0.01)


@pytest.mark.parametrize(
    ("in_three", "verdict"), [(0.91, "holds"), (0.89, "partly"), (0.71, "partly"), (0.69, "fails")]
)
def test_three_components_claim(in_three, verdict):
    rest = np.full(20, (1 - in_three) / 20)
    P = synthetic.with_spectrum(300, 64, [*np.full(3, in_three / 3), *rest])
    claim = claims_of(P)["three-components"]
    assert claim.value == pytest.approx(in_three)
    assert claim.verdict == verdict


@pytest.mark.parametrize(
    ("in_30", "verdict"), [(0.995, "holds"), (0.985, "partly"), (0.955, "partly"), (0.945, "fails")]
)
def test_low_rank_claim(in_30, verdict):
    P = synthetic.with_spectrum(300, 128, [*np.full(30, in_30 / 30), *np.full(60, (1 - in_30) / 60)])
    claim = claims_of(P)["low-rank"]
    assert claim.value == pytest.approx(in_30)
    assert claim.verdict == verdict


@pytest.mark.parametrize(("d", "verdict"), [(40, "fails"), (160, "holds")])
def test_low_rank_must_be_lower_than_chance(d, verdict):
    """30 of 40 Gaussian directions hold about 0.85 of the energy: nothing can hold 1.5 times as much."""
    P = synthetic.embed(synthetic.helix(400, 3), d)
    claim = claims_of(P)["low-rank"]
    assert claim.value == pytest.approx(1)
    assert claim.verdict == verdict


# Waves and the circle


def test_waves_are_those_of_the_first_eight_components(computed):
    P, result = computed
    rows = P[1:] - P[1:].mean(axis=0)
    scores = rows @ np.linalg.svd(rows)[2][:8].T
    scores = scores[:, : min(rows.shape)]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(len(rows)) / (len(rows) - 1))
    bins = [np.argmax(np.abs(np.fft.fft(hann * score))[1 : len(rows) // 2 + 1]) + 1 for score in scores.T]
    assert [wave["cycles"] for wave in result.metrics["waves"]] == bins
    for wave in result.metrics["waves"]:
        assert wave["period_tokens"] == pytest.approx(len(rows) / wave["cycles"])


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("axis", [0.3, 1.2])
@pytest.mark.parametrize("turns", [3, 8, 40])
def test_a_planted_helix_is_recovered(turns, axis, noise):
    n = 512
    P = synthetic.embed(synthetic.helix(n, turns, axis), 64, noise=noise, seed=turns)
    result = synthetic.measure(HELIX, {"position_embedding": P})
    m, claims = result.metrics, {claim.id: claim for claim in HELIX.claims(result)}
    assert m["circle"]["pcs"] == ([1, 2] if axis < 0.7 else [2, 3])
    assert m["circle"]["cycles"] == turns
    assert abs(m["circle"]["turns"]) == pytest.approx(turns * (n - 2) / n, abs=0.2)
    assert m["circle"]["tokens_per_turn"] == pytest.approx(n / turns, rel=0.06)
    assert m["explained_variance_3d"]["no_first"] > 0.9 - 60 * noise**2
    assert claims["circle"].verdict == "holds"
    assert claims["circle"].value == abs(m["circle"]["turns"])
    assert claims["look-back"].verdict == ("holds" if noise == 0 else claims["look-back"].verdict)
    assert claims["look-back"].verdict in ("holds", "partly")


def test_two_turns_count_while_the_circle_is_stronger_than_the_axis():
    P = synthetic.embed(synthetic.helix(512, 2, axis=0.3), 64, seed=1)
    claims = claims_of(P)
    assert claims["circle"].value == pytest.approx(2, abs=0.1)
    assert claims["circle"].baseline == 1.0
    assert claims["circle"].verdict == claims["look-back"].verdict == "holds"


def test_two_turns_behind_a_stronger_axis_are_not_told_from_a_drift():
    """What the condition against drifts costs: components 2 and 3 of a drift make 1.5 turns, and 2.2 < 1.5 x 1.5."""
    P = synthetic.embed(synthetic.helix(512, 2, axis=1.2), 64, seed=1)
    result = synthetic.measure(HELIX, {"position_embedding": P})
    assert result.metrics["circle"]["pcs"] == [2, 3]
    assert abs(result.metrics["circle"]["turns"]) == pytest.approx(2.2, abs=0.1)
    claims = {claim.id: claim for claim in HELIX.claims(result)}
    assert claims["circle"].baseline == 1.5
    assert claims["circle"].verdict == claims["look-back"].verdict == "fails"


@pytest.mark.parametrize(("pcs", "turns", "verdict"), [
    ((1, 2), 1.4, "fails"), ((1, 2), -1.4, "fails"), ((1, 2), 1.5, "holds"), ((1, 2), -1.6, "holds"),
    ((2, 3), 2.2, "fails"), ((2, 3), 2.3, "holds"), ((5, 8), 5.9, "fails"), ((5, 8), -6.0, "holds"),
])  # fmt: skip
def test_a_circle_must_turn_more_than_a_drift(pcs, turns, verdict):
    m = metrics_of(positions(256, 48))
    circle = {**m["circle"], "pcs": list(pcs), "turns": turns, "drift_turns": pcs[1] / 2}
    measured = synthetic.measured_with(m, circle=circle)
    claims = {c.id: c for c in HELIX.claims(measured)}
    assert claims["circle"].verdict == verdict
    assert claims["circle"].baseline == pcs[1] / 2
    alt = {name: caption("helix", name, measured).alt for name in ("helix", "plane")}
    assert ("no two of its directions wind" in alt["helix"]) is (verdict == "fails"), "the template's own numbers"
    assert ("more than a drift would" in alt["plane"]) is (verdict == "fails")


def test_no_circle_is_null_and_fails():
    P = synthetic.embed(np.random.default_rng(0).standard_normal((256, 3)), 48)
    result = synthetic.measure(HELIX, {"position_embedding": P})
    assert result.metrics["circle"] is None
    claim = {claim.id: claim for claim in HELIX.claims(result)}["circle"]
    assert (claim.verdict, claim.value) == ("fails", None)


def test_outliers_do_not_count_as_turns():
    P = synthetic.embed(synthetic.helix(400, 6), 48, noise=0.01)
    spoilt = P.copy()
    spoilt[[0, 150, 399]] += 4
    m = metrics_of(spoilt)
    assert m["outlier_positions"] == [0, 150, 399]
    assert abs(m["circle"]["turns"]) == pytest.approx(6, abs=0.2)


def test_roughness_and_its_baseline():
    m = metrics_of(np.random.default_rng(0).standard_normal((2000, 8)))
    assert m["roughness_baseline"] == 3.0
    assert m["roughness"] == pytest.approx(3.0, abs=0.3)
    assert metrics_of(synthetic.embed(synthetic.helix(800, 4), 8))["roughness"] < 0.2


# The start


def test_a_frayed_start_is_found():
    smooth = synthetic.embed(synthetic.helix(400, 4), 48, noise=0.01)
    frayed = synthetic.with_frayed_start(smooth, noise=0.15)
    claims = {name: claims_of(P)["fraying"] for name, P in (("smooth", smooth), ("frayed", frayed))}
    assert claims["smooth"].verdict == "fails"
    assert claims["smooth"].value == pytest.approx(0, abs=0.005)
    assert claims["frayed"].verdict == "holds"
    assert claims["frayed"].value > 0.1
    assert claims["frayed"].baseline == pytest.approx(0, abs=0.03)


def test_a_frayed_end_does_not_count():
    P = synthetic.with_frayed_start(synthetic.embed(synthetic.helix(400, 4), 48, noise=0.01), noise=0.15)[::-1]
    claim = claims_of(P)["fraying"]
    assert claim.value < -0.1
    assert claim.verdict == "fails"


@pytest.mark.parametrize(("n", "verdict"), [(199, "untested"), (200, "fails")])
def test_fraying_needs_200_positions(n, verdict):
    P = synthetic.embed(synthetic.helix(n, 4), 48, noise=0.01)
    assert claims_of(P)["fraying"].verdict == verdict


@pytest.mark.parametrize(("factor", "verdict"), [(1, "fails"), (4.9, "fails"), (5.1, "holds"), (20, "holds")])
def test_the_first_position_apart(factor, verdict):
    rows = synthetic.embed(synthetic.helix(400, 4, axis=0), 48)
    step = np.linalg.norm(rows[2] - rows[1])  # the same for all neighbours on a circle
    claim = claims_of(synthetic.with_first_apart(rows, factor * step))["first-position"]
    assert claim.value == pytest.approx(factor, rel=1e-6)
    assert claim.verdict == verdict


# Norms


def plain_norm_cv(P, outliers):
    start = 100 if len(P) >= 200 else 1
    norms = [math.sqrt(sum(P[t] ** 2)) for t in range(start, len(P)) if t not in outliers]
    return np.std(norms) / np.mean(norms)


def plain_norm_cv_permuted(P, outliers, times):
    """Return the mean cv of norms after shuffling each principal score, through the rows themselves."""
    start = 100 if len(P) >= 200 else 1
    rows = np.array([P[t] for t in range(start, len(P)) if t not in outliers])
    mean = rows.mean(axis=0)
    u, s, vt = np.linalg.svd(rows - mean, full_matrices=False)
    rng = np.random.default_rng(7)
    values = []
    for _ in range(times):
        shuffled = np.column_stack([rng.permutation(column) for column in (u * s).T])
        norms = np.linalg.norm(shuffled @ vt + mean, axis=1)
        values.append(norms.std() / norms.mean())
    return np.mean(values)


@pytest.mark.parametrize("outliers", [(), (0, 120, 150)])
@pytest.mark.parametrize("n", [160, 199, 200, 400])
def test_norm_cv_leaves_out_the_start_and_outliers(n, outliers):
    P = 0.3 + synthetic.embed(synthetic.helix(n, 4, axis=0.4), 48, noise=0.02)
    P[list(outliers)] += 3
    m = metrics_of(P)
    assert m["outlier_positions"] == list(outliers)
    assert m["norm_cv"] == pytest.approx(plain_norm_cv(P, outliers))
    assert m["norm_cv_permuted"] == pytest.approx(plain_norm_cv_permuted(P, outliers, 40), rel=0.05)


def rings(n, d, wobble, seed=0):
    """Return rows on two circles about 0, of norm 1 but for a smooth wobble of that std."""
    t = 2 * np.pi * np.arange(n) / n
    ring = np.column_stack([np.cos(5 * t), np.sin(5 * t), 0.9 * np.cos(11 * t), 0.9 * np.sin(11 * t)]) / np.sqrt(1.81)
    return synthetic.embed(ring * (1 + wobble * np.sqrt(2) * np.sin(29 * t))[:, None], d, seed=seed)


@pytest.mark.parametrize(
    ("wobble", "verdict"), [(0.0, "holds"), (0.045, "holds"), (0.055, "partly"), (0.095, "partly"), (0.11, "fails")]
)
def test_constant_norms_claim(wobble, verdict):
    claim = claims_of(rings(800, 48, wobble))["constant-norms"]
    assert claim.value == pytest.approx(wobble, rel=0.03, abs=1e-9)
    assert claim.verdict == verdict


def test_norms_that_a_large_mean_keeps_constant_do_not_count():
    """Any rows have nearly constant norms far from the origin; shuffling their scores leaves them so."""
    claim = claims_of(np.random.default_rng(0).standard_normal((400, 48)) + 5)["constant-norms"]
    assert claim.value < 0.05
    assert claim.verdict == "fails"


# Looking back and cosines


@pytest.mark.parametrize(
    ("n", "offsets"), [(16, [1, 5]), (20, [1, 5]), (21, [1, 5, 10]), (100, [1, 5, 10]), (101, [1, 5, 10, 50])]
)
def test_look_back_offsets_are_less_than_half_the_positions(n, offsets):
    P = positions(n, 12)
    assert [look["k"] for look in metrics_of(P)["look_back"]] == offsets
    assert (claims_of(P)["look-back"].verdict == "untested") is (10 not in offsets)


def test_look_back_is_done_in_the_top_eight_components():
    P = synthetic.random_walk(300, 20, seed=0)
    rows = P[1:] - P[1:].mean(axis=0)
    scores = rows @ np.linalg.svd(rows)[2].T
    for look in metrics_of(P)["look_back"]:
        expected = plain_look_back(scores[:, :8], look["k"])
        assert (look["r2_rotation"], look["r2_affine"], look["r2_identity"]) == pytest.approx(expected)


@pytest.mark.parametrize(("r2", "gain", "winds", "verdict"), [
    (0.96, 0.6, True, "holds"), (0.94, 0.6, True, "partly"), (0.96, 0.4, True, "partly"),
    (0.81, 0.26, True, "partly"), (0.79, 0.6, True, "fails"), (0.96, 0.2, True, "fails"),
    (0.99, 0.9, False, "fails"), (0.85, 0.3, False, "fails"),
])  # fmt: skip
def test_look_back_claim(r2, gain, winds, verdict):
    m = metrics_of(positions(256, 48))
    looks = [{**look, "r2_rotation": r2, "gain": gain} if look["k"] == 10 else look for look in m["look_back"]]
    circle = m["circle"] if winds else None
    claims = {c.id: c for c in HELIX.claims(synthetic.measured_with(m, look_back=looks, circle=circle))}
    assert claims["look-back"].value == r2
    assert claims["look-back"].verdict == verdict


def test_cosines_pair_by_pair(computed):
    P, result = computed
    n = len(P)
    unit = P / np.sqrt((P**2).sum(axis=1))[:, None]
    expected = [np.mean([unit[t] @ unit[t + k] for t in range(n - k)]) for k in range(n // 2 + 1)]
    np.testing.assert_allclose(result.arrays["cosine_by_offset"], expected, atol=1e-6)
    np.testing.assert_allclose(result.arrays["norms"], np.sqrt((P**2).sum(axis=1)), rtol=1e-6)


def test_curves_of_each_range_in_their_own_components():
    P = positions(300, 24).astype(np.float64)
    arrays = synthetic.measure(HELIX, {"position_embedding": P}).arrays
    for name, rows in (("scores", P[1:]), ("scores_late", P[100:]), ("scores_early", P[1:100])):
        centred = rows - rows.mean(axis=0)
        expected = centred @ np.linalg.svd(centred)[2][:3].T
        np.testing.assert_allclose(np.abs(arrays[name][:, :3]), np.abs(expected), atol=1e-5)


# Beside tokens


def plain_share(rows, top):
    centred = rows - rows.mean(axis=0)
    return np.mean([sum(float(v @ row) ** 2 for v in top) / float(row @ row) for row in centred])


def test_token_share_row_by_row():
    P = positions(256, 48).astype(np.float64)
    E = (0.3 + np.random.default_rng(0).standard_normal((500, 48))).astype(np.float32)
    rows = P[1:] - P[1:].mean(axis=0)
    top = np.linalg.svd(rows)[2][:3]
    found = metrics_of(P, E)["token_share"]
    assert found["tokens"] == pytest.approx(plain_share(E.astype(np.float64), top), rel=1e-5)
    assert found["positions"] == pytest.approx(plain_share(P[1:], top))
    assert found["chance"] == 3 / 48


@pytest.mark.parametrize(("inside", "expected"), [(True, 1), (False, 0)])
def test_token_share_of_planted_tokens(inside, expected):
    directions = synthetic.orthonormal(48, 6, seed=3)
    mine, others = directions[:, :3], directions[:, 3:]
    P = synthetic.helix(256, 5) @ mine.T
    E = np.random.default_rng(0).standard_normal((300, 3)) @ (mine if inside else others).T
    assert metrics_of(P, E)["token_share"]["tokens"] == pytest.approx(expected, abs=1e-6)


def test_a_token_at_the_mean_has_no_share():
    directions = synthetic.orthonormal(48, 3, seed=3)
    P = synthetic.helix(256, 5) @ directions.T
    E = np.vstack([directions[:, 0], -directions[:, 0], np.zeros((2, 48))])
    assert metrics_of(P, E)["token_share"]["tokens"] == pytest.approx(0.5)


def test_token_share_is_null_without_tokens():
    assert metrics_of(positions(64, 12))["token_share"] is None


# Thresholds


@pytest.mark.parametrize(("claim", "changed", "verdict"), [
    ("fraying", {"fraying": 0.0201}, "holds"),
    ("fraying", {"fraying": 0.0199}, "fails"),
    ("constant-norms", {"norm_cv": 0.0499, "norm_cv_permuted": 0.1}, "holds"),
    ("constant-norms", {"norm_cv": 0.0499, "norm_cv_permuted": 0.0997}, "fails"),
    ("constant-norms", {"norm_cv": 0.0501, "norm_cv_permuted": 0.2}, "partly"),
    ("constant-norms", {"norm_cv": 0.0999, "norm_cv_permuted": 0.2}, "partly"),
    ("constant-norms", {"norm_cv": 0.0999, "norm_cv_permuted": 0.19}, "fails"),
    ("constant-norms", {"norm_cv": 0.1001, "norm_cv_permuted": 0.9}, "fails"),
    ("low-rank", {"energy_top30": 0.9901, "energy_top30_gaussian": 0.66}, "holds"),
    ("low-rank", {"energy_top30": 0.9901, "energy_top30_gaussian": 0.67}, "fails"),
    ("low-rank", {"energy_top30": 0.9501, "energy_top30_gaussian": 0.5}, "partly"),
    ("first-position", {"first_position_distance": 5.01, "outlier_positions": [0]}, "holds"),
    ("first-position", {"first_position_distance": 4.99, "outlier_positions": [7]}, "fails"),
])  # fmt: skip
def test_claims_at_their_thresholds(claim, changed, verdict):
    result = synthetic.measured_with(metrics_of(positions(256, 48)), **changed)
    assert {c.id: c.verdict for c in HELIX.claims(result)}[claim] == verdict


# What can't be computed, and what is hostile


def test_fifteen_positions_are_too_few():
    with pytest.raises(NotApplicableError, match="15"):
        metrics_of(positions(15, 12))


@pytest.mark.parametrize("n", [16, 300])
@pytest.mark.parametrize("first", [0.7, 2.0])
def test_rows_that_are_all_alike_are_no_curve(n, first):
    """So are rows of which only the first differs: every range that claims rest on leaves it out."""
    P = np.full((n, 12), 0.7)
    P[0] = first
    with pytest.raises(NotApplicableError):
        metrics_of(P)


def hostile():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((256, 12))
    zero_tail, one_entry = noise.copy(), np.zeros((256, 12))
    zero_tail[100:] = 0
    one_entry[10, 2] = 1
    return {
        "rows from 100 on are zero": zero_tail,
        "the first hundred rows are zero": zero_tail[::-1],
        "one entry alone": one_entry,
        "one channel": noise[:, :1],
        "a line without noise": synthetic.embed(synthetic.line(256), 12),
        "steps": np.repeat(noise[:32], 8, axis=0),
        "period 10 without noise": synthetic.embed(synthetic.helix(250, 25, 0)[:, :2], 12),
        "huge": noise * 1e15,
        "tiny": noise * 1e-15,
    }


@pytest.mark.parametrize("name", hostile())
def test_hostile_rows_give_numbers_or_null(name):
    result = synthetic.measure(HELIX, {"position_embedding": hostile()[name]})
    json.dumps(result.metrics, allow_nan=False)
    assert len(HELIX.claims(result)) == 7
    assert all(np.isfinite(array).all() for array in result.arrays.values())


def test_a_range_that_does_not_vary_is_shown_without_its_share():
    result = synthetic.measure(HELIX, {"position_embedding": hostile()["rows from 100 on are zero"]})
    shown = next(figure for figure in HELIX.figures(result) if figure.name == "helix").draw()
    titles = [ax.get_title() for ax in shown.axes if ax.get_title()]
    assert titles[1] == "positions 100 to 255\nno variance"
    assert "100 to 255" not in caption("helix", "helix", result).alt


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_norms_of_rows_that_do_not_vary_are_no_finding(value):
    """No spread is no less than half of no spread, but there is nothing to keep constant."""
    P = np.random.default_rng(0).standard_normal((256, 12))
    P[100:] = value
    assert claims_of(P)["constant-norms"].verdict in ("fails", "untested")


def test_tokens_that_are_all_alike_have_no_share():
    found = metrics_of(positions(64, 12), np.ones((50, 12), np.float32))["token_share"]
    assert found["tokens"] == 0


def test_results_do_not_depend_on_the_scale_of_weights():
    P = positions(256, 48).astype(np.float64)
    small, large = metrics_of(P), metrics_of(1000 * P)
    for name in ("norm_cv", "norm_cv_permuted", "fraying", "energy_top30", "roughness", "explained_variance_3d"):
        assert large[name] == pytest.approx(small[name])
    assert large["circle"]["turns"] == pytest.approx(small["circle"]["turns"])
    assert large["outlier_positions"] == small["outlier_positions"]


def test_results_are_the_same_every_time():
    P = positions(200, 24)
    assert metrics_of(P) == metrics_of(P.copy())
