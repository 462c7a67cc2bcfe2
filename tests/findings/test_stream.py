from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from generators.base.text import share_within
from generators.compute.judged import judged_model
from generators.compute.results import Store
from generators.findings import plantings
from generators.findings.measured import KnownOfModel
from generators.findings.running import FOLDS, folds_of, text_columns
from generators.findings.stream import FINDING
from generators.findings.stream.figures import same_signs
from generators.findings.stream.moments import Moments
from generators.maths.resampling import jackknife
from tests import synthetic
from tests.conftest import ROOT
from tests.findings.stand_in import measure_run
from tests.stand_in_nulls import states_about

N, D, LAYERS = 100, 32, 4
ARCH = synthetic.architecture(n_ctx=N, d_model=D, n_layer=LAYERS)
claims_of = partial(synthetic.by_id, FINDING)
P = plantings.embed(synthetic.line(N), D, noise=0.1)


def measured(shares, **weights):
    return measure_run(FINDING, ARCH, P, weights, shares=shares)


def moments_of(states, batches=(5,)):
    found = Moments(
        folds=np.arange(len(states)) % FOLDS, n=states.shape[1], d=states.shape[2], text=slice(4, states.shape[1])
    )
    edges = [0, *batches, len(states)]
    for begin, end in pairwise(edges):
        found.add(begin, states[begin:end])
    return found


def planted(share, windows=40, n=50, d=12, seed=0):
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((n, d)) * np.sqrt(share)
    return (means + rng.standard_normal((windows, n, d)) * np.sqrt(1 - share)).astype(np.float32)


def test_planted_shares_are_found():
    shares = [0.5, 0.3, 0.1, 0.05, 0.0]
    result = measured(shares)
    rows = result.metrics["layers"]
    assert [row["share"] for row in rows] == pytest.approx(shares, abs=0.01)
    assert rows[0]["reliability"] > 0.9 > rows[4]["reliability"]
    assert rows[0]["ev3"] > 0.9
    assert rows[0]["decoded"] > rows[3]["decoded"] > -0.1
    with_table = claims_of(measured(shares, position_embedding=P))
    assert with_table["positions-last"].value == pytest.approx(0.1, abs=0.01)
    assert result.metrics["mlps"] == [], "a run that can't see them"
    assert "mlps" not in result.tables


@pytest.mark.parametrize(("share", "verdict"), [(0.6, "holds"), (0.0, "fails")])
def test_claims_about_the_middle(share, verdict):
    claims = claims_of(measured([0.0, 0.5, share, 0, 0]))
    assert claims["positions-last"].verdict == verdict
    assert claims["curve-stays-low-dimensional"].verdict == ("holds" if share else "untested")
    assert claims["positions-and-contexts-apart"].verdict != "untested" or not share


@pytest.mark.parametrize(("shares", "P", "verdict"), [
    ((0, 0.6, 0.3, 0, 0), None, "holds"), ((0, 0, 0, 0, 0), None, "fails"),
    ((0, 0.6, 0, 0, 0), np.zeros((N, D)), "holds"), ((0, 0.3, 0.3, 0, 0), P, "untested"),
])  # fmt: skip
def test_models_without_position_embeddings_make_their_own(shares, P, verdict):
    result = measured(shares, **({} if P is None else {"position_embedding": P}))
    assert claims_of(result)["makes-its-own-positions"].verdict == verdict
    assert (result.metrics["layers"][1]["in_P"] is None) == (verdict != "untested")


def test_texts_that_differ_by_position_are_no_evidence_for_a_model_without_a_table():
    claims = claims_of(measured((0.2, 0.6, 0.6, 0, 0)))
    assert {claims[id].verdict for id in ("positions-last", "makes-its-own-positions")} == {"untested"}
    assert "differ by position" in claims["positions-last"].answer
    with_table = claims_of(measured((0.2, 0.6, 0.6, 0, 0), position_embedding=P))
    assert with_table["positions-last"].verdict == "holds"


def test_a_share_that_may_be_nothing_or_enough_is_untested():
    result = measured((0, 0, 0, 0, 0))
    for row in result.metrics["layers"]:
        row |= {"share": 0.01, "share_low": -0.01, "share_high": 0.03}
    claim = claims_of(result)["makes-its-own-positions"]
    assert claim.verdict == "untested"
    assert claim.answer.startswith("There are too few windows of text to tell: at layer 1, position may explain")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_share_is_free_of_sampling_noise(share):
    found = np.array([moments_of(planted(share, windows=16, seed=seed)).share() for seed in range(20)])
    assert found.mean() == pytest.approx(share, abs=0.03)


