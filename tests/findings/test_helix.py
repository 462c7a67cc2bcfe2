from functools import cache
from importlib import import_module

import numpy as np
import pytest

from generators.checkpoint.positions import fairseq_sinusoids, split_sinusoids
from generators.findings import plantings
from generators.findings.helix import FINDING as HELIX
from generators.findings.helix import chance
from generators.maths import curve, surrogates
from generators.maths.sines import sines
from generators.site.words import caption
from tests import synthetic

measuring = import_module("generators.findings.helix.measure")  # the package's own `measure` is the function in it
SHAPES = [(256, 48), (300, 16), (210, 320), (200, 24), (199, 24), (16, 48), (40, 16)]
KEPT = {"explained_variance_3d_kept": 0.95}
SMOOTH = {"lag_one": 0.51, "width": 1.0, "memory": 3}


def measured(P, E=None):
    """Return what is measured of P; what chance gives is that of other positions, drawn once."""
    weights = {"position_embedding": P} if E is None else {"position_embedding": P, "token_embedding": E}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "draw", lambda _: any_draws())
        return synthetic.measure(HELIX, weights)


def metrics_of(P, E=None):
    return measured(P, E).metrics


def positions(n, d, seed=0):
    """Return rows that are neither noise nor a clean curve, about a mean far from 0, as float32."""
    coil = plantings.coil(n, 3)[:, : min(3, d)]
    return (1 + plantings.embed(coil, d, noise=0.1, seed=seed)).astype(np.float32)


@cache
def any_draws():
    return chance.draw(positions(256, 48).astype(np.float64))


@cache
def any_metrics():
    """Return metrics of which some are changed to see where claims switch."""
    return metrics_of(positions(256, 48))


def nulls_with(name, median, limit):
    """Return what chance gives with one of its numbers changed."""
    null = {"null": "curves", "median": median, "limit": limit, "draws": 200}
    return {**any_metrics()["chance"], name: {"smooth": null}}


@pytest.fixture(scope="module", params=SHAPES, ids=str)
def computed(request):
    P = positions(*request.param)
    return P.astype(np.float64), measured(P)


def test_explained_variance_of_each_range(computed):
    P, result = computed
    ranges = {"all": P, "no_first": P[1:]} | ({"late": P[100:], "early": P[1:100]} if len(P) >= 200 else {})
    expected = {"late": None, "early": None} | {name: curve.explained_variance(rows) for name, rows in ranges.items()}
    assert result.metrics["explained_variance_3d"] == pytest.approx(expected)
    assert result.metrics["fraying"] == pytest.approx(curve.fraying(P))


def test_spectra_of_centered_rows_and_of_all_rows(computed):
    P, result = computed
    rows = P[1:]
    squares = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    ratios = squares / sum(squares)
    np.testing.assert_allclose(result.metrics["explained_variance_ratio"], ratios[:10], atol=1e-9)
    needed = next(k for k in range(1, len(ratios) + 1) if sum(ratios[:k]) >= 0.90)
    assert result.metrics["components_for_90"] == needed
    s = np.linalg.svd(P, compute_uv=False)
    np.testing.assert_allclose(result.metrics["singular_values"], s[:50], rtol=1e-6)
    assert result.metrics["energy_top30"] == pytest.approx(sum(s[:30] ** 2) / sum(s**2))


def test_three_rows_that_stand_apart_are_not_three_components():
    P = synthetic.random_walk(256, 48, 0) * 0.01 + np.random.default_rng(0).standard_normal((256, 48))
    P[[50, 120, 200]] *= 1000
    claim = synthetic.claims_of(HELIX, {"position_embedding": P})["three-components"]
    assert claim.value > 0.99
    assert claim.verdict == "fails"


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("axis", [0.3, 1.2])
@pytest.mark.parametrize("turns", [4, 40])
def test_a_planted_helix_is_recovered(turns, axis, noise):
    n = 512
    P = plantings.embed(plantings.coil(n, turns, axis), 64, noise=noise, seed=turns)
    result = measured(P)
    m, first = result.metrics, result.metrics["planes"][0]
    assert first["turns"] == pytest.approx(turns * (n - 1) / n, abs=0.3)
    assert first["tokens_per_turn"] == pytest.approx(n / turns, rel=0.06)
    assert first["share"] == pytest.approx(1 / (1 + axis**2 + 64 * noise**2), abs=0.05)
    assert first["steadiness"] > 0.9
    claim = synthetic.by_id(HELIX, result)["winding"]
    assert claim.value == m["winding"] == first["winding"]
    assert f" {turns} times" in claim.answer
    assert m["rows_without_outliers"] == [0, n - 1]


