import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Vocabulary
from generators.findings.measured import Table, row_of, table_of
from generators.findings.outliers.clump import Clump, spread
from generators.findings.outliers.tokens import OutlierTokens
from generators.findings.token_cells import TokenCells, names, reserved_names
from generators.maths.neighbours import nearest_distance
from generators.maths.spectra import right_singular_vectors, subspace_size

AROUND = 400  # members drawn, and as many of the nearest other tokens
LABELLED = 40  # labeled tokens of each kind


class NamedUnused(TypedDict):
    tokens: int
    in_clump: int


class ClumpMetrics(TypedDict):
    size: int
    radius: float
    named_unused: NamedUnused | None
    members: list[int]


class InPositions(TypedDict):
    """Mean share of a token's energy in P's top k directions: of the clump's members, and of all other tokens."""

    k: int
    chance: float
    members: float
    others: float


class PlacedRow(TokenCells):
    group: str | None
    reserved_name: bool | None
    distance: float
    norm: float


def describe(clump: Clump, vocabulary: Vocabulary | None) -> ClumpMetrics:
    members = np.sort(clump.members).tolist()
    unused = None if vocabulary is None else reserved_names(vocabulary)
    return row_of(
        ClumpMetrics,
        clump,
        size=len(members),
        named_unused=None
        if unused is None
        else NamedUnused(tokens=len(unused), in_clump=len(unused.intersection(members))),
        members=members,
    )


def in_positions(tokens: OutlierTokens, clump: Clump, P: Float[Array, "n d"] | None) -> InPositions | None:
    if P is None or P.shape[1] != tokens.E.shape[1] or len(clump.members) == len(tokens.E):
        return None
    k = subspace_size(*P.shape)
    inside = tokens.E @ right_singular_vectors(P, k).astype(np.float32)
    lengths = np.where(tokens.norms > 0, tokens.norms**2, 1)
    shares = np.einsum("ij,ij->i", inside, inside, dtype=np.float64) / lengths
    others = np.delete(shares, clump.members)
    return {
        "k": k,
        "chance": k / P.shape[1],
        "members": float(shares[clump.members].mean()),
        "others": float(others.mean()),
    }


def nearest_others(tokens: OutlierTokens, clump: Clump) -> Int[Array, " n"]:
    squares = tokens.norms**2 - 2 * tokens.along(clump.centre)
    squares[clump.members] = np.inf
    return np.argsort(squares, kind="stable")[: min(AROUND, len(squares) - len(clump.members))]


def tables(tokens: OutlierTokens, clump: Clump, near: Int[Array, " n"]) -> dict[str, Table]:
    reserved = None if tokens.vocabulary is None else reserved_names(tokens.vocabulary)

    def placed(title: str, ids: Int[Array, " n"], distances: Float[Array, " n"]) -> Table:
        rows = [
            {**tokens.row(i), "reserved_name": None if reserved is None else i in reserved, "distance": distance}
            for i, distance in zip(ids.tolist(), distances.tolist(), strict=True)
        ]
        return table_of(title, PlacedRow, rows)

    near = near[:LABELLED]
    distances = np.linalg.norm(tokens.E[near] - clump.centre, axis=1)
    return {
        "members": placed("Tokens in the clump, those nearest to its centre first", clump.members, clump.distances),
        "surroundings": placed("Tokens nearest to the clump that are not in it", near, distances),
    }


def arrays(tokens: OutlierTokens, clump: Clump, near: Int[Array, " n"]) -> dict[str, Array]:
    shown = clump.members[spread(len(clump.members), AROUND)]
    around = np.concatenate([shown, near])
    return {
        "member_ids": clump.members.astype(np.int32),
        "member_norm": tokens.norms[clump.members],
        "member_nearest": nearest_distance(tokens.E, shown),
        "around_ids": around.astype(np.int32),
        "around_is_member": np.arange(len(around)) < len(shown),
        **names(tokens.vocabulary, clump.members, "member_name"),
        **names(tokens.vocabulary, around, "around_name"),
    }
