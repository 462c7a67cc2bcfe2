import json
from functools import partial

import numpy as np
import pytest
from scipy.stats import ortho_group

from generators.findings.subspaces import FINDING as SUBSPACES
from tests import synthetic

D, N, V = 40, 300, 900
claims_of = partial(synthetic.by_id, SUBSPACES)


def compute(P: np.ndarray, E: np.ndarray):
    weights = {"position_embedding": P.astype(np.float32), "token_embedding": E.astype(np.float32)}
    return synthetic.measure(SUBSPACES, weights, synthetic.architecture(n_ctx=len(P), d_model=P.shape[1]))


TURNS = {
    "turned": lambda seed: ortho_group.rvs(D, random_state=seed),
    "exchanged": lambda seed: np.eye(D)[np.random.default_rng(seed).permutation(D)],
}


def other_overlaps(P, E, null, draws=200):
    """Turn positions against tokens: rivalry, and either side's energy in the other's tail, plainly."""
    found = []
    for seed in range(draws):
        turned = P @ TURNS[null](seed)
        C_P, C_E = np.cov(turned[1:].T), np.cov(E.T)
        of_P, of_E = (np.linalg.eigh(C)[1][:, :4] for C in (C_P, C_E))
        found.append([
            D * np.trace(C_P @ C_E) / np.trace(C_P) / np.trace(C_E),
            np.trace(of_E.T @ C_P @ of_E) / np.trace(C_P),
            np.trace(of_P.T @ C_E @ of_P) / np.trace(C_E),
        ])  # fmt: skip
    return np.sort(np.array(found).T)


@pytest.mark.parametrize("null", TURNS)
def test_chance_turns_or_exchanges_one_side(null):
    rng = np.random.default_rng(5)
    P = rng.standard_normal((N, D)) * np.geomspace(3, 0.05, D)
    E = rng.standard_normal((V, D)) * np.geomspace(1, 0.2, D)
    rivalries, of_P, of_E = other_overlaps(P, E, null)
    chance = {name: stored[null] for name, stored in compute(P, E).metrics["chance"].items()}
    assert {stored["draws"] for stored in chance.values()} == {200}
    for name, plain, limit in (
        ("rivalry", rivalries, rivalries[1]),  # small ones are evidence
        ("position_energy_in_tail", of_P, of_P[-2]),
        ("token_energy_in_tail", of_E, of_E[-2]),
    ):
        assert chance[name]["median"] == pytest.approx(np.median(plain), abs=0.3 * plain.std())
        assert chance[name]["limit"] == pytest.approx(limit, abs=plain.std())
    assert chance["token_energy_in_tail"]["null"].startswith("tokens ")
    assert null in chance["token_energy_in_tail"]["null"]


VALUES = {"keep-apart": "rivalry", "p-in-tail": "position_energy_in_tail", "tokens-in-tail": "token_energy_in_tail"}


@pytest.fixture(scope="module")
def noise():
    rng = np.random.default_rng(0)
    return compute(rng.standard_normal((N, D)), rng.standard_normal((V, D)))


def judged(noise, claim, value, limit, median):
    null, easy = synthetic.null(median, limit), synthetic.null(median, median)
    nulls = {"turned": null, "exchanged": easy} if value > 0.3 else {"turned": easy, "exchanged": null}
    inside, name = {"chance": {VALUES[claim]: nulls}}, VALUES[claim]
    return claims_of(synthetic.measured_with(noise.metrics, inside, **{name: value}))[claim]