@pytest.mark.parametrize("limit", [0.2, 99.0])
def test_colours_know_whether_it_winds(limit):
    result = measured(plantings.embed(plantings.coil(256, 5), 48, noise=0.01))
    result.metrics["chance"] = nulls_with("winding", 0.1, limit)
    turned = next(figure for figure in HELIX.figures(result) if figure.name == "helix").interactive()
    assert ("angle in the strongest plane (degrees)" in [c.name for c in turned.colourings]) is (limit < 1)


def test_a_line_turns_in_no_plane():
    result = synthetic.measure(HELIX, {"position_embedding": plantings.embed(synthetic.line(300), 48)})
    assert result.metrics["planes"] == []
    claims = synthetic.by_id(HELIX, result)
    assert (claims["winding"].verdict, claims["winding"].value) == ("fails", 0.0)
    assert claims["look-back"].verdict == "fails"
    synthetic.assert_drawn_and_described(HELIX, result)
    assert "turns in no plane" in caption("helix", "helix", result).alt


def test_a_table_of_sines_is_distinguished_from_a_learned_one():
    table = split_sinusoids(256, 64)
    found = sines(table.astype(np.float64))
    expected = 2 * np.pi * 10_000 ** (2 * np.arange(32) / 64)
    assert found["circles"] == sum(expected <= 256)
    assert found["shortest_period"] == pytest.approx(2 * np.pi, rel=1e-4)
    assert found["longest_period"] == pytest.approx(max(expected[expected <= 256]), rel=1e-3)
    assert found["geometric"]
    variances = table.var(axis=0)
    pairs = variances[:32] + variances[32:]
    turning = expected <= 256
    assert found["turns"] == pytest.approx(np.sum((pairs * 255 / expected)[turning]) / variances.sum(), rel=1e-3)
    assert found["largest_share"] == pytest.approx(pairs[turning].max() / variances.sum(), rel=1e-3)
    assert sines(fairseq_sinusoids(256, 64).astype(np.float64))["circles"] > 10


@pytest.mark.parametrize("kept", [np.float16, np.float32])
@pytest.mark.parametrize(
    "table", [split_sinusoids(256, 64), fairseq_sinusoids(256, 64), 0.03 * split_sinusoids(512, 96)]
)
def test_a_table_of_sines_that_is_kept_in_16_bits_is_one(table, kept):
    found, exact = sines(table.astype(kept).astype(np.float64)), sines(table.astype(np.float64))
    assert found["circles"] == exact["circles"]
    assert found["geometric"] == exact["geometric"]
    assert found["longest_period"] == pytest.approx(exact["longest_period"], rel=1e-3)
    assert found["turns"] == pytest.approx(exact["turns"], rel=1e-3)


@pytest.mark.parametrize("rows", [
    synthetic.smoothed_noise(256, 48, 0, 40), plantings.embed(plantings.coil(256, 5), 48),
    synthetic.random_walk(256, 48, 0), plantings.embed(synthetic.line(256), 48),
    split_sinusoids(256, 64)[:, :32], split_sinusoids(256, 64) @ plantings.orthonormal(64, 64, 0),
])  # fmt: skip
def test_what_is_no_table_of_sines(rows):
    assert sines(rows.astype(np.float64)) is None
    assert sines(rows.astype(np.float16).astype(np.float64)) is None


