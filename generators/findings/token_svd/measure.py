import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings import token_cells
from generators.findings.inputs import Inputs, NotApplicableError, Vocabulary
from generators.findings.measured import Interval, Measurements, StoredChance, Table, table_of
from generators.findings.nulls import DRAWS, RESAMPLES, drawn, interval
from generators.findings.outliers.clump import crowd_and_clump
from generators.findings.sizes import check_tokens, nonconstant_positions
from generators.findings.token_svd import separation
from generators.maths.blocks import norms, spread_ids
from generators.maths.ranks import areas_under_curve, unit_ranks
from generators.maths.resampling import first_direction_cosine_of, resample_items
from generators.maths.rotations import accidental_mean_cosines, frames, turned_mean_cosines
from generators.maths.spectra import gram, right_singular_vectors, subspace_size

RESAMPLED_IN = 8  # leading directions in which the first of a resampling is sought
COMPARED_IN = 16  # directions after the first in which other planes are drawn
SAMPLE = 6000  # tokens drawn in figures
SEED = 20211201
NOTHING = 1e-12  # share of the energy below which variation is rounding

SHARE = 0.01  # share of tokens at either end
FEWEST_AT_END = 20
RANGE_OF_DRAWS = (0.005, 0.995)  # quantiles of the draws (two-sided)

COMPARED_WITH_TURNED = 5000  # tokens, spread over the ids, used for turned positions
TURNS = 100
OVERLAPPING = 0.1  # share of tokens with the largest share of energy in P's directions
RANGE_OF_TURNED = (0.005, 0.5, 0.995)  # quantiles over turned positions (two-sided)


class ComparedWithTurned(TypedDict):
    """A number, and what P's directions turned at random give: the median, and the range of 99 % of the draws."""

    value: float
    turned: float
    low: float
    high: float


class Overlap(TypedDict):
    """The first direction and a token's energy in P's top k directions.

    `rho` is the rank correlation of the projection with that energy, `rho_share` with its share of the token's own.
    `auc` is how well the projection separates the tenth of the tokens with the largest share from the others: 0.5 is
    chance, and below it those tokens have the smaller projections.
    """

    k: int
    chance_share: float
    first_in_positions: float
    rho: ComparedWithTurned
    rho_share: ComparedWithTurned
    auc: ComparedWithTurned


class ExtremeProjection(TypedDict):
    """Mean projection of the longest or shortest tokens, in standard deviations from that of all.

    `implied` is what their norm alone makes of it (the median), `low` and `high` hold 99 % of the draws.
    """

    value: float
    implied: float
    low: float
    high: float


class Extremes(TypedDict):
    count: int
    longest: ExtremeProjection
    shortest: ExtremeProjection


class TokenSvdChances(TypedDict):
    """By number that is claimed about; `turned_mean` is of a mean as long as the tokens', pointing anywhere."""

    cosine_first_mean: StoredChance
    turned_mean: StoredChance
    plane: StoredChance | None


class TokenSvdIntervals(TypedDict):
    cosine_first_mean: Interval
    plane: Interval | None


class WithoutCluster(TypedDict):
    """The first direction and the mean without the `tokens` that lie in one spot."""

    tokens: int
    cosine_first_mean: float
    mean_energy: float


class TokenSvdMetrics(TypedDict):
    """Cosine of the first direction with the mean, and what the next two tell apart.

    `one_sign_share` is the share of tokens on the same side of zero along the first direction. `mean_energy` is the
    squared length of the mean in units of the tokens' mean variance in a direction, tr(C) / d.
    """

    cosine_first_mean: float
    mean_energy: float
    one_sign_share: float
    auc: separation.Areas | None
    extremes: Extremes
    overlap: Overlap | None
    chance: TokenSvdChances
    intervals: TokenSvdIntervals
    n_tokens: int