def test_what_opens_every_window_is_no_share_of_position():
    states = planted(0.1)
    massive = states.copy()
    massive[:, :4, 3] = 1000
    assert moments_of(massive).share() == pytest.approx(moments_of(states).share(), abs=1e-6)
    np.testing.assert_array_equal(moments_of(massive).contexts, moments_of(states).contexts)


def test_the_tokenizer_s_own_tokens_and_the_first_four_are_no_text():
    windows = [SimpleNamespace(inner=inner) for inner in ((0, 32), (1, 31), (6, 32), (0, 12), (0, 2))]
    columns = [slice(4, 32), slice(4, 31), slice(6, 32), slice(3, 12), slice(1, 2)]
    assert [text_columns(one) for one in windows] == columns


def test_position_means_and_halves_by_any_batches():
    states = planted(0.5)
    found, other = moments_of(states, (5,)), moments_of(states, (1, 9, 30))
    np.testing.assert_array_equal(found.sums, other.sums)
    np.testing.assert_array_equal(found.grams, other.grams)
    np.testing.assert_allclose(found.means(), states.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(
        found.halves()[0], states[::2, 4:].mean(axis=0) - states[::2, 4:].mean(axis=(0, 1)), atol=1e-5
    )
    stored = np.arange(len(states)) % FOLDS != 3
    np.testing.assert_allclose(found.means(3), states[stored].mean(axis=0), atol=1e-5)
    np.testing.assert_array_equal(found.curve(3), found.means(3)[4:])
    np.testing.assert_allclose(found.contexts, states[:, 4:].mean(axis=1), atol=1e-5)


def test_the_probe_is_a_ridge_regression_on_windows_left_out():
    states = planted(0.3, windows=24, n=30, d=6)
    found = moments_of(states)
    t = np.arange(30) - 14.5
    missed = 0.0
    for fold in range(FOLDS):
        test = np.arange(24) % FOLDS == fold
        x, y = states[~test].reshape(-1, 6).astype(float), np.tile(t, (~test).sum())
        mean = x.mean(axis=0)
        centred = x - mean
        penalty = 1e-3 * np.trace(np.cov(x.T, bias=True)) / 6
        w = np.linalg.solve(centred.T @ centred / len(x) + penalty * np.eye(6), centred.T @ y / len(x))
        missed += np.sum((np.tile(t, test.sum()) - (states[test].reshape(-1, 6) - mean) @ w) ** 2)
    assert found.decoded() == pytest.approx(1 - missed / (24 * np.sum(t**2)), abs=1e-4)
    written = planted(0.0)
    written[:, :, 4] += np.arange(written.shape[1])
    assert moments_of(written).decoded() > 0.98


def test_jackknife_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(0).standard_normal(8)
    without = np.array([np.delete(values, i).mean() for i in range(8)])
    low, high = jackknife(without, values.mean(), np.ones(len(values)))
    assert (high - low) / 2 == pytest.approx(1.96 * values.std(ddof=1) / np.sqrt(8))


def test_same_signs_in_all_layers():
    curve = np.random.default_rng(0).standard_normal((20, 3))
    flips = np.array([[1, 1, 1], [-1, 1, 1], [1, -1, -1], [-1, -1, -1]])
    np.testing.assert_array_equal(same_signs(curve * flips[:, None]), [curve] * 4)


def test_turned_positions_do_not_depend_on_the_signs_that_lapack_chooses(monkeypatch):
    from generators.findings.stream import measure

    moments, svd = moments_of(planted(0.5)), np.linalg.svd
    before = measure._chance(moments)
    flips = np.random.default_rng(1).choice([-1.0, 1.0], D)

    def other(rows, full_matrices=True):
        left, values, right = svd(rows, full_matrices=full_matrices)
        return left * flips[: len(values)], values, right * flips[: len(values), None]

    monkeypatch.setattr(np.linalg, "svd", other)
    assert measure._chance(moments) == pytest.approx(before, rel=1e-9)


def test_every_layer_of_the_figure_has_its_curve_and_its_numbers():
    result = measured([0.5, 0.3, 0.1, 0.05, 0.0], position_embedding=P)
    (figure,) = FINDING.figures(result)
    drawn = figure.interactive().as_json()
    rows = drawn["rows"]
    assert drawn["start"] == result.metrics["middle"]
    assert [row["name"] for row in rows] == [*(f"into layer {i}" for i in range(LAYERS)), "what comes out"]
    shown = [dict(row["numbers"])["EV3 of the curve"] for row in rows]
    assert shown == [share_within(row["ev3"], row["ev3_low"], row["ev3_high"]) for row in result.metrics["layers"]]


def test_folds_are_of_whole_files_and_nearly_as_large():
    files = np.repeat(np.arange(20), np.random.default_rng(0).integers(1, 9, 20))
    folds = folds_of(files)
    assert all(len(set(folds[files == file])) == 1 for file in range(20))
    sizes = np.bincount(folds, minlength=FOLDS)
    assert sizes.min() > 0.7 * sizes.max()
    np.testing.assert_array_equal(folds_of(np.zeros(11, int)), np.arange(11) % FOLDS)


def test_a_jackknife_of_unequal_folds():
    rng = np.random.default_rng(0)
    sizes = np.array([1, 2, 2, 3, 3, 4, 5, 6.0])
    means, errors = [], []
    for _ in range(600):
        sums = sizes * rng.normal(0, 1, 8)  # windows of a file are all alike
        whole = sums.sum() / sizes.sum()
        low, high = jackknife((sums.sum() - sums) / (sizes.sum() - sizes), whole, sizes)
        means.append(whole)
        errors.append((high - low) / (2 * 1.96))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(means), rel=0.2)


