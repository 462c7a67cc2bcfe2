"""Subspaces of real weights: the values that were measured apart from the atlas, and a plain computation."""

import numpy as np
import pytest

from tests.real_weights.measured import judges, row, shows

MINILM = [
    row("rivalry", "0.112", lambda m: m["rivalry"]),
    row("position-energy-in-tail", "0.953", lambda m: m["position_energy_in_tail"]),
]


test_numbers = shows("subspaces", minilm_l6=MINILM)


# keep-apart, p-in-tail, tokens-in-tail
test_verdicts = judges("subspaces", minilm_l6="holds holds fails", stdlib="partly holds fails")


def test_tokens_and_positions_of_minilm_keep_apart_beyond_doubt(minilm_l6):
    claims = minilm_l6["subspaces"].claims
    assert not any(claim.close for claim in claims.values())
    assert claims["keep-apart"].interval[1] < 0.2 < 0.9 < claims["keep-apart"].chance.limit
    assert claims["p-in-tail"].interval[0] > 0.9 > 0.2 > claims["p-in-tail"].chance.limit


@pytest.mark.parametrize("finding", ["subspaces", "frequency"])
@pytest.mark.parametrize(("model", "tensor"), [("gpt2", "wte.weight"), ("gpt1", "tokens_embed.weight")])
def test_without_tokens_it_is_missing_by_name(model, tensor, finding, request):
    found = request.getfixturevalue(model)[finding]
    assert (found.status, found.reason) == ("missing", f"The checkpoint lacks {tensor} (token_embedding).")
    assert set(found.verdicts().values()) == {"untested"}


@pytest.mark.parametrize("model", ["minilm_l6", "stdlib"])
def test_the_definitions_computed_the_plain_way(model, request):
    real = request.getfixturevalue(model)
    m, P, E = real["subspaces"].metrics, real.tensor("position_embedding"), real.tensor("token_embedding")
    d, tail = P.shape[1], -(-P.shape[1] // 10)
    C_P, C_E = np.cov(P[1:].T), np.cov(E.T)
    top = np.linalg.svd(P)[2][: min(30, len(P) // 10)]
    quiet_E, quiet_P = (np.linalg.eigh(C)[1][:, :tail] for C in (C_E, C_P))
    assert m["rivalry"] == pytest.approx(d * np.trace(C_P @ C_E) / np.trace(C_P) / np.trace(C_E), rel=1e-4)
    expected = np.trace(quiet_E.T @ C_P @ quiet_E) / np.trace(C_P)
    assert m["position_energy_in_tail"] == pytest.approx(expected, rel=1e-3)
    expected = np.trace(quiet_P.T @ C_E @ quiet_P) / np.trace(C_E)
    assert m["token_energy_in_tail"] == pytest.approx(expected, rel=1e-3)
    first = np.linalg.eigh(E.T @ E)[1][:, -1]
    assert m["first_capture"]["value"] == pytest.approx(np.sum((top @ first) ** 2), rel=1e-3)
    assert m["token_energy_share"]["uncentred"] == pytest.approx(np.sum((E @ top.T) ** 2) / np.sum(E**2), rel=1e-4)


@pytest.mark.parametrize("model", ["minilm_l6", "stdlib"])
def test_the_mass_at_low_indices_is_the_tokens_mean_in_part(model, request):
    """Both capture E's strongest direction; without the mean, its successor is captured less."""
    first = request.getfixturevalue(model)["subspaces"].metrics["first_capture"]
    assert first["value"] > 0.3
    assert first["mean_in_first"] > 0.5
    assert first["without_mean"] < first["value"]