def test_what_a_formula_of_sines_decides_is_untested_and_said_so():
    arch = synthetic.architecture(n_ctx=256, d_model=48, positions="formula")
    formula = synthetic.measure(HELIX, {"position_embedding": split_sinusoids(256, 48)}, arch)
    assert formula.metrics["by_formula"] > any_metrics()["by_formula"]
    claims = synthetic.by_id(HELIX, formula)
    assert formula.metrics["winding"] < 1 < formula.metrics["sines"]["turns"]
    decided = ("winding", "fraying", "constant-norms", "first-position")
    assert {claims[name].verdict for name in decided} == {"untested"}
    assert "by construction" in claims["winding"].answer
    assert claims["look-back"].value == formula.metrics["median_gain"]
    assert "rotates each circle" in claims["look-back"].answer


def test_what_turns_to_and_fro_does_not_wind_and_a_few_rows_apart_at_one_end_are_no_fraying():
    rng = np.random.default_rng(1)
    found = measured(rng.standard_normal((256, 2)) @ rng.standard_normal((2, 48)))
    plane = found.metrics["planes"][0]
    assert plane["steadiness"] < 0.25
    changed = synthetic.measured_with(found.metrics, winding=2.0, planes=[{**plane, "winding": 2.0}])
    assert synthetic.verdicts(HELIX, changed)["winding"] == "fails"
    P = plantings.embed(plantings.coil(400, 4), 48, noise=0.01)
    P[[20, 50]] += np.random.default_rng(0).standard_normal((2, 48)) * 5
    claim = synthetic.claims_of(HELIX, {"position_embedding": P})["fraying"]
    assert claim.value > 0.02
    assert claim.verdict == "fails"


@pytest.mark.parametrize(("others", "away", "verdict"), [
    (range(7, 400, 40), 2, "fails"), (range(7, 400, 40), 30, "holds"),
    ([50], 2, "holds"),  # one of four hundred others may be as far
    ([50, 150, 250], 2, "fails"),
])  # fmt: skip
def test_first_position_against_others(others, away, verdict):
    rows = plantings.embed(plantings.coil(400, 4, axis=0), 48)
    rows[list(others)] += 3
    rows[0] += away
    result = synthetic.measure(HELIX, {"position_embedding": rows})
    assert result.metrics["outlier_positions"] == [0, *others]
    claim = synthetic.by_id(HELIX, result)["first-position"]
    assert (claim.value > 5, claim.verdict) == (True, verdict)


def cv_of_norms(rows):
    norms = np.linalg.norm(rows, axis=1)
    return norms.std() / norms.mean()


@pytest.mark.parametrize("outliers", [(), (0, 120, 150)])
@pytest.mark.parametrize("n", [160, 199, 200, 400])
def test_norm_cv_leaves_out_the_start_and_outliers(n, outliers):
    P = 0.3 + plantings.embed(plantings.coil(n, 4, axis=0.4), 48, noise=0.02)
    P[list(outliers)] += 3
    m = metrics_of(P)
    assert m["outlier_positions"] == list(outliers)
    kept = P[np.setdiff1d(np.arange(100 if n >= 200 else 1, n), outliers)]
    assert m["norm_cv"] == pytest.approx(cv_of_norms(kept))


def test_the_memory_of_known_curves():
    t = 2 * np.pi * np.arange(2000) / 200
    assert chance.half_life(np.column_stack([np.cos(t), np.sin(t)])) == pytest.approx(200 / 6, abs=1)
    noise = surrogates.smooth_noise(4000, 20, np.random.default_rng(0))
    assert chance.width_of(chance.half_life(noise)) == pytest.approx(20, rel=0.1)
    assert chance.half_life(np.random.default_rng(0).standard_normal((500, 8))) == 1
    assert chance.half_life(np.ones((50, 2))) == 50


def test_the_gain_is_over_standing_still():
    for look in metrics_of(plantings.embed(plantings.coil(300, 8), 24, noise=0.05))["look_back"]:
        assert look["gain"] == pytest.approx(1 - (1 - look["r2_rotation"]) / (1 - look["r2_identity"]))
        assert look["translation_gain"] == pytest.approx(1 - (1 - look["r2_translation"]) / (1 - look["r2_identity"]))


def test_curves_of_each_range_in_their_own_components():
    P = positions(300, 24).astype(np.float64)
    arrays = measured(P).arrays
    np.testing.assert_allclose(arrays["norms"], np.sqrt((P**2).sum(axis=1)), rtol=1e-6)
    for name, rows in (("scores", P[1:]), ("scores_late", P[100:]), ("scores_early", P[1:100])):
        centred = rows - rows.mean(axis=0)
        expected = centred @ np.linalg.svd(centred)[2][:3].T
        np.testing.assert_allclose(np.abs(arrays[name][:, :3]), np.abs(expected), atol=1e-5)


