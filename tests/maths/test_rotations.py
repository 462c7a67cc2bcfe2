import numpy as np
import pytest
from scipy import stats

from generators.maths import rotations


def rng(seed=0):
    return np.random.default_rng(seed)


def haar(d, count, seed):
    return stats.special_ortho_group.rvs(d, size=count, random_state=rng(seed))


def same_distribution(found, plain):
    """Say whether two samples could be of one distribution, at one in a thousand."""
    return stats.ks_2samp(found, plain).pvalue > 1e-3


# Rotations


@pytest.mark.parametrize(("d", "draws"), [(5, 3), (130, 3), (300, 6), (64, 2), (321, 4)])
def test_rotations_are_orthogonal(d, draws):
    found = list(rotations.rotations(d, draws, rng()))
    assert len(found) == draws
    for rotation in found:
        assert rotation.dtype == np.float32
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(d), atol=2e-5)
    assert not np.allclose(found[0], found[1])


@pytest.mark.parametrize("d", [20, 300])
def test_every_entry_of_a_rotation_is_distributed_as_haar_says(d):
    found = np.array([rotation[:3, :3].ravel() for rotation in rotations.rotations(d, 80, rng(1))]).ravel()
    assert stats.kstest(found**2, stats.beta(0.5, (d - 1) / 2).cdf).pvalue > 1e-3
    assert abs(np.mean(found > 0) - 0.5) < 0.08


def test_a_rotation_tells_little_of_the_last():
    largest = np.array([np.abs(rotation[0]).max() for rotation in rotations.rotations(300, 80, rng(2))])
    assert abs(np.corrcoef(largest[1:], largest[:-1])[0, 1]) < 0.3
    first, second = rotations.rotations(300, 2, rng(3))
    assert np.abs(np.sum(first * second, axis=1)).max() < 0.6


@pytest.mark.parametrize("count", [1, 10, 40])
def test_frames_are_orthonormal(count):
    for frame in rotations.frames(60, count, 2, rng()):
        np.testing.assert_allclose(frame.T @ frame, np.eye(count), atol=1e-5)


# Overlaps


def spectra():
    return {"falling": 1 / np.arange(1, 13) ** 2, "rank 1": np.ones(1), "rank 3": np.array([1.0, 3, 2])}


@pytest.mark.parametrize(("a", "b"), [("falling", "falling"), ("rank 1", "rank 1"), ("rank 3", "falling")])
def test_rivalries_as_full_rotations_give_them(a, b):
    d = 12
    A, B = (np.pad(spectra()[name], (0, d - len(spectra()[name]))) for name in (a, b))
    plain = [d * np.trace(np.diag(A) @ q @ np.diag(B) @ q.T) / (A.sum() * B.sum()) for q in haar(d, 400, 5)]
    found = rotations.rivalries(spectra()[a], spectra()[b], d, 400, rng(6))
    assert same_distribution(found, plain)
    assert np.mean(found) == pytest.approx(1, abs=4 * np.std(plain) / 20)


def test_a_flat_side_always_shares_its_part():
    np.testing.assert_allclose(rotations.rivalries(np.ones(30), spectra()["falling"], 30, 5, rng()), 1, atol=2e-3)
    np.testing.assert_allclose(rotations.shares_in_subspace(np.ones(30), 3, 30, 5, rng()), 0.1, atol=1e-5)


@pytest.mark.parametrize("k", [1, 4, 11])
def test_shares_in_a_subspace_as_full_rotations_give_them(k):
    d, energies = 12, spectra()["falling"]
    plain = [np.sum(q[:k] ** 2 @ energies) / energies.sum() for q in haar(d, 400, 7)]
    found = rotations.shares_in_subspace(energies, k, d, 400, rng(8))
    assert same_distribution(found, plain)
    assert np.mean(found) == pytest.approx(k / d, abs=4 * np.std(plain) / 20)


def test_energy_left_out_of_the_strong_directions_counts_on_average():
    energies = np.concatenate([[1000.0, 500], np.full(60, 0.01)])
    found = rotations.shares_in_subspace(energies, 10, 62, 1000, rng())
    assert found.mean() == pytest.approx(10 / 62, abs=0.015)


# The first direction and the mean


def test_cosines_of_the_first_direction_with_a_mean_that_is_added():
    variances = np.array([3.0, 1, 2, 0.5, 2.9])
    means = rng().standard_normal((50, 5)) * np.geomspace(0.1, 10, 50)[:, None]
    firsts = [np.linalg.eigh(np.diag(variances) + np.outer(mean, mean))[1][:, -1] for mean in means]
    expected = [abs(first @ mean) / np.linalg.norm(mean) for first, mean in zip(firsts, means, strict=True)]
    np.testing.assert_allclose(rotations._first_with_mean(variances, means), expected, atol=1e-8)


def test_a_long_mean_is_the_first_direction_wherever_it_points():
    variances = spectra()["falling"]
    assert rotations.turned_mean_cosines(variances, 100, 50, rng()).min() > 0.999
    short = rotations.turned_mean_cosines(variances, 1e-6, 500, rng())
    assert stats.kstest(short**2, stats.beta(0.5, 11 / 2).cdf).pvalue > 1e-3


def test_the_mean_of_rows_without_one_points_where_they_vary_most():
    variances = 1 / np.arange(1, 61.0) ** 4
    found = rotations.accidental_mean_cosines(variances, 300, 300, rng())
    plain = []
    for rows in rng(11).standard_normal((100, 300, 60)) * np.sqrt(variances):
        mean = rows.mean(axis=0)
        plain.append(abs(np.linalg.svd(rows, full_matrices=False)[2][0] @ mean) / np.linalg.norm(mean))
    assert same_distribution(found, plain)
    assert np.mean(found > 0.95) > 0.1