def test_what_mlps_write_by_position_and_by_token():
    rng = np.random.default_rng(0)
    of_token, of_position = rng.standard_normal((900, D)), rng.standard_normal((N, D))

    def mlps(layer, ids):
        known = 0.5 * of_position * (layer == 0)
        return of_token[ids] + known + 0.5 * np.random.default_rng(layer).standard_normal((*ids.shape, D))

    rows = measure_run(FINDING, ARCH, P, mlps=mlps).metrics["mlps"]
    token = float(of_token[3:11].var(axis=0, ddof=1).mean())
    first = rows[0]
    assert first["position"] == pytest.approx(0.25 / (token + 0.5), abs=0.02)
    assert first["position_low"] < first["position"] < first["position_high"]
    assert first["token"] == pytest.approx(token / (token + 0.5), abs=0.04)
    assert [row["position"] for row in rows[1:]] == pytest.approx([0] * (LAYERS - 1), abs=0.01)


@pytest.mark.parametrize(("planted", "verdict"), [(10.0, "holds"), (0.0, "fails")])
def test_a_mean_that_the_model_needs(planted, verdict):
    states, shifts = states_about(np.full(D, 0.2), 0), np.eye(D) + planted * np.ones((D, D)) / D
    result = measure_run(FINDING, ARCH, P, states=states, shifts=shifts)
    found = result.metrics["mean_removed"]
    assert found["share"] == pytest.approx(0.04 / 1.04, abs=0.01)
    assert found["cost"] == pytest.approx((1 + planted) * 0.04 * D, rel=0.05)
    known = [replace(result, model=KnownOfModel(tied=tied)) for tied in (False, True)]
    claim, tied = (claims_of(one)["needs-the-mean"] for one in known)
    assert claim.verdict == tied.verdict == verdict
    assert "says little about training" not in claim.answer
    assert ("says little about training" in tied.answer) == (verdict == "holds")


@pytest.mark.parametrize(("low", "times_high", "verdict"), [
    (-0.1, 2.8, "untested"), (-0.1, 1.4, "fails"), (0.1, 2.8, "holds"),
])  # fmt: skip
def test_few_windows_leave_the_need_of_the_mean_open(low, times_high, verdict):
    result = measure_run(FINDING, ARCH, P)
    removed = {**result.metrics["mean_removed"], "low": low, "times": 2.1, "times_low": 0.4, "times_high": times_high}
    found = replace(result, metrics={**result.metrics, "mean_removed": removed})
    assert claims_of(found)["needs-the-mean"].verdict == verdict


def test_stored_results_know_whether_embeddings_are_tied():
    tied, other = (
        judged_model(Store(ROOT / "results"), name, [FINDING]) for name in ("stories260k", "gpt2-basic-486")
    )
    assert (tied.record.tied, other.record.tied) == (True, False)
    (answer,) = [claim.answer for claim in tied.published().claims if claim.id == "needs-the-mean"]
    assert "The output embedding is the token embedding" in answer


@pytest.mark.parametrize(("centred", "verdict", "value"), [(True, "holds", 0.0), (False, "fails", 1.0)])
def test_states_that_avoid_the_vector_of_ones(centred, verdict, value):
    def states(stage, ids):
        drawn = np.random.default_rng(stage).standard_normal((*ids.shape, D))
        return drawn - drawn.mean(axis=-1, keepdims=True) * centred

    result = measure_run(FINDING, ARCH, P, states=states)
    assert result.metrics["all_ones"]["value"] == pytest.approx(value, abs=0.05)
    assert claims_of(result)["avoids-all-ones"].verdict == verdict
    assert claims_of(replace(result, model=KnownOfModel(post_norm=True)))["avoids-all-ones"].verdict == "untested"
