"""Exact searches over embeddings: best matches by scalar product, near neighbours by distance.

Every pair of tokens is screened, few are computed. In an orthonormal basis, with x' the leading coordinates of a
row and x" what they leave out, x . y <= x' . y' + |x"| |y"|: one product of narrow matrices bounds the scalar
products of a block of pairs. Pairs whose bound doesn't reach what it must reach are certain; the others are computed
in float32, and those within its rounding of a decision in float64. How many coordinates pay is tried on a few
of its rows first; where none do, all pairs are computed. Bounds carry a slack above the rounding of their own
arithmetic, so the answers are exact. Identical rows are searched once. No step copies more of a matrix than blocks
of it and the leading coordinates.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

from generators.maths.blocks import first_identical
from generators.maths.spectra import gram

BLOCK = 2048  # rows and columns of a block of pairs
GROUP = 256  # surviving rows of a block that are computed together
DENSE_GROUP = 1024  # rows of a block that are computed together where all survive
CHUNK = 512  # rows that are widened to float64 at a time
RANKS = (16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256, 320, 384, 512)  # how many coordinates lead
UNIT = 2**15 - 64  # what a coordinate of 1 is stored as, in int16
BASIS_ROWS = 4096  # rows that the basis is fitted to: any orthonormal basis is right, a fitting one is fast
TRIED = 16  # rows of a block that ranks are tried on
SPARSE_COST = 1.5  # what computing a pair that survived costs, relative to one in a dense block
EPS32 = float(np.finfo(np.float32).eps)
EPS64 = float(np.finfo(np.float64).eps)


def best_match(
    E: Float[Array, "V d"], U: Float[Array, "V d"] | None = None, ids: Int[Array, " m"] | None = None
) -> Int[Array, " m"]:
    """Return argmax_v E_u . U_v for every row u, exactly; the lowest id where products are equal.

    Products that differ by less than the rounding of float64 count as equal.

    Args:
        E: the vectors to be matched, without NaN.
        U: what they are matched with; where absent, E itself. Then only longer rows can beat u's own product, and
            half of the pairs are left out.
        ids: the rows to be matched; all where absent.
    """
    if ids is not None and U is None:
        U = E
    queries = _longest_first(E if ids is None else E[ids])
    keys = queries if U is None else _longest_first(U)
    best = _own_products(queries, keys, queries.ids if ids is None else ids[queries.ids])
    first = 0 if U is None else _match_longest(queries, keys, best)
    screen = _screen(queries, keys, unit=True)
    for k in _blocks(len(keys.ids), first):
        for q in _blocks(len(queries.ids), k.start if U is None else 0):
            for rows, columns in screen.survivors(q, k, -best.products[q], np.zeros(k.stop - k.start)):
                _compare(queries, keys, rows, columns, best)
    found = np.empty(len(queries.matrix), np.int64)
    found[queries.ids] = np.where(queries.norms > 0, best.ids, 0)  # all products of a zero row are equal
    return found[queries.representative]


def neighbours_within(E: Float[Array, "V d"], radius: float, ids: Int[Array, " m"] | None = None) -> Int[Array, " V"]:
    """Return for every row how many other rows are at most `radius` away from it, exactly; with `ids`, for these."""
    if ids is not None:
        return _neighbours_of(E, radius, ids)
    rows = _longest_first(E, E.mean(axis=0, dtype=np.float64))
    others = rows.multiplicity - 1
    offsets = _offsets(rows, radius)
    screen = _screen(rows, rows, unit=False)
    for a in _blocks(len(rows.ids)):
        for b in _blocks(len(rows.ids), a.start):
            if rows.norms[a.stop - 1] - rows.norms[b.start] > radius * (1 + EPS32):
                break  # all later rows are too short for this block
            for near, far in screen.survivors(b, a, offsets[b], offsets[a]):
                _count(rows, near, far, radius, others, both=a != b)
    counts = np.empty(len(E), np.int64)
    counts[rows.ids] = others
    return counts[rows.representative]


def _neighbours_of(E: Float[Array, "V d"], radius: float, ids: Int[Array, " m"]) -> Int[Array, " m"]:
    """Return for a few rows how many others are within the radius: every pair is computed."""
    centre = E.mean(axis=0, dtype=np.float64)
    wanted, counts = _narrow(E[ids], centre), np.zeros(len(ids), np.int64)
    lengths = np.einsum("ij,ij->i", wanted, wanted, dtype=np.float64)
    for block in _blocks(len(E)):
        rows = _narrow(E[block], centre)
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        distances = _squared_distances(wanted, lengths, rows, squares)
        margin = _rounding(E.shape[1]) * (lengths + squares.max() + radius**2)
        a, b = np.nonzero(distances <= (radius**2 + margin).astype(np.float32)[:, None])
        others = np.arange(block.start, block.stop)[b]
        near = (_exact_squared_distances(E, ids[a], others) <= radius**2) & (ids[a] != others)
        counts += np.bincount(a[near], minlength=len(ids))
    return counts


def nearest_distance(E: Float[Array, "V d"], ids: Int[Array, " n"]) -> Float[Array, " n"]:
    """Return the distance from each of the given rows to the nearest other row, exactly; infinity without another."""
    centre = E.mean(axis=0, dtype=np.float64)
    wanted = _narrow(E[ids], centre)
    lengths = np.einsum("ij,ij->i", wanted, wanted, dtype=np.float64)
    nearest = np.full(len(ids), np.inf)
    for block in _blocks(len(E)):
        others = np.arange(block.start, block.stop)
        rows = _narrow(E[block], centre)
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        distances = _squared_distances(wanted, lengths, rows, squares)
        distances[ids[:, None] == others] = np.inf
        closest = np.column_stack([np.arange(len(ids)), distances.argmin(axis=1)])
        closest = closest[np.isfinite(distances[*closest.T])]
        a, b = closest.T
        nearest[a] = np.minimum(nearest[a], _exact_squared_distances(E, ids[a], others[b]))
        rounding = _rounding(E.shape[1]) * (lengths + squares.max())
        unresolved = (nearest > 0) & np.isfinite(nearest)  # nothing is nearer than an identical row
        within = np.where(unresolved, nearest + rounding, -1)
        a, b = np.nonzero(distances <= within.astype(np.float32)[:, None])
        np.minimum.at(nearest, a, _exact_squared_distances(E, ids[a], others[b]))
    return np.sqrt(nearest)


# Rows in an order of their own


@dataclass(frozen=True)
class _Rows:
    """The distinct rows of a matrix, longest first, less `centre`; `representative` is each row's first equal."""

    matrix: Float[Array, "V d"]
    centre: Float[Array, " d"]
    ids: Int[Array, " n"]
    norms: Float[Array, " n"]
    multiplicity: Int[Array, " n"]
    representative: Int[Array, " V"]

    @property
    def lengths(self) -> Float[Array, " n"]:
        """Return the norms to divide by: 1 for a row of zeros."""
        return np.where(self.norms > 0, self.norms, 1)

    def wide(self, places: Int[Array, " m"] | slice) -> Float[Array, "m d"]:
        """Return rows by their place in the order, as float64."""
        return self.matrix[self.ids[places]] - self.centre

    def narrow(self, places: Int[Array, " m"] | slice) -> Float[Array, "m d"]:
        """Return rows by their place in the order, as float32."""
        return _narrow(self.matrix[self.ids[places]], self.centre)