@pytest.mark.parametrize(("claim", "value", "limit", "median", "verdict"), [
    ("p-in-tail", 0.50, 0.15, 0.1, "holds"), ("p-in-tail", 0.49, 0.15, 0.1, "partly"),
    ("tokens-in-tail", 0.20, 0.15, 0.1, "partly"), ("tokens-in-tail", 0.19, 0.15, 0.1, "fails"),
    ("tokens-in-tail", 0.50, 0.50, 0.1, "fails"), ("p-in-tail", 0.99, 0.5, 0.5, "untested"),
    ("keep-apart", 0.50, 0.9, 1.0, "holds"), ("keep-apart", 0.51, 0.9, 1.0, "partly"),
    ("keep-apart", 0.80, 0.9, 1.0, "partly"), ("keep-apart", 0.81, 0.9, 1.0, "fails"),
    ("keep-apart", 0.50, 0.5, 1.0, "fails"), ("keep-apart", 0.01, 0.5, 0.5, "untested"),
])  # fmt: skip
def test_thresholds(noise, claim, value, limit, median, verdict):
    found = judged(noise, claim, value, limit, median)
    assert found.verdict == verdict
    assert verdict == "untested" or (found.value, found.baseline, found.threshold) == (value, median, 0.5)


def test_intervals_and_tenths_of_noise(noise):
    for claim, name in VALUES.items():
        low, high = noise.metrics["intervals"][name]
        assert low < noise.metrics[name] < high
        assert claims_of(noise)[claim].interval == (low, high)
    assert noise.tables["capture"].columns == ("from", "to", "mean_capture", "chance")
    for tenth, row in enumerate(noise.tables["capture"].named()):
        assert (row["from"], row["to"]) == (4 * tenth + 1, 4 * tenth + 4)
        assert row["mean_capture"] == pytest.approx(np.mean(noise.metrics["capture"][4 * tenth : 4 * tenth + 4]))
        assert row["chance"] == 30 / D


def test_the_interval_of_the_tokens_energy_draws_tokens_again():
    """A tenth of the tokens, all of one length, is all that lies in the tail: how many are drawn is binomial."""
    rng = np.random.default_rng(6)
    P = rng.standard_normal((N, D)) * np.where(np.arange(D) >= 36, 0.01, 1.0)
    E = np.zeros((V, D))
    E[np.arange(V), np.where(np.arange(V) < 90, 36, 3)] = np.resize([1, -1], V)
    m = compute(P, E).metrics
    low, high = m["intervals"]["token_energy_in_tail"]
    assert m["token_energy_in_tail"] == pytest.approx(0.1, abs=0.001)
    assert (high - low) / 2 == pytest.approx(1.96 * np.sqrt(0.1 * 0.9 / V), rel=0.15)


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
    tail_of_P = np.linalg.svd(positions, full_matrices=False)[2][-4:]
    assert m["token_energy_in_tail"] == pytest.approx(np.sum((centred @ tail_of_P.T) ** 2) / np.sum(centred**2))
    mean, first = E.mean(axis=0), m["first_capture"]
    assert first["value"] == pytest.approx(m["capture"][0], rel=1e-12)
    assert first["of_mean"] == pytest.approx(np.sum((top @ mean) ** 2) / (mean @ mean))
    assert first["mean_in_first"] == pytest.approx((right_E[0] @ mean) ** 2 / (mean @ mean))
    first_centred = np.linalg.svd(centred, full_matrices=False)[2][0]
    assert first["without_mean"] == pytest.approx(np.sum((top @ first_centred) ** 2))
    assert m["rivalry"] == pytest.approx(D * np.trace(C_P @ C_E) / np.trace(C_P) / np.trace(C_E))


@pytest.mark.parametrize(("n", "d"), [(16, 16), (16, D), (30, 90)])
def test_the_smallest_are_spoken_about(n, d):
    rng = np.random.default_rng(0)
    result = compute(rng.standard_normal((n, d)), rng.standard_normal((100, d)))
    json.dumps(result.metrics, allow_nan=False)
    assert "holds" not in synthetic.verdicts(SUBSPACES, result).values()


def test_directions_without_positions():
    """Positions use 10 of 40 directions: of tokens that use 3 of the other 30, a tenth of all holds 4 of 30."""
    P, E = (np.random.default_rng(0).standard_normal((rows, D)) for rows in (N, V))
    m = compute(P * (np.arange(D) < 10), E * (np.arange(D) > 36)).metrics
    assert m["token_energy_in_tail"] == pytest.approx(4 / 30, abs=1e-6)
