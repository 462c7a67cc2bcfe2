import numpy as np
import pytest

from generators.findings import plantings
from generators.maths import spectra as linalg

SHAPES = [(60, 20), (20, 60), (16, 16), (5, 1), (1, 5)]
CENTRED_SHAPES = SHAPES[:4]


def rows_of(shape, seed=0, mean=0.0, dtype=np.float64):
    """Return rows with a few directions much stronger than others, as embeddings have."""
    rng = np.random.default_rng(seed)
    strength = 10.0 ** -np.linspace(0, 3, shape[1])
    return (mean + rng.standard_normal(shape) * strength).astype(dtype)


@pytest.mark.parametrize("mean", [0.0, 100.0])
@pytest.mark.parametrize("shape", CENTRED_SHAPES)
def test_pca_is_the_eigendecomposition_of_the_covariance(shape, mean):
    rows = rows_of(shape, mean=mean)
    expected = np.linalg.eigvalsh(np.atleast_2d(np.cov(rows.T, ddof=0)))[::-1]
    size = min(shape)
    result = linalg.pca(rows)
    np.testing.assert_allclose(result.variance_ratio, expected[:size] / expected.sum(), atol=1e-10)
    np.testing.assert_allclose(result.scores.var(axis=0), expected[:size], atol=1e-9)
    np.testing.assert_allclose(result.scores @ result.components + rows.mean(axis=0), rows, atol=1e-9)
    np.testing.assert_allclose(result.components @ result.components.T, np.eye(size), atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_svd_gives_the_rows_back_and_fixes_signs(shape):
    rows = rows_of(shape, mean=0.3)
    u, s, vt = linalg.svd(rows)
    np.testing.assert_allclose((u * s) @ vt, rows, atol=1e-12)
    np.testing.assert_allclose(u.T @ u, np.eye(len(s)), atol=1e-12)
    assert list(s) == sorted(s, reverse=True)
    for vector in vt:
        assert max(vector) == max(abs(vector))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("mean", [0.0, 30.0])
@pytest.mark.parametrize("shape", CENTRED_SHAPES)
def test_ratios_are_those_of_the_centred_and_of_the_uncentred_svd(shape, mean, dtype):
    rows = rows_of(shape, mean=mean, dtype=dtype)
    exact = rows.astype(np.float64)
    of_centred = 1e-10 if dtype == np.float64 else 1e-4
    for ratio, centre, tolerance in (
        (linalg.variance_ratio, exact.mean(axis=0), of_centred),
        (linalg.energy_ratio, 0, 1e-12),
    ):
        squares = np.linalg.svd(exact - centre, compute_uv=False) ** 2
        np.testing.assert_allclose(ratio(rows), squares / squares.sum(), atol=tolerance)


@pytest.mark.parametrize(("n", "d", "count"), [(200, 24, 5), (24, 200, 5), (40, 40, 40)])
def test_right_singular_vectors_recovers_planted_ones(n, d, count):
    planted = plantings.orthonormal(d, count, seed=1)
    strengths = np.linspace(count + 1, 1, count)
    rows = (plantings.orthonormal(n, count, seed=2) * strengths) @ planted.T
    found = linalg.right_singular_vectors(rows, count)
    assert found.shape == (d, count)
    np.testing.assert_allclose(np.abs(np.sum(found * planted, axis=0)), 1, atol=1e-9)


@pytest.mark.parametrize(("n", "d", "k"), [
    (1024, 768, 30), (512, 768, 30), (300, 768, 30), (299, 768, 29), (256, 768, 25), (77, 768, 7), (20, 768, 2),
    (16, 768, 1), (9, 768, 1), (1024, 30, 30), (1024, 29, 29), (1024, 8, 8), (100, 12, 10),
])  # fmt: skip
def test_subspace_size_is_30_or_a_tenth_of_the_positions_and_no_more_than_all_channels(n, d, k):
    assert linalg.subspace_size(n, d) == k


@pytest.mark.parametrize(
    ("share", "count"), [(0.49, 1), (0.5, 1), (0.51, 2), (0.75, 2), (0.76, 3), (0.875, 3), (0.9, 4), (1.0, 4)]
)
def test_components_for_takes_the_largest_shares_first(share, count):
    unsorted = np.array([0.125, 0.5, 0.125, 0.25])
    assert linalg.components_for(unsorted, share) == count
    assert linalg.components_for(8 * unsorted, share) == count