def measure(inputs: Inputs) -> Measurements[TokenSvdMetrics]:
    """Measure the leading right singular directions of E and what they tell apart.

    Without a vocabulary, or with hardly a token of one kind, what the space marker tells apart is None.
    """
    E = inputs.weights["token_embedding"]
    check_tokens(E)
    total = gram(E)
    mean = E.mean(axis=0, dtype=np.float64)
    variances = np.clip(np.linalg.eigvalsh(total / len(E) - np.outer(mean, mean)), 0, None)
    if variances.sum() <= NOTHING * np.trace(total) / len(E):
        raise NotApplicableError("The token embeddings do not vary: they have no leading directions.")
    leading = _oriented(np.linalg.eigh(total)[1][:, ::-1][:, : 1 + COMPARED_IN], mean)
    scores = (E @ leading.astype(np.float32)).astype(np.float64)
    plane, lengths = scores[:, 1:3], norms(E)
    kinds = separation.kinds_of(inputs.vocabulary, len(E))
    both_kinds = np.bincount(kinds[kinds != separation.LEFT_OUT], minlength=2).min() >= separation.FEWEST
    P = nonconstant_positions(inputs.weights)
    overlapping, shares = (None, None) if P is None else overlap(E, P, leading[:, 0], lengths, SEED)
    accidental, turned = _of_the_mean(variances, mean, len(E))
    metrics = TokenSvdMetrics(
        cosine_first_mean=_cosine(leading[:, 0], mean),
        mean_energy=float(mean @ mean / variances.mean()),
        one_sign_share=float(max(np.mean(scores[:, 0] > 0), np.mean(scores[:, 0] < 0))),
        auc=separation.areas(E, plane, kinds) if both_kinds else None,
        extremes=extremes(scores[:, 0], lengths, SEED),
        overlap=overlapping,
        chance={
            "cosine_first_mean": accidental,
            "turned_mean": turned,
            "plane": separation.other_planes(scores[:, 1:], kinds, SEED) if both_kinds else None,
        },
        intervals={
            "cosine_first_mean": _cosine_interval(scores, leading, mean),
            "plane": separation.area_interval(plane, kinds, SEED) if both_kinds else None,
        },
        n_tokens=len(E),
    )
    columns = {"token_scores": scores[:, :3], "token_norm": lengths}
    if shares is not None:
        columns["token_overlap"] = shares
    return Measurements(metrics, _without_cluster(E, total, mean), _arrays(columns, kinds, inputs.vocabulary))


def _without_cluster(
    E: Float[Array, "V d"], total: Float[Array, "d d"], mean: Float[Array, " d"]
) -> dict[str, Table]:
    """Return a table of one row, or none where no tokens lie in one spot."""
    _, clump = crowd_and_clump(E)
    if clump is None:
        return {}
    members = E[clump.members].astype(np.float64)
    count = len(E) - len(members)
    rest = (total - members.T @ members) / count
    mean = (mean * len(E) - members.sum(axis=0)) / count
    row = WithoutCluster(
        tokens=len(members),
        cosine_first_mean=abs(_cosine(np.linalg.eigh(rest)[1][:, -1], mean)),
        mean_energy=float(mean @ mean / max(np.trace(rest) - mean @ mean, np.finfo(np.float64).tiny) * len(mean)),
    )
    return {"without_cluster": table_of("Without the tokens in one spot", WithoutCluster, [row])}


