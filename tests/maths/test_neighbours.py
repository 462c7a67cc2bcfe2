"""The exact searches against brute force in float64, on small blocks so that every branch is taken."""

import numpy as np
import pytest

from generators.maths import neighbours as nearest
from generators.maths.neighbours import best_match, nearest_distance, neighbours_within


@pytest.fixture(autouse=True, params=[16, nearest.BLOCK])
def _blocks(request, monkeypatch):
    """Search in blocks much smaller than the matrices, and in one block, where nothing is screened."""
    monkeypatch.setattr(nearest, "BLOCK", request.param)
    monkeypatch.setattr(nearest, "GROUP", 8)
    monkeypatch.setattr(nearest, "DENSE_GROUP", 12)
    monkeypatch.setattr(nearest, "CHUNK", 32)
    monkeypatch.setattr(nearest, "TRIED", 4)
    monkeypatch.setattr(nearest, "RANKS", (2, 4, 8, 16))


def power_law(rng, V, d):
    """Rows whose spectrum falls as a power, around a large mean, of norms that vary by 15 %."""
    rows = rng.standard_normal((V, d)) * np.arange(1, d + 1) ** -0.7
    rows = rows @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (rows + rows.std() * rng.standard_normal(d)) * np.exp(0.15 * rng.standard_normal((V, 1)))


