"""Correlations against SciPy."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import roc_auc_score

from generators.maths.ranks import (
    areas_under_curve,
    channel_correlations,
    pearson,
    rank,
    spearman,
    strongest_channel,
    unit_ranks,
)


@pytest.mark.parametrize("ties", [False, True])
def test_correlations_are_those_of_scipy(ties):
    rng = np.random.default_rng(2)
    E = rng.standard_normal((500, 40)).astype(np.float32)
    E = np.round(E, 1) if ties else E
    E[:, 7] = 3  # constant
    known = rng.random(500) < 0.6
    values = np.where(known, np.round(E[:, 0] + rng.standard_normal(500), 1), np.nan)
    everyone = rng.standard_normal(500)
    found = channel_correlations(E, [rank(values, known), rank(everyone, np.ones(500, bool))])
    for channel in range(40):
        if channel == 7:
            assert found[:, channel].tolist() == [0, 0]
        else:
            assert found[0, channel] == pytest.approx(spearmanr(E[known, channel], values[known])[0])
            assert found[1, channel] == pytest.approx(spearmanr(E[:, channel], everyone)[0])


@pytest.mark.parametrize("mean", [0, 1000])
def test_of_two_columns(mean):
    x, y = np.random.default_rng(3).standard_normal((2, 50)).round(1)  # with ties
    assert pearson(mean + x, y) == pytest.approx(pearsonr(x, y)[0])
    assert spearman(mean + x, y) == pytest.approx(spearmanr(x, y)[0])
    assert (pearson(x, -2 * x), spearman(x, np.exp(x))) == pytest.approx((-1, 1))


CONSTANTS = [np.full(768, value) for value in (0.0, 1.0, 0.3, np.log10(0.9), -1e-7, 1e6 / 3)]


@pytest.mark.parametrize("of", [pearson, spearman])
@pytest.mark.parametrize("x", [*CONSTANTS, np.zeros(0)])
def test_what_is_constant_or_empty_correlates_with_nothing(of, x):
    varying = np.random.default_rng(0).standard_normal(len(x))
    assert of(x, varying) is None
    assert of(varying, x) is None


@pytest.mark.parametrize("sign", [1, -1])
def test_the_strongest_channel_is_strongest_whatever_its_sign(sign):
    rng = np.random.default_rng(4)
    E = rng.standard_normal((300, 20))
    values = np.exp(sign * (2 * E[:, 13] + rng.standard_normal(300)))
    values[::3] = np.nan
    assert strongest_channel(E, values) == 13


def test_values_known_for_none_have_no_ranks():
    nothing = rank(np.full(4, np.nan), np.zeros(4, bool))
    assert (nothing.ranks.tolist(), nothing.norm) == ([0, 0, 0, 0], 0)
    assert channel_correlations(np.random.default_rng(5).standard_normal((4, 3)), [nothing]).tolist() == [[0, 0, 0]]


def test_products_of_unit_ranks_are_spearmans_correlations():
    rng = np.random.default_rng(0)
    rows = np.round(rng.standard_normal((2, 3, 30)), 1)  # with ties
    rows[1, 2] = 4.0
    ranks = unit_ranks(rows)
    for one in ranks.reshape(-1, 30)[:-1]:
        assert one @ one == pytest.approx(1)
    assert ranks[0, 0] @ ranks[1, 1] == pytest.approx(spearmanr(rows[0, 0], rows[1, 1]).statistic)
    assert not ranks[1, 2].any()


def test_areas_under_curves_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    scores = np.round(rng.standard_normal((4, 50)), 1)  # with ties
    positive = rng.random((4, 50)) < 0.3
    expected = [roc_auc_score(*pair) for pair in zip(positive, scores, strict=True)]
    np.testing.assert_allclose(areas_under_curve(scores, positive), expected)
    np.testing.assert_allclose(areas_under_curve(scores, positive[:1])[0], expected[0])