def test_token_share_row_by_row():
    P = positions(256, 48).astype(np.float64)
    E = (0.3 + np.random.default_rng(0).standard_normal((500, 48))).astype(np.float32)
    away, tokens = (rows - rows.mean(axis=0) for rows in (P[1:], E.astype(np.float64)))
    top = np.linalg.svd(away)[2][:3]
    found = metrics_of(P, E)["token_share"]
    for name, rows in (("tokens", tokens), ("positions", away)):
        expected = np.mean([np.sum((top @ row) ** 2) / (row @ row) for row in rows])
        assert found[name] == pytest.approx(expected, rel=1e-5)
    assert found["chance"] == 3 / 48


def test_tokens_at_their_mean_have_no_share():
    directions = plantings.orthonormal(48, 3, seed=3)
    P = plantings.coil(256, 5) @ directions.T
    E = np.vstack([directions[:, 0], -directions[:, 0], np.zeros((2, 48))])
    assert metrics_of(P, E)["token_share"]["tokens"] == pytest.approx(0.5)
    assert metrics_of(P, np.ones((50, 48)))["token_share"]["tokens"] == 0


@pytest.mark.parametrize(("claim", "number", "value", "null", "also", "verdict"), [
    ("three-components", "explained_variance_3d", 0.91, (0.5, 0.6), KEPT, "holds"),
    ("three-components", "explained_variance_3d", 0.36, (0.18, 0.2), KEPT, "holds"),
    ("three-components", "explained_variance_3d", 0.21, (0.18, 0.2), KEPT, "fails"),  # 0.221 is needed
    ("three-components", "explained_variance_3d", 0.91, (0.5, 0.6), {"explained_variance_3d_kept": 0.59}, "fails"),
    ("three-components", "explained_variance_3d", 0.91, (0.5, 0.95), KEPT, "fails"),
    ("winding", "winding", 1.01, (0.5, 0.7), {}, "holds"),
    ("winding", "winding", 0.99, (0.5, 0.7), {}, "partly"),
    ("winding", "winding", 0.71, (0.5, 0.7), {}, "partly"),  # beyond chance
    ("winding", "winding", 0.69, (0.5, 0.7), {}, "fails"),
    ("winding", "winding", 1.4, (0.5, 1.5), {}, "fails"),
    ("look-back", "median_gain", None, None, {}, "untested"),
    ("look-back", "median_gain", 0.51, (0.0, 0.2), {}, "holds"),
    ("look-back", "median_gain", 0.49, (0.0, 0.2), {}, "partly"),
    ("look-back", "median_gain", 0.24, (0.0, 0.2), {}, "fails"),
    ("look-back", "median_gain", 0.51, (0.0, 0.6), {}, "fails"),
    ("fraying", "fraying", None, None, {}, "untested"),
    ("fraying", "fraying", 0.0201, (0.0, 0.015), {"smoothness": SMOOTH}, "holds"),
    ("fraying", "fraying", 0.0201, (0.0, 0.021), {"smoothness": SMOOTH}, "fails"),
    ("fraying", "fraying", 0.0201, (0.0, 0.015), {"smoothness": {**SMOOTH, "lag_one": 0.49}}, "fails"),
    ("constant-norms", "norm_cv", 0.0499, (0.1, 0.08), {}, "holds"),
    ("constant-norms", "norm_cv", 0.0501, (0.2, 0.15), {}, "partly"),
    ("constant-norms", "norm_cv", 0.1001, (0.2, 0.15), {}, "fails"),
    ("constant-norms", "norm_cv", 0.0499, (0.1, 0.049), {}, "fails"),
    ("constant-norms", "norm_cv", 0.07, (0.04, 0.03), {}, "untested"),  # chance reaches the threshold
    ("constant-norms", "norm_cv", 0.0, (0.01, 0.0), {}, "holds"),
    ("low-rank", "energy_top30", 0.9901, (0.66, 0.67), {}, "holds"),
    ("low-rank", "energy_top30", 0.9899, (0.6, 0.61), {}, "partly"),
    ("low-rank", "energy_top30", 0.9499, (0.6, 0.61), {}, "fails"),
    ("low-rank", "energy_top30", 0.9901, (0.67, 0.68), {}, "untested"),
    ("first-position", "first_position_distance", 5.01, (1.0, 2.0), {}, "holds"),
    ("first-position", "first_position_distance", 4.99, (1.0, 2.0), {}, "fails"),
    ("first-position", "first_position_distance", 5.01, (1.0, 6.0), {}, "fails"),
])  # fmt: skip
def test_claims_beside_chance(claim, number, value, null, also, verdict):
    stored = {**any_metrics()[number], "no_first": value} if number == "explained_variance_3d" else value
    if claim == "winding":
        also = {"planes": [{**any_metrics()["planes"][0], "winding": value}]}
    chance = nulls_with(number, *null) if null else {**any_metrics()["chance"], number: {}}
    result = synthetic.measured_with(any_metrics(), **{number: stored}, **also, chance=chance)
    found = synthetic.by_id(HELIX, result)[claim]
    assert found.verdict == verdict
    assert verdict == "untested" or (found.value, found.baseline) == (value, null[0] if value else None)


