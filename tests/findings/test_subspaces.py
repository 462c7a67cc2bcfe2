"""Subspaces: planted disjoint and shared spreads, and the definitions computed the plain way."""

import json
from math import ceil

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from generators.findings.contract import NotApplicableError
from generators.findings.subspaces import FINDING as SUBSPACES
from generators.site.words import caption
from tests import synthetic

D, N, V = 40, 300, 900


def compute(P: np.ndarray, E: np.ndarray):
    weights = {"position_embedding": P.astype(np.float32), "token_embedding": E.astype(np.float32)}
    return synthetic.measure(SUBSPACES, weights, synthetic.architecture(n_ctx=len(P), d_model=P.shape[1]))


def verdicts(result) -> dict[str, str]:
    return {claim.id: claim.verdict for claim in SUBSPACES.claims(result)}


def spread(rng: np.random.Generator, rows: int, scale: np.ndarray) -> np.ndarray:
    rotation = np.linalg.qr(np.random.default_rng(99).standard_normal((D, D)))[0]
    return (rng.standard_normal((rows, D)) * scale) @ rotation


def test_positions_planted_where_tokens_are_quiet_are_found_there():
    rng = np.random.default_rng(0)
    quiet = np.arange(D) >= D - ceil(D / 10)
    result = compute(spread(rng, N, np.where(quiet, 1.0, 0.01)), spread(rng, V, np.where(quiet, 0.05, 1.0)))
    assert verdicts(result) == {"keep-apart": "holds", "p-in-tail": "holds"}
    assert result.metrics["position_energy_in_tail"] > 0.99
    assert result.metrics["rivalry"] < 0.02


def test_positions_planted_where_tokens_are_loud_rival_them():
    rng = np.random.default_rng(1)
    loud = np.arange(D) < 4
    result = compute(spread(rng, N, np.where(loud, 1.0, 0.01)), spread(rng, V, np.where(loud, 3.0, 0.5)))
    assert verdicts(result) == {"keep-apart": "fails", "p-in-tail": "fails"}
    assert result.metrics["rivalry"] > 3
    assert result.metrics["capture_head"] > 0.9


@pytest.mark.parametrize("seed", range(5))
def test_noise_neither_keeps_apart_nor_sits_in_the_tail(seed):
    rng = np.random.default_rng(seed)
    result = compute(rng.standard_normal((N, D)), rng.standard_normal((V, D)))
    assert "holds" not in verdicts(result).values()
    assert result.metrics["rivalry"] == pytest.approx(1, abs=0.1)


def test_the_definitions_computed_the_plain_way():
    rng = np.random.default_rng(3)
    P = rng.standard_normal((N, D)) * np.linspace(2, 0.1, D) + 0.5
    E = rng.standard_normal((V, D)) * np.linspace(0.1, 2, D) + rng.standard_normal(D)
    m = compute(P, E).metrics
    P, E = P.astype(np.float32).astype(float), E.astype(np.float32).astype(float)
    top = np.linalg.svd(P)[2][:30]
    s_E, right_E = np.linalg.svd(E, full_matrices=False)[1:]
    centred = E - E.mean(axis=0)
    tail = np.linalg.svd(centred, full_matrices=False)[2][-4:]
    positions = P[1:] - P[1:].mean(axis=0)
    C_P, C_E = np.cov(positions.T), np.cov(E.T)
    np.testing.assert_allclose(m["singular_values_E"], s_E, rtol=1e-6)
    np.testing.assert_allclose(m["capture"], [np.sum((top @ v) ** 2) for v in right_E], atol=1e-6)
    assert m["position_energy_in_tail"] == pytest.approx(np.sum((positions @ tail.T) ** 2) / np.sum(positions**2))
    assert m["rivalry"] == pytest.approx(D * np.trace(C_P @ C_E) / np.trace(C_P) / np.trace(C_E))
    assert m["token_energy_share"]["uncentred"] == pytest.approx(np.sum((E @ top.T) ** 2) / np.sum(E**2))
    assert m["token_energy_share"]["centred"] == pytest.approx(np.sum((centred @ top.T) ** 2) / np.sum(centred**2))


def test_rows_that_do_not_vary_have_nothing_to_keep_apart():
    rng = np.random.default_rng(0)
    with pytest.raises(NotApplicableError):
        compute(np.ones((N, D)), rng.standard_normal((V, D)))
    with pytest.raises(NotApplicableError):
        compute(rng.standard_normal((N, D)), np.ones((V, D)))


def test_every_figure_is_drawn_and_told():
    rng = np.random.default_rng(0)
    result = compute(rng.standard_normal((N, D)), rng.standard_normal((V, D)))
    for figure in SUBSPACES.figures(result):
        words = caption("subspaces", figure.name, result)
        assert words.how_to_read
        assert words.alt
        figure.draw()


@pytest.mark.parametrize("n", [N, 20])
def test_alt_texts_tell_the_numbers(n):
    rng = np.random.default_rng(0)
    result = compute(rng.standard_normal((n, D)), rng.standard_normal((V, D)))
    m, image = result.metrics, result.arrays["overlaps"].astype(float)
    alt = {figure.name: caption("subspaces", figure.name, result).alt for figure in SUBSPACES.figures(result)}
    assert f"{m['capture_head']:.3f} on average over the first tenth, {m['capture_tail']:.3f}" in alt["capture"]
    of_P, of_E = (m[f"singular_values_{name}"][m["k"] - 1] / m[f"singular_values_{name}"][0] for name in "PE")
    assert alt["spectra"].endswith(f"th of P is {of_P:.3f} of the first, that of E {of_E:.3f}.")
    rows, columns = (ceil(size / 10) for size in image.shape)
    left, right = image[:rows, :columns].mean(), image[:rows, -columns:].mean()
    assert alt["direction-overlap"].endswith(f"{left:.2f} in the upper left corner, {right:.2f} in the upper right.")


def test_the_table_averages_the_capture_over_tenths():
    rng = np.random.default_rng(0)
    result = compute(rng.standard_normal((N, D)), rng.standard_normal((V, D)))
    table = result.tables["capture"]
    assert table.columns == ("from", "to", "mean_capture", "chance")
    for tenth, row in enumerate(table.named()):
        assert (row["from"], row["to"]) == (4 * tenth + 1, 4 * tenth + 4)
        assert row["mean_capture"] == pytest.approx(np.mean(result.metrics["capture"][4 * tenth : 4 * tenth + 4]))
        assert row["chance"] == 30 / D


def test_metrics_are_of_their_type_when_they_come_back_from_json():
    rng = np.random.default_rng(0)
    result = compute(rng.standard_normal((N, D)), rng.standard_normal((V, D)))
    stored = json.loads(json.dumps(result.metrics, allow_nan=False))
    metrics = TypeAdapter(SUBSPACES.metrics)
    assert metrics.validate_python(stored, strict=True) == stored
    for missing in stored:
        with pytest.raises(ValidationError, match=missing):
            metrics.validate_python({key: value for key, value in stored.items() if key != missing})
