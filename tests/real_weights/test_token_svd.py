"""The leading directions of real tokens: verdicts, and plain computations."""

import numpy as np
import pytest


@pytest.mark.parametrize(("model", "mean"), [("stdlib", "holds"), ("minilm_l6", "fails")])
def test_verdicts(model, mean, request):
    found = request.getfixturevalue(model)["token_svd"]
    assert found.verdicts() == {"first-is-mean": mean, "space-plane": "fails"}
    assert not any(claim.close for claim in found.claims.values())


@pytest.mark.parametrize("model", ["stdlib", "minilm_l6"])
def test_the_mean_and_the_first_direction_computed_the_plain_way(model, request):
    real = request.getfixturevalue(model)
    E, m = real.tensor("token_embedding"), real["token_svd"].metrics
    mean, first = E.mean(axis=0), np.linalg.eigh(E.T @ E)[1][:, -1]
    length = np.linalg.norm(mean)
    assert m["cosine_first_mean"] == pytest.approx(abs(first @ mean) / length, abs=1e-6)
    assert m["mean_energy"] == pytest.approx(length**2 / np.mean(E.var(axis=0)), rel=1e-6)
    low, high = m["intervals"]["cosine_first_mean"]
    assert low < m["cosine_first_mean"] < high


def test_a_mean_as_long_as_stdlib_gpt2s_is_the_first_direction_wherever_it_points(stdlib):
    chance = stdlib["token_svd"].metrics["chance"]
    assert chance["turned_mean"]["median"] > 0.999
    assert chance["cosine_first_mean"]["limit"] < 0.95
    assert "wherever it pointed" in stdlib["token_svd"].claims["first-is-mean"].answer


@pytest.mark.parametrize("model", ["stdlib", "minilm_l6"])
def test_the_first_direction_separates_tokens_that_overlap_with_positions(model, request):
    """What Scherlis thought possible of GPT-2 is so here: far beyond what turned positions give."""
    real = request.getfixturevalue(model)
    found = real["token_svd"].metrics["overlap"]
    assert found["auc"]["value"] > 0.9 > found["auc"]["high"]
    assert found["rho_share"]["value"] > found["rho_share"]["high"]
    E, P = real.tensor("token_embedding"), real.tensor("position_embedding")
    top, first = np.linalg.svd(P)[2][: found["k"]], np.linalg.eigh(E.T @ E)[1][:, -1]
    assert found["first_in_positions"] == pytest.approx(np.sum((top @ first) ** 2), rel=1e-3)


def test_long_tokens_of_minilm_lie_on_the_other_side_than_length_implies(minilm_l6):
    found = minilm_l6["token_svd"].metrics["extremes"]
    assert found["longest"]["value"] < 0 < found["longest"]["low"]
    assert found["shortest"]["value"] > 0 > found["shortest"]["high"]