# Channels


def test_channel_variances_as_full_rotations_give_them():
    energies = spectra()["falling"]
    plain = haar(12, 400, 12) ** 2 @ energies
    found = rotations.channel_variances(energies, 12, 400, rng(13))
    np.testing.assert_allclose(found.sum(axis=1), energies.sum(), rtol=1e-5)
    assert same_distribution(found[:, 0], plain[:, 0])
    assert same_distribution(found.max(axis=1), plain.max(axis=1))


def test_channels_for_a_share():
    variances = np.array([[4.0, 3, 2, 1], [1, 1, 1, 97], [1, 1, 1, 1]])
    assert rotations.channels_for(variances, 0.9).tolist() == [3, 1, 4]
    assert rotations.channels_for(variances, 0.7).tolist() == [2, 1, 3]


def test_both_sides_turned_alike_as_full_rotations_give_them():
    d = 10
    P, E = rng().standard_normal((30, d)) * np.arange(1, d + 1), rng(1).standard_normal((50, d)) * np.arange(d, 0, -1)
    P, E = P - P.mean(axis=0), E - E.mean(axis=0)
    plain = [stats.spearmanr((P @ q).var(axis=0), (E @ q).var(axis=0)).statistic for q in haar(d, 300, 14)]
    a, b = rotations.both_channel_variances(P, E.T @ E / 50, 300, rng(15))
    assert same_distribution(rotations.rank_correlations(a, b), plain)
    np.testing.assert_allclose(a.sum(axis=1), np.sum(P**2) / 30, rtol=1e-3)
    np.testing.assert_allclose(b.sum(axis=1), np.sum(E**2) / 50, rtol=1e-3)


def test_channels_where_one_side_varies_most_and_the_other_least_are_counted():
    loud = np.array([[9.0, 8, 7, 1, 2, 3], [1, 2, 3, 4, 5, 6]])
    quiet = np.array([[0.1, 5, 0.2, 4, 3, 0.3], [6, 5, 4, 3, 2, 1]])
    assert rotations.low_variance_overlaps(loud, quiet, 3).tolist() == [2, 3]
    assert rotations.low_variance_overlaps(loud, quiet, 1).tolist() == [1, 1]


def test_correlations_row_by_row():
    a, b = rng().standard_normal((4, 30)), rng(1).standard_normal((4, 30))
    for i in range(4):
        assert rotations.correlations(a, b)[i] == pytest.approx(stats.pearsonr(a[i], b[i]).statistic)
        assert rotations.rank_correlations(a, b)[i] == pytest.approx(stats.spearmanr(a[i], b[i]).statistic)
        assert rotations.rank_correlations(a, b[:1])[i] == pytest.approx(stats.spearmanr(a[i], b[0]).statistic)
    assert rotations.correlations(np.ones((2, 5)), a[:2, :5]).tolist() == [0, 0]


@pytest.mark.parametrize("d", [12, 300])
def test_the_best_axis_is_the_best_of_all(d):
    m = 400
    rows = (rng().standard_normal((m, d)) * np.geomspace(3, 0.3, d) + 1).astype(np.float32)
    values = rows[:, : d // 2].sum(axis=1) + 3 * rng(1).standard_normal(m)
    found = rotations.best_axis_correlations(rows, values, 40, rng(2))
    ranks = stats.rankdata(values)[None]
    turned = (rows @ q for q in haar(d, 6 if d > 100 else 60, 3))
    plain = [np.abs(rotations.rank_correlations(each.T, ranks)).max() for each in turned]
    assert same_distribution(found, plain)
    assert np.median(found) == pytest.approx(np.median(plain), rel=0.1)


# The same draws on every processor


def other_lapack(monkeypatch, seed=3):
    """Have eigenvectors and singular vectors come with other signs, and those of equal values in another order."""
    generator, eigh, svd = rng(seed), np.linalg.eigh, np.linalg.svd

    def signs(count):
        return generator.choice([-1.0, 1.0], count)

    def other_eigh(matrix):
        values, vectors = eigh(matrix)
        order = np.lexsort((generator.random(len(values)), np.round(values, 9)))
        return values[order], vectors[:, order] * signs(len(values))

    def other_svd(matrix, full_matrices):
        left, values, right = svd(matrix, full_matrices=full_matrices)
        turned = signs(len(values))
        return left * turned, values, right * turned[:, None]

    monkeypatch.setattr(np.linalg, "eigh", other_eigh)
    monkeypatch.setattr(np.linalg, "svd", other_svd)


def equal_energies():
    """Return rows with pairs of directions that hold exactly as much as each other."""
    frame = np.linalg.qr(rng(5).standard_normal((60, 8)))[0]
    return frame * np.repeat([4.0, 3.0, 2.0, 1.0], 2)


@pytest.mark.parametrize("rows", [rng(4).standard_normal((60, 8)), equal_energies()], ids=["any", "equal"])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rows: rotations.best_axis_correlations(rows, np.arange(60.0) // 3, 20, rng(6)),
        lambda rows: np.stack(rotations.both_channel_variances(rows[:20], rows.T @ rows, 20, rng(7))),
    ],
    ids=["best axis", "both variances"],
)
def test_draws_do_not_depend_on_what_lapack_leaves_open(monkeypatch, rows, draw):
    before = draw(rows)
    for seed in range(5):
        with monkeypatch.context() as patch:
            other_lapack(patch, seed)
            np.testing.assert_allclose(draw(rows), before, rtol=1e-9)
