import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.maths.blocks import spread_ids
from generators.maths.ranks import areas_under_curve, unit_ranks
from generators.maths.rotations import frames
from generators.maths.spectra import right_singular_vectors, subspace_size

COMPARED = 5000  # tokens, spread over the ids, used for turned positions
TURNS = 100
OVERLAPPING = 0.1  # share of tokens with the largest share of energy in P's directions
RANGE = (0.005, 0.5, 0.995)  # quantiles over turned positions (two-sided)


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
    ids = spread_ids(len(E), COMPARED)
    rows = E[ids]
    turned_frames = frames(E.shape[1], k, TURNS, np.random.default_rng(seed))
    energies = np.array([_energies(rows, frame) for frame in turned_frames])
    turned = np.quantile(_numbers(along[ids], energies, norms[ids]), RANGE, axis=1).T
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
    count = max(1, int(OVERLAPPING * n))
    overlapping = np.zeros(shares.shape, bool)
    np.put_along_axis(overlapping, np.argpartition(shares, n - count, axis=1)[:, n - count :], True, axis=1)
    return areas_under_curve(np.broadcast_to(along, shares.shape), overlapping)
