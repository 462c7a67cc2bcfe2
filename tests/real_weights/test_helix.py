"""The position curves of real weights: values that were measured apart from the atlas, and what is judged of them."""

import numpy as np
import pytest
import scipy.linalg

from tests.real_weights.measured import assert_shown, each, judges, row, shows


def three(rows):
    return lambda m: m["explained_variance_3d"][rows]


def plane(rank, key):
    return lambda m: m["planes"][rank][key]


def gain(k):
    return lambda m: next(look["gain"] for look in m["look_back"] if look["k"] == k)


GPT2 = [
    row("three-components-all", "0.9039", three("all")),
    row("three-components-no-first", "0.9106", three("no_first")),
    row("three-components-late", "0.9511", three("late")),
    row("three-components-early", "0.9640", three("early")),
    row("fraying", "0.035", lambda m: m["fraying"]),
    *each("singular-value", "61.95 60.94 53.24 22.70 15.98", lambda m: m["singular_values"]),
    row("energy-top30", "0.9991", lambda m: m["energy_top30"]),
    *each("rows-without-outliers", "3 1022", lambda m: m["rows_without_outliers"]),
    *each("outlier", "0 1 2 1023", lambda m: m["outlier_positions"]),
    row("outliers", "4", lambda m: len(m["outlier_positions"])),
    row("winding", "1.736", lambda m: m["winding"]),
    row("strongest-share", "0.628", plane(0, "share")),
    row("strongest-turns", "2.76", plane(0, "turns")),
    row("strongest-steadiness", "1.00", plane(0, "steadiness")),
    row("norm-cv", "0.029", lambda m: m["norm_cv"]),
    row("gain-1", "0.498", gain(1)),
    row("gain-5", "0.582", gain(5)),
    row("gain-10", "0.603", gain(10)),
]
GPT1 = [
    row("three-components", "0.517", three("no_first")),
    row("winding", "16.76", lambda m: m["winding"]),
    row("strongest-turns", "79.1", plane(0, "turns")),
    row("strongest-share", "0.226", plane(0, "share")),
    row("strongest-steadiness", "0.94", plane(0, "steadiness")),
    row("second-share", "0.169", plane(1, "share")),
    row("second-steadiness", "0.90", plane(1, "steadiness")),
    *each("rows-without-outliers", "0 511", lambda m: m["rows_without_outliers"]),
    row("strongest-share-of-scores", "0.25", plane(0, "share_of_scores")),
    row("second-turns", "47.7", plane(1, "turns")),
    row("second-share-of-scores", "0.18", plane(1, "share_of_scores")),
    row("gain-1", "0.718", gain(1)),
    row("gain-5", "0.593", gain(5)),
    row("gain-10", "0.271", gain(10)),
]
MINILM = [
    row("three-components", "0.3634", three("no_first")),
    row("winding", "22.48", lambda m: m["winding"]),
    row("strongest-share-of-scores", "0.33", plane(0, "share_of_scores")),
    row("strongest-turns", "87.2", plane(0, "turns")),
    row("strongest-share", "0.258", plane(0, "share")),
    row("strongest-steadiness", "1.00", plane(0, "steadiness")),
    *each("rows-without-outliers", "1 511", lambda m: m["rows_without_outliers"]),
    row("gain-1", "0.952", gain(1)),
    row("gain-5", "0.616", gain(5)),
    row("gain-10", "0.761", gain(10)),
]
STDLIB = [
    row("winding", "0.451", lambda m: m["winding"]),
    row("strongest-share", "0.905", plane(0, "share")),
    row("strongest-turns", "0.753", plane(0, "turns")),
    row("strongest-steadiness", "0.66", plane(0, "steadiness")),
    row("gain-1", "-0.143", gain(1)),
    row("gain-5", "-1.144", gain(5)),
    row("gain-10", "-0.010", gain(10)),
    row("median-gain", "-0.143", lambda m: m["median_gain"]),
    *each("rows-without-outliers", "3 254", lambda m: m["rows_without_outliers"]),
]


