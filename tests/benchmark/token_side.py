"""The token side against the plain way: spectrum, best match, neighbours; and beside the bare arithmetic."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from generators.findings.outliers.clump import crowding, find_clump
from generators.maths.neighbours import best_match, nearest_distance, neighbours_within
from generators.maths.spectra import gram
from tests.benchmark.made_up import GPT2_SHAPE, ROWS, realistic_embedding
from tests.benchmark.timing import peak_of, processor_seconds_of, ratio

SPREAD = 1024  # tokens whose nearest neighbour is sought
SCREENED = 16  # coordinates by which every pair is looked at where bounds tell the rest
TILE = 2048
Array = np.ndarray


def plain_spectrum(E: Array) -> tuple[Array, Array]:
    return np.linalg.svd(E, full_matrices=False)[1:]


def plain_best(E: Array) -> Array:
    return np.concatenate([(rows @ E.T).argmax(axis=1) for rows in _rows_of(E)])


def plain_nearest(E: Array, ids: Array) -> Array:
    squares = np.square(E).sum(axis=1)
    distances = squares[ids, None] + squares - 2 * (E[ids] @ E.T)
    distances[np.arange(len(ids)), ids] = np.inf
    return np.sqrt(distances.min(axis=1))


def plain_neighbours(E: Array, radius: float) -> Array:
    squares = np.square(E).sum(axis=1)
    counts = [
        (np.square(rows).sum(axis=1)[:, None] + squares - 2 * (rows @ E.T) <= radius**2).sum(axis=1)
        for rows in _rows_of(E)
    ]
    return np.concatenate(counts) - 1


def _rows_of(E: Array) -> list[Array]:
    return [E[begin : begin + ROWS] for begin in range(0, len(E), ROWS)]


def our_spectrum(E: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(gram(E))
    return np.sqrt(np.clip(values[::-1], 0, None)), vectors[:, ::-1].T


def compare_spectra(E: Array, plain: Any, ours: Any) -> str:
    np.testing.assert_allclose(ours[0], plain[0], rtol=1e-4)
    cosines = np.abs(np.sum(plain[1][:8] * ours[1][:8], axis=1))
    assert cosines.min() > 0.999, cosines
    return f"singular values agree to {np.abs(ours[0] / plain[0] - 1).max():.0e}"


def compare_best(E: Array, plain: Array, ours: Array) -> str:
    """Check that ours is the best by float64 products wherever the two differ."""
    differ = np.flatnonzero(plain != ours)
    for u in differ:
        products = E.astype(np.float64) @ E[u].astype(np.float64)
        assert products[ours[u]] >= products.max() * (1 - 1e-12), u
    return f"identical but for {len(differ)} ties of float32, where ours is the larger in float64"


def compare_nearest(E: Array, plain: Array, ours: Array) -> str:
    np.testing.assert_allclose(plain, ours, rtol=1e-2)
    return f"distances agree to {np.abs(plain / ours - 1).max():.0e}"


def compare_neighbours(E: Array, plain: Array, ours: Array, radius: float) -> str:
    """Check that ours is the count by float64 distances wherever the two differ."""
    differ = np.flatnonzero(plain != ours)
    for u in differ:
        exact = sum(
            int((np.square(rows.astype(np.float64) - E[u]).sum(axis=1) <= radius**2).sum()) for rows in _rows_of(E)
        )
        assert ours[u] == exact - 1, u
    return f"identical but for {len(differ)} tokens with another at the radius, where ours is right in float64"


@dataclass(frozen=True)
class Search:
    """One thing to be computed, the plain way and ours, and how the answers are compared."""

    name: str
    plain: Callable[[], Any]
    ours: Callable[[], Any]
    compare: Callable[[Any, Any], str]
    of_neighbours: bool = True


def searches_in(E: Array) -> list[Search]:
    """Return what is sought among tokens: all that findings seek there."""
    spread = np.unique(np.linspace(0, len(E) - 1, min(SPREAD, len(E))).astype(np.int64))
    radius = float(np.median(nearest_distance(E, spread))) / 2
    return [
        Search(
            "spectrum",
            lambda: plain_spectrum(E),
            lambda: our_spectrum(E),
            lambda p, o: compare_spectra(E, p, o),
            of_neighbours=False,
        ),
        Search("best match", lambda: plain_best(E), lambda: best_match(E), lambda p, o: compare_best(E, p, o)),
        Search(
            f"nearest neighbours of {len(spread)}",
            lambda: plain_nearest(E, spread),
            lambda: nearest_distance(E, spread),
            lambda p, o: compare_nearest(E, p, o),
        ),
        Search(
            "neighbours within a radius",
            lambda: plain_neighbours(E, radius),
            lambda: neighbours_within(E, radius),
            lambda p, o: compare_neighbours(E, p, o, radius),
        ),
    ]


def token_side(shape: tuple[int, int] = GPT2_SHAPE) -> dict[str, Any]:
    """Compare the token side with the plain way on an embedding of this shape, GPT-2's unless another is asked for.

    Memory is E and what is allocated beside it, in sizes of E.
    """
    E, unused = realistic_embedding(*shape)
    rows, of_neighbours = [], 0.0
    for search in searches_in(E):
        ours, answer = processor_seconds_of(search.ours)
        plain, expected = processor_seconds_of(search.plain)
        of_neighbours += ours * search.of_neighbours
        rows.append(
            {
                "name": search.name,
                "plain": plain,
                "ours": ours,
                "times_faster": ratio(plain, ours),
                "memory": 1 + peak_of(search.ours) / E.nbytes,
                "agrees": search.compare(expected, answer),
            }
        )
    found = find_clump(E, crowding(E))
    assert found is not None and np.array_equal(np.sort(found.members), unused), "the clump is not the planted one"
    plain, ours = (sum(row[way] for row in rows) for way in ("plain", "ours"))
    least = floor(E)
    return {
        "tokens": len(E),
        "d_model": E.shape[1],
        "rows": rows,
        "times_faster": ratio(plain, ours),
        "memory": max(row["memory"] for row in rows),
        "floor": least,
        "neighbours_over_floor": ratio(of_neighbours, least["product"] + least["pairs"]),
        "neighbours_over_looks": ratio(of_neighbours, least["product"] + least["looks"]),
        "spectrum_over_floor": ratio(rows[0]["ours"], least["product"]),
    }


def floor(E: Array) -> dict[str, float]:
    """Time the arithmetic beside which searches are measured: E^T E, and every pair once.

    `pairs` is the scalar product of every pair, once for all searches together, without seeking anything among them;
    `looks` only looks at every pair by a few coordinates, once for each of the two searches that ask about all.
    """
    narrow = np.ascontiguousarray(E[:, : SCREENED + 3])

    def pairs(rows: Array) -> None:
        starts = range(0, len(rows), TILE)
        for a in starts:
            for b in range(a, len(rows), TILE):
                (rows[b : b + TILE] @ rows[a : a + TILE].T).max(axis=1)

    product, all_of_it, looking = (
        processor_seconds_of(work)[0] for work in (lambda: E.T @ E, lambda: pairs(E), lambda: pairs(narrow))
    )
    return {"product": product, "pairs": all_of_it, "looks": 2 * looking}