def with_duplicates(rng, rows):
    """A fifth of the rows are copies of five others, and as many are nearly so."""
    rows = rows.copy()
    places = rng.permutation(len(rows))
    copies, similar = np.array_split(places, 5)[:2]
    rows[copies] = rows[rng.choice(places[-5:], len(copies))]
    rows[similar] = rows[rng.choice(places[-5:], len(similar))] * (1 + 1e-5 * rng.standard_normal((len(similar), 1)))
    return rows


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def with_zeros(rng, rows):
    rows = rows.copy()
    rows[rng.choice(len(rows), len(rows) // 10 + 1, replace=False)] = 0
    return rows


def with_tiny_rows(rng, rows):
    rows = rows.copy()
    rows[rng.choice(len(rows), len(rows) // 5 + 1, replace=False)] *= 1e-18
    return rows


MATRICES = {
    "gaussian": lambda rng, V, d: rng.standard_normal((V, d)),
    "power law": power_law,
    "log-normal norms": lambda rng, V, d: rng.standard_normal((V, d)) * np.exp(rng.standard_normal((V, 1))),
    "Student t": lambda rng, V, d: rng.standard_t(2, (V, d)),
    "equal norms": lambda rng, V, d: unit(rng.standard_normal((V, d))),
    # rows of one norm to the last bit, and products with many true ties
    "sign vectors": lambda rng, V, d: rng.choice([-1.0, 1.0], (V, d)),
    "duplicates": lambda rng, V, d: with_duplicates(rng, power_law(rng, V, d)),
    "zero rows": lambda rng, V, d: with_zeros(rng, power_law(rng, V, d)),
    "tiny rows": lambda rng, V, d: with_tiny_rows(rng, power_law(rng, V, d)),
    "all the same": lambda rng, V, d: np.tile(rng.standard_normal(d), (V, 1)),
    "all zero": lambda rng, V, d: np.zeros((V, d)),
    "few directions": lambda rng, V, d: rng.standard_normal((V, 3)) @ rng.standard_normal((3, d)),
    "far from the origin": lambda rng, V, d: 100 + rng.standard_normal((V, d)),
}
SHAPES = [(1, 3), (2, 1), (7, 5), (150, 1), (90, 40), (260, 17)]


def matrix(kind, shape, seed=0, dtype=np.float32):
    return MATRICES[kind](np.random.default_rng([seed, *shape]), *shape).astype(dtype)


def brute_best(E, U):
    """Return the argmax by float64 products, and the products; equal but for rounding, the lowest id wins."""
    products = E.astype(np.float64) @ U.astype(np.float64).T
    scale = np.linalg.norm(E.astype(np.float64), axis=1)[:, None] * np.linalg.norm(U.astype(np.float64), axis=1).max()
    highest = products.max(axis=1, keepdims=True)
    return (products >= highest - 1e-13 * scale).argmax(axis=1), products, 1e-13 * scale[:, 0]


def check_best(E, U=None):
    found = best_match(E, U)
    expected, products, rounding = brute_best(E, E if U is None else U)
    rows = np.arange(len(E))
    assert found.shape == (len(E),)
    assert (products[rows, found] >= products.max(axis=1) - rounding).all()
    assert (found == expected).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", MATRICES)
def test_best_match_of_tied_embeddings(kind, shape):
    check_best(matrix(kind, shape))


@pytest.mark.parametrize("other", ["gaussian", "duplicates", "zero rows"])
@pytest.mark.parametrize("kind", MATRICES)
def test_best_match_of_untied_embeddings(kind, other):
    check_best(matrix(kind, (260, 50)), matrix(other, (260, 50), seed=1))


@pytest.mark.parametrize("noise", [0.01, 0.3, 3.0])
def test_best_match_of_output_embeddings_like_the_inputs(noise):
    E = matrix("power law", (333, 40))
    U = E + np.float32(noise) * E.std() * matrix("gaussian", (333, 40), seed=1)
    check_best(E, U)
    check_best(E, U.astype(np.float64))


def test_what_is_not_distinguished_in_float32_is_in_float64():
    E = matrix("gaussian", (200, 32), dtype=np.float64)
    E[100:110] = E[5] * (1 + 1e-10 * np.arange(10)[:, None])
    assert (best_match(E)[100:110] == 109).all()
    assert best_match(E)[5] == 109


def test_the_lowest_id_wins_where_products_are_equal_but_for_the_order_of_their_sums():
    rng = np.random.default_rng(0)
    E = np.repeat(rng.uniform(0.5, 1.5, (100, 1)), 48, axis=1).astype(np.float32)
    U = matrix("gaussian", (100, 48)) / 10
    longest = 1 + rng.standard_normal(48)
    for i in range(37, 77):
        U[i] = rng.permutation(longest)
    assert (best_match(E, U) == 37).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", MATRICES)
def test_neighbours_within(kind, shape):
    E = matrix(kind, shape).astype(np.float64)
    distances = np.sqrt(((E[:, None] - E) ** 2).sum(axis=2))
    others = distances[~np.eye(len(E), dtype=bool)]
    for share in (0.0, 0.02, 0.5, 1.0):
        radius = float(np.quantile(others, share)) if len(others) else 1.0
        radius += 1e-9 * radius  # not the very distance of a pair
        expected = (distances <= radius).sum(axis=1) - 1
        np.testing.assert_array_equal(neighbours_within(E.astype(np.float32), radius), expected)


def test_neighbours_at_exactly_the_radius_count():
    E = np.zeros((40, 8), np.float32)
    E[:, 0] = np.arange(40)
    counts = neighbours_within(E, 2.0)
    assert counts[:3].tolist() == [2, 3, 4]
    assert (counts[2:-2] == 4).all()
    assert (neighbours_within(E, 1.999) == [1, *[2] * 38, 1]).all()
    assert (neighbours_within(E, 0.0) == 0).all()


@pytest.mark.parametrize("shape", SHAPES[1:])
@pytest.mark.parametrize("kind", MATRICES)
def test_nearest_distance(kind, shape):
    E = matrix(kind, shape)
    exact = E.astype(np.float64)
    ids = np.unique(np.linspace(0, len(E) - 1, 50).astype(int))[::-1]
    distances = np.sqrt(((exact[ids, None] - exact) ** 2).sum(axis=2))
    distances[np.arange(len(ids)), ids] = np.inf
    np.testing.assert_allclose(nearest_distance(E, ids), distances.min(axis=1), rtol=1e-9)


def test_a_single_row_has_no_nearest():
    assert nearest_distance(np.ones((1, 4), np.float32), np.array([0])).tolist() == [np.inf]