test_numbers = shows("helix", gpt2=GPT2, gpt1=GPT1, minilm_l6=MINILM, stdlib=STDLIB)


@pytest.mark.parametrize(
    ("position", "shown"), [(0, "9.876"), (1, "5.192"), (100, "3.358"), (1022, "3.858"), (1023, "0.118")]
)
def test_gpt2_norms_of_rows(gpt2, position, shown):
    assert_shown(gpt2["helix"].measured.arrays["norms"][position], shown)


# three-components, winding, fraying, first-position, constant-norms, look-back, low-rank, untrained-rows, seam
test_verdicts = judges(
    "helix",
    gpt2="holds holds holds holds holds holds holds holds fails",
    gpt1="holds holds fails fails partly holds holds fails fails",
    minilm_l6="holds holds fails holds untested holds partly fails holds",
    stdlib="holds fails fails holds untested fails partly holds fails",
)


@pytest.mark.parametrize(("model", "winding", "gain"), [
    ("gpt2", 0.71, 0.25), ("gpt1", 0.38, None), ("minilm_l6", 0.54, None), ("stdlib", 0.79, None),
])  # fmt: skip
def test_surrogates_are_as_a_plain_script_had_them(model, winding, gain, request):
    """Of 60 draws each: the percentiles may differ in the second digit, and do."""
    nulls = request.getfixturevalue(model)["helix"].metrics["chance"]
    assert nulls["winding"]["smooth"]["limit"] == pytest.approx(winding, abs=0.15)
    if gain is not None:
        assert nulls["median_gain"]["smooth"]["limit"] == pytest.approx(gain, abs=0.2)


@pytest.mark.parametrize("model", ["gpt2", "gpt1", "minilm_l6", "stdlib"])
def test_the_strongest_plane_computed_the_plain_way(model, request):
    real = request.getfixturevalue(model)
    m, P = real["helix"].metrics, real.tensor("position_embedding")
    first, last = m["rows_without_outliers"]
    rows = P[first : last + 1] - P[first : last + 1].mean(axis=0)
    scores = rows @ np.linalg.svd(rows, full_matrices=False)[2][:8].T
    values, vectors = np.linalg.eig(scipy.linalg.orthogonal_procrustes(scores[:-1], scores[1:])[0])
    winding = []
    for value, vector in zip(values, vectors.T, strict=True):
        if value.imag > 1e-6:
            z = scores @ vector.conj() * np.sqrt(2)
            steps = np.angle(z[1:] / z[:-1])
            share = np.sum(np.abs(z) ** 2) / np.sum(rows**2)
            winding.append(share * abs(steps.sum()) ** 2 / np.abs(steps).sum() / (2 * np.pi))
    assert m["winding"] == pytest.approx(max(winding), rel=1e-4)


def test_what_winds_does_so_beyond_doubt(gpt1, minilm_l6, gpt2):
    for model in (gpt1, minilm_l6, gpt2):
        claim = model["helix"].claims["winding"]
        assert claim.interval[0] > 1 > 0
        assert not claim.close
    assert gpt2["helix"].claims["look-back"].close, "0.5 lies inside the interval"


def test_the_last_position_of_causal_models_is_hardly_there(gpt2, stdlib, minilm_l6):
    """No loss reaches it: see the open questions."""
    for model, ratio in ((gpt2, 0.05), (stdlib, 0.25)):
        norms = model["helix"].measured.arrays["norms"]
        assert norms[-1] < ratio * norms[-2]
        assert model["helix"].metrics["outlier_positions"][-1] == len(norms) - 1
    assert minilm_l6["helix"].measured.arrays["norms"][-1] > 0.5


def test_the_first_positions_of_gpt2_are_spaced_out_and_its_length_tells_where_it_is(gpt2):
    m = gpt2["helix"].metrics
    assert m["spacing"]["first"] > 2
    assert m["information"]["norm"] > 0.95
    assert m["information"]["angle"] < 0.1
    assert m["information"]["norm_bits"] == pytest.approx(3.51, abs=0.03)  # of 4: what a share of variance hides
    assert m["information"]["angle_bits"] == pytest.approx(3.53, abs=0.1)
