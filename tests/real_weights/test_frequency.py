"""Frequency in real weights: the values that were measured apart from the atlas, and plain computations."""

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from tests.real_weights.measured import judges, row, shows

STDLIB = [
    row("frequency-channel", "0.634", lambda m: abs(m["frequency_channel"]["rho"])),
    row("probe", "0.91", lambda m: m["probe"]["rho"]),
]


test_numbers = shows("frequency", stdlib=STDLIB)


def test_the_best_axis_of_turned_tokens_does_as_well_in_stdlib_gpt2(stdlib):
    """60 draws of a plain script gave 0.655 on average."""
    assert stdlib["frequency"].metrics["chance"]["frequency_channel"]["median"] == pytest.approx(0.655, abs=0.03)


def test_long_tokens_of_minilm_are_frequent(minilm_l6):
    """A plain script gave +0.82."""
    assert minilm_l6["frequency"].metrics["norm_rho"] == pytest.approx(0.82, abs=0.01)


# frequency-channel, frequency-is-ln2, frequent-shorter
test_verdicts = judges("frequency", stdlib="fails untested holds", minilm_l6="fails untested fails")


@pytest.mark.parametrize("model", ["stdlib", "minilm_l6"])
def test_frequency_is_spread(model, request):
    found = request.getfixturevalue(model)["frequency"]
    claim = found.claims["frequency-channel"]
    assert claim.value < claim.chance.limit <= claim.threshold
    assert f"a linear probe on all of them reads it at {found.metrics['probe']['rho']:.2f}." in claim.answer
    low, high = found.metrics["probe"]["interval"]
    assert 0.88 < low < high < 0.94


def test_what_minilm_shows_of_norms_is_the_opposite(minilm_l6):
    claim = minilm_l6["frequency"].claims["frequent-shorter"]
    assert "Frequent tokens have larger norms, not smaller." in claim.answer
    assert claim.value > -claim.chance.limit


@pytest.mark.parametrize(("model", "order", "leads"), [
    ("stdlib", ["svd_0", "norm", "frequency_channel"], True),
    ("minilm_l6", ["svd_0", "norm", "frequency_channel"], False),
])  # fmt: skip
def test_which_candidate_leads(model, order, leads, request):
    contest = request.getfixturevalue(model)["frequency"].metrics["contest"]
    assert contest["order"] == order
    assert (contest["lead_interval"][0] > 0) == leads


def best_turned(rows: np.ndarray, ranks: np.ndarray, rng: np.random.Generator) -> float:
    """Return the largest |Spearman| of any axis of rows that are turned at random."""
    rotation = np.linalg.qr(rng.standard_normal((rows.shape[1], rows.shape[1])))[0]
    turned = rankdata(rows @ rotation, axis=0)
    return float(np.abs(np.corrcoef(np.column_stack([turned, ranks]).T)[-1, :-1]).max())


def test_turned_axes_and_channels_of_stdlib_gpt2_computed_the_plain_way(stdlib):
    real, m = stdlib, stdlib["frequency"].metrics
    E = real.tensor("token_embedding")
    log_frequency = real.opened.frequencies[0].log_frequency
    rhos = spearmanr(np.column_stack([E, log_frequency])).statistic[-1, :-1]
    np.testing.assert_allclose(m["channel_rho"]["frequency"], rhos, atol=1e-6)
    assert m["frequency_channel"]["channel"] == np.argmax(np.abs(rhos))
    rng = np.random.default_rng(3)
    drawn = [best_turned(E, rankdata(log_frequency), rng) for _ in range(20)]
    chance = m["chance"]["frequency_channel"]
    assert np.median(drawn) == pytest.approx(chance["median"], abs=0.04)
    assert np.mean(np.array(drawn) > chance["limit"]) <= 0.1