def _oriented(vectors: Float[Array, "d m"], mean: Float[Array, " d"]) -> Float[Array, "d m"]:
    """Turn the first to the side of the mean, and the others so that their largest entry is positive."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    signs = np.where(largest >= 0, 1.0, -1.0)
    signs[0] = -1.0 if vectors[:, 0] @ mean < 0 else 1.0
    return vectors * signs


def _cosine(direction: Float[Array, " d"], mean: Float[Array, " d"]) -> float:
    length = float(np.linalg.norm(mean))
    return float(direction @ mean) / length if length else 0.0


def _of_the_mean(
    variances: Float[Array, " d"], mean: Float[Array, " d"], count: int
) -> tuple[StoredChance, StoredChance]:
    """Return the cosine where the mean is an accident, and where it is as long as it is and points anywhere."""
    rng = np.random.default_rng(SEED)
    accidental = accidental_mean_cosines(variances, count, DRAWS, rng)
    turned = turned_mean_cosines(variances, float(mean @ mean), DRAWS, rng) if mean.any() else np.zeros(DRAWS)
    return (
        drawn("tokens of this spectrum about zero, whose mean is an accident", accidental),
        drawn("means of this length that point anywhere", turned),
    )


def _cosine_interval(scores: Float[Array, "V m"], leading: Float[Array, "d m"], mean: Float[Array, " d"]) -> Interval:
    scores, leading = scores[:, :RESAMPLED_IN], leading[:, :RESAMPLED_IN]
    statistic = first_direction_cosine_of(scores, mean - leading @ (leading.T @ mean))
    return interval(resample_items(statistic, len(scores), RESAMPLES, np.random.default_rng(SEED)))


def _arrays(columns: dict[str, Array], kinds: separation.Kinds, vocabulary: Vocabulary | None) -> dict[str, Array]:
    rng = np.random.default_rng(SEED)
    ids = np.sort(rng.choice(len(kinds), min(SAMPLE, len(kinds)), replace=False))
    return {
        **{name: column[ids].astype(np.float32) for name, column in columns.items()},
        "token_kind": kinds[ids],
        "token_id": ids.astype(np.int32),
        **token_cells.names(vocabulary, ids),
    }


def extremes(projections: Float[Array, " V"], norms: Float[Array, " V"], seed: int) -> Extremes:
    """Return how far along a direction the longest and the shortest hundredth of the tokens are, at least 20 each.

    A token far along a direction is long for that alone. What that makes of it: every token keeps its projection on
    the direction, and what is left of it, in length, goes to another token.
    """
    count = max(FEWEST_AT_END, int(SHARE * len(norms)))
    spread = float(projections.std())
    scores = (projections - projections.mean()) / (spread if spread else 1.0)
    along, rest = projections**2, np.clip(norms**2 - projections**2, 0, None)
    rng = np.random.default_rng(seed)
    draws = np.array([_ends(scores, along + rng.permutation(rest), count) for _ in range(DRAWS)])
    shortest, longest = (
        ExtremeProjection(value=value, implied=float(np.median(column)), low=low, high=high)
        for value, column, (low, high) in zip(
            _ends(scores, norms, count), draws.T, np.quantile(draws, RANGE_OF_DRAWS, axis=0).T.tolist(), strict=True
        )
    )
    return {"count": count, "longest": longest, "shortest": shortest}


def _ends(scores: Float[Array, " V"], lengths: Float[Array, " V"], count: int) -> tuple[float, float]:
    order = np.argpartition(lengths, (count, len(lengths) - count))
    return float(scores[order[:count]].mean()), float(scores[order[len(order) - count :]].mean())


def overlap(
    E: Float[Array, "V d"], P: Float[Array, "n d"], first: Float[Array, " d"], norms: Float[Array, " V"], seed: int
) -> tuple[Overlap, Float[Array, " V"]]:
    """Return how projections on the first direction correlate with energy in P's top directions, and in turned ones.

    The second value is every token's share of energy in P's top directions.
    """
    k = subspace_size(*P.shape)
    top = right_singular_vectors(P, k).astype(np.float32)
    along = (E @ first.astype(np.float32)).astype(np.float64)
    energy = _energies(E, top)
    found = _numbers(along, energy[None], norms)[:, 0]
    ids = spread_ids(len(E), COMPARED_WITH_TURNED)
    rows = E[ids]
    turned_frames = frames(E.shape[1], k, TURNS, np.random.default_rng(seed))
    energies = np.array([_energies(rows, frame) for frame in turned_frames])
    turned = np.quantile(_numbers(along[ids], energies, norms[ids]), RANGE_OF_TURNED, axis=1).T
    rho, rho_share, auc = (
        ComparedWithTurned(value=float(value), turned=median, low=low, high=high)
        for value, (low, median, high) in zip(found, turned.tolist(), strict=True)
    )
    compared: Overlap = {
        "k": k,
        "chance_share": k / len(first),
        "first_in_positions": float(np.sum((first @ top) ** 2)),
        "rho": rho,
        "rho_share": rho_share,
        "auc": auc,
    }
    return compared, _shares(energy, norms)


def _energies(rows: Float[Array, "n d"], top: Float[Array, "d k"]) -> Float[Array, " n"]:
    inside = rows @ top
    return np.einsum("ij,ij->i", inside, inside, dtype=np.float64)


def _shares(energies: Float[Array, "*draws n"], norms: Float[Array, " n"]) -> Float[Array, "*draws n"]:
    return energies / np.where(norms > 0, norms**2, 1)


def _numbers(
    along: Float[Array, " n"], energies: Float[Array, "draws n"], norms: Float[Array, " n"]
) -> Float[Array, "3 draws"]:
    shares = _shares(energies, norms)
    ranks = unit_ranks(along[None], np.float32)[0].astype(np.float64)
    rhos = (unit_ranks(quantity, np.float32) @ ranks for quantity in (energies, shares))
    return np.stack([*rhos, _areas(along, shares)])


def _areas(along: Float[Array, " n"], shares: Float[Array, "draws n"]) -> Float[Array, " draws"]:
    """Return how often one of the tenth with the largest shares lies further along than another token."""
    n = len(along)
    count = int(OVERLAPPING * n)
    overlapping = np.zeros(shares.shape, bool)
    np.put_along_axis(overlapping, np.argpartition(shares, n - count, axis=1)[:, n - count :], True, axis=1)
    return areas_under_curve(np.broadcast_to(along, shares.shape), overlapping)