def _longest_first(matrix: Float[Array, "V d"], centre: Float[Array, " d"] | None = None) -> _Rows:
    centre = np.zeros(matrix.shape[1]) if centre is None else centre
    squares = np.empty(len(matrix))
    for chunk in _blocks(len(matrix), size=CHUNK):
        rows = matrix[chunk] - centre
        squares[chunk] = np.einsum("ij,ij->i", rows, rows)
    representative = first_identical(matrix)
    ids, multiplicity = np.unique(representative, return_counts=True)
    order = np.argsort(-squares[ids], kind="stable")
    ids = ids[order]
    return _Rows(matrix, centre, ids, np.sqrt(squares[ids]), multiplicity[order], representative)


def _blocks(count: int, first: int = 0, size: int | None = None) -> Iterator[slice]:
    size = size or BLOCK
    for begin in range(first, count, size):
        yield slice(begin, min(begin + size, count))


def _narrow(rows: Float[Array, "m d"], centre: Float[Array, " d"]) -> Float[Array, "m d"]:
    if not centre.any():
        return rows.astype(np.float32, copy=False)
    narrow = np.empty(rows.shape, np.float32)
    for chunk in _blocks(len(rows), size=CHUNK):
        narrow[chunk] = rows[chunk] - centre
    return narrow