@pytest.mark.parametrize("n", [60, 240])
def test_every_number_has_its_chance_and_its_interval(n):
    m = synthetic.measure(HELIX, {"position_embedding": positions(n, 20)}).metrics
    for name, nulls in m["chance"].items():
        interval, short = m["intervals"][name], name == "fraying" and n < 200
        assert (nulls == {}, interval is None) == (short, short)
        assert short or interval[0] <= interval[1]
        for null in nulls.values():
            assert null["draws"] >= 99
            assert null["limit"] <= null["median"] if name == "norm_cv" else null["limit"] >= null["median"]


def hostile():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((256, 16))
    zero_tail, one_entry = noise.copy(), np.zeros((256, 16))
    zero_tail[100:] = 0
    one_entry[10, 2] = 1
    return {
        "rows from 100 on are zero": zero_tail,
        "the first hundred rows are zero": zero_tail[::-1],
        "one entry alone": one_entry,
        "one channel": noise * (np.arange(16) == 3),
        "a line without noise": plantings.embed(synthetic.line(256), 16),
        "steps": np.repeat(noise[:32], 8, axis=0),
        "period 10 without noise": plantings.embed(plantings.coil(250, 25, 0)[:, :2], 16),
        "huge": noise * 1e15,
        "tiny": noise * 1e-15,
    }


@pytest.mark.parametrize("name", hostile())
def test_hostile_rows_give_numbers_or_null(name):
    result = synthetic.measure(HELIX, {"position_embedding": hostile()[name]})
    synthetic.assert_of_its_type(HELIX, result)
    assert len(HELIX.claims(result)) == 9
    assert all(np.isfinite(array).all() for array in result.arrays.values())


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_a_range_that_does_not_vary_is_shown_without_its_share(value):
    P = hostile()["rows from 100 on are zero"]
    P[100:] = value
    result = measured(P)
    assert synthetic.verdicts(HELIX, result)["constant-norms"] == "untested"
    shown = next(figure for figure in HELIX.figures(result) if figure.name == "helix").draw()
    titles = [ax.get_title() for ax in shown.axes if ax.get_title()]
    assert titles[1] == "positions 100 to 255\nno variance"
    assert "100 to 255" not in caption("helix", "helix", result).alt


def test_results_do_not_depend_on_the_scale_of_weights():
    P = positions(256, 48).astype(np.float64)
    small, large = (synthetic.measure(HELIX, {"position_embedding": scale * P}).metrics for scale in (1, 1000))
    for name in ("norm_cv", "fraying", "energy_top30", "explained_variance_3d", "winding", "median_gain",
                 "outlier_positions"):  # fmt: skip
        assert large[name] == pytest.approx(small[name])
    for name, nulls in large["chance"].items():
        for null, found in nulls.items():
            assert found["limit"] == pytest.approx(small["chance"][name][null]["limit"], rel=1e-3), name