def _rounding(terms: int) -> float:
    """Return a generous bound on the relative rounding of a float32 product of so many terms."""
    return (terms + 16) * EPS32


# Screening


@dataclass(frozen=True)
class _Narrow:
    """Rows in the leading coordinates of a basis, and for every rank the norm of what that leaves out.

    Coordinates are those of rows at unit length, times `UNIT`; they count as rows of the given lengths. Rests are
    enlarged so that bounds stay bounds in spite of all rounding: by Cauchy and Schwarz, adding s |x|^2 to the squares
    of two rests adds at least s |x| |y| to their product.
    """

    leading: Int[Array, "n r"]
    rests: Float[Array, "n ranks"]
    lengths: Float[Array, " n"]

    def coordinates(
        self, places: slice, begin: int, end: int, out: Float[Array, "m width"] | None = None
    ) -> Float[Array, "m width"]:
        """Return coordinates `begin` to `end` of rows at their lengths."""
        return np.multiply(self.leading[places, begin:end], self.lengths[places, None] / np.float32(UNIT), out=out)


@dataclass(frozen=True)
class _Screen:
    """Upper bounds on the scalar products of queries with keys.

    Without ranks every pair survives. `same` says that both sides are the same rows.
    """

    queries: _Narrow
    keys: _Narrow
    ranks: tuple[int, ...]
    d: int
    same: bool

    def survivors(
        self, q: slice, k: slice, a: Float[Array, " q"], b: Float[Array, " k"]
    ) -> Iterator[tuple[Int[Array, " rows"], Int[Array, " columns"]]]:
        """Yield places (rows, columns) that hold every pair of a block whose product may exceed -(a + b)."""
        index = self._cheapest(q, k, a, b)
        if index is None:
            for places in _blocks(q.stop, q.start, DENSE_GROUP):
                yield np.arange(places.start, places.stop), np.arange(k.start, k.stop)
            return
        bounds = self._bounds(index, q, k, a, b)
        if self.same and q.start == k.start:
            np.fill_diagonal(bounds, -np.inf)
        surviving = np.flatnonzero(bounds.max(axis=1) > 0)
        for group in _blocks(len(surviving), size=GROUP):
            rows = surviving[group]
            yield q.start + rows, k.start + np.flatnonzero(bounds[rows].max(axis=0) > 0)

    def _bounds(
        self, index: int, q: slice, k: slice, a: Float[Array, " q"], b: Float[Array, " k"]
    ) -> Float[Array, "q k"]:
        """Return bounds of x . y + a + b for all pairs by one product."""
        rank = self.ranks[index]
        sides = []
        for narrow, places in ((self.queries, q), (self.keys, k)):
            side = np.ones((places.stop - places.start, rank + 3), np.float32)
            narrow.coordinates(places, 0, rank, out=side[:, :rank])
            side[:, rank] = narrow.rests[places, index]
            sides.append(side)
        left, right = sides
        left[:, rank + 1], right[:, rank + 2] = a, b
        return left @ right.T

    def _cheapest(self, q: slice, k: slice, a: Float[Array, " q"], b: Float[Array, " k"]) -> int | None:
        """Return which rank takes the least work on a block, by a few of its queries; None if computing all does."""
        cheapest, choice, used = float(self.d), None, 0
        tried = slice(q.start, q.stop, max(1, (q.stop - q.start) // TRIED))
        bounds = np.add.outer(a[:: tried.step].astype(np.float32), b.astype(np.float32))
        for index, rank in enumerate(self.ranks):
            if rank >= cheapest:
                break
            bounds += self.queries.coordinates(tried, used, rank) @ self.keys.coordinates(k, used, rank).T
            rests = np.outer(self.queries.rests[tried, index], self.keys.rests[k, index])
            work = rank + SPARSE_COST * self.d * _share(bounds > -rests)
            if work < cheapest:
                cheapest, choice = work, index
            used = rank
        return choice


def _share(positive: Bool[Array, "q k"]) -> float:
    """Return what share of a block its surviving rows and columns, by groups of rows, hold; from a sample of rows."""
    rows = float(positive.any(axis=1).mean())
    return rows * -np.expm1(-GROUP * float(positive.mean()) / rows) if rows else 0.0


def _screen(queries: _Rows, keys: _Rows, unit: bool) -> _Screen:
    """Return a screen of all pairs of queries, at unit length if asked, and keys."""
    same, d = queries is keys, keys.matrix.shape[1]
    ranks = tuple(rank for rank in RANKS if rank <= d // 2 and len(keys.ids) > BLOCK)
    basis = _basis([queries] if same else [queries, keys], max(ranks, default=0))
    narrow = _narrow_rows(keys, basis, ranks)
    left = narrow if same else _narrow_rows(queries, basis, ranks)
    if unit:
        left = _Narrow(
            left.leading, left.rests / queries.lengths[:, None].astype(np.float32), np.ones_like(left.lengths)
        )
    return _Screen(left, narrow, ranks, d, same)


def _basis(sides: list[_Rows], rank: int) -> Float[Array, "d rank"]:
    """Return orthonormal directions that hold much of the rows' energy, each side weighing the same."""
    from scipy.linalg import eigh

    d = sides[0].matrix.shape[1]
    if not rank:
        return np.zeros((d, 0))
    total = np.zeros((d, d))
    for side in sides:
        places = np.unique(np.linspace(0, len(side.ids) - 1, BASIS_ROWS).astype(np.int64))
        energy = gram(side.narrow(places))
        total += energy / max(float(np.trace(energy)), np.finfo(np.float64).tiny)
    return eigh(total, subset_by_index=(d - rank, d - 1))[1][:, ::-1]


def _narrow_rows(rows: _Rows, basis: Float[Array, "d r"], ranks: tuple[int, ...]) -> _Narrow:
    (d, largest), n = basis.shape, len(rows.ids)
    leading, rests = np.empty((n, largest), np.int16), np.empty((n, len(ranks)), np.float32)
    basis = basis.astype(np.float32)
    slack = np.sqrt(largest) * (3 * _rounding(d) + 2 / UNIT)  # each coordinate is a product of d terms, then rounded
    for chunk in _blocks(n, size=CHUNK):
        coordinates = (rows.narrow(chunk) @ basis) / rows.lengths[chunk, None].astype(np.float32)
        leading[chunk] = np.rint(coordinates * UNIT)
        held = np.cumsum(coordinates**2, axis=1)[:, [rank - 1 for rank in ranks]]
        rests[chunk] = np.sqrt(np.maximum(1 - held, 0) + slack) * rows.norms[chunk, None]
    return _Narrow(leading, rests, rows.norms.astype(np.float32))


# Best matches


@dataclass(frozen=True)
class _Best:
    """The best match so far of every query in its order: a key's id and their product, the query at unit length."""

    ids: Int[Array, " n"]
    products: Float[Array, " n"]

    def improve(
        self, places: Int[Array, " m"], ids: Int[Array, " m"], products: Float[Array, " m"], rounding: float
    ) -> None:
        """Take over better matches, and lower ids where products are equal but for rounding."""
        touched = np.unique(places)
        before = self.products[touched]
        np.maximum.at(self.products, places, products)
        beaten = touched[before < self.products[touched] - rounding]
        self.ids[beaten] = np.iinfo(np.int64).max
        level = products >= self.products[places] - rounding
        np.minimum.at(self.ids, places[level], ids[level])


def _own_products(queries: _Rows, keys: _Rows, ids: Int[Array, " n"]) -> _Best:
    """Return every query matched with its own key; `ids` are those of the queries in their order."""
    if queries is keys:
        return _Best(queries.ids.copy(), queries.norms.copy())
    own = keys.representative[ids]
    products = _exact_products(queries, np.arange(len(own)), keys.matrix, own)
    return _Best(own, products)


def _match_longest(queries: _Rows, keys: _Rows, best: _Best) -> int:
    """Match all queries with the first block of keys, so that the bounds of the others have something to beat."""
    longest = np.arange(min(BLOCK, len(keys.ids)))
    for block in _blocks(len(queries.ids)):
        _compare(queries, keys, np.arange(block.start, block.stop), longest, best)
    return len(longest)


def _compare(queries: _Rows, keys: _Rows, q: Int[Array, " q"], k: Int[Array, " k"], best: _Best) -> None:
    """Compare queries with keys, both by place, and take over what is better."""
    x = queries.narrow(q) / queries.lengths[q, None].astype(np.float32)
    products = x @ keys.narrow(k).T
    d, longest = x.shape[1], float(keys.norms[k].max())
    rounding = _rounding(d) * longest
    promising = np.maximum(best.products[q] - rounding, products.max(axis=1) - 2 * rounding)
    a, b = np.nonzero(products >= promising.astype(np.float32)[:, None])
    exact = _exact_products(queries, q[a], keys.matrix, keys.ids[k[b]])
    best.improve(q[a], keys.ids[k[b]], exact, d * EPS64 * longest)


def _exact_products(
    queries: _Rows, places: Int[Array, " m"], keys: Float[Array, "V d"], ids: Int[Array, " m"]
) -> Float[Array, " m"]:
    """Return the products of queries (by place) at unit length with keys (by id), pair by pair, in float64."""
    products = np.empty(len(places))
    for chunk in _blocks(len(places), size=CHUNK):
        products[chunk] = np.einsum("ij,ij->i", queries.wide(places[chunk]), keys[ids[chunk]].astype(np.float64))
    return products / queries.lengths[places]


# Distances


def _offsets(rows: _Rows, radius: float) -> Float[Array, " n"]:
    """Return what each side adds to x . y so that the sum is negative only for pairs further apart than the radius.

    |x - y| <= radius means x . y - |x|^2/2 - |y|^2/2 + radius^2/2 >= 0; the slack is for rounding in these terms.
    """
    squares = rows.norms**2
    return (radius**2 / 2 - squares) / 2 + _rounding(rows.matrix.shape[1]) * (squares + radius**2)


def _count(
    rows: _Rows, a: Int[Array, " a"], b: Int[Array, " b"], radius: float, others: Int[Array, " n"], both: bool
) -> None:
    """Add the pairs within the radius to the counts of the rows at places `a`, and, if asked, of those at `b`."""
    x, y = rows.narrow(a), rows.narrow(b)
    squares, rounding = (rows.norms[a] ** 2, rows.norms[b] ** 2), _rounding(x.shape[1])
    distances = _squared_distances(x, squares[0], y, squares[1])
    distances[a[:, None] == b] = np.inf
    margin = rounding * (squares[0].max() + squares[1].max() + radius**2)
    within = distances <= radius**2
    i, j = np.nonzero(np.abs(distances - np.float32(radius**2)) <= margin)
    within[i, j] = _exact_squared_distances(rows.matrix, rows.ids[a[i]], rows.ids[b[j]]) <= radius**2
    others[a] += within @ rows.multiplicity[b]
    if both:
        others[b] += rows.multiplicity[a] @ within


def _squared_distances(
    x: Float[Array, "m d"], x_squares: Float[Array, " m"], y: Float[Array, "k d"], y_squares: Float[Array, " k"]
) -> Float[Array, "m k"]:
    """Return |x - y|^2 for all pairs in float32, from squared norms and products."""
    distances = x @ y.T
    distances *= -2
    distances += x_squares.astype(np.float32)[:, None]
    distances += y_squares.astype(np.float32)
    return distances


def _exact_squared_distances(E: Float[Array, "V d"], a: Int[Array, " m"], b: Int[Array, " m"]) -> Float[Array, " m"]:
    """Return |E_a - E_b|^2 pair by pair in float64."""
    distances = np.empty(len(a))
    for chunk in _blocks(len(a), size=CHUNK):
        difference = E[a[chunk]].astype(np.float64) - E[b[chunk]]
        distances[chunk] = np.einsum("ij,ij->i", difference, difference)
    return distances
