"""The clump: the densest cluster of tokens in embedding space, found without knowing what they are."""

import hashlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

from generators.findings.measured import StoredChance
from generators.findings.nulls import drawn
from generators.findings.sizes import asked_tokens
from generators.maths.blocks import norms
from generators.maths.neighbours import nearest_distance, neighbours_within
from generators.maths.spectra import gram

SPREAD = 1024  # tokens, spread over the vocabulary, used to find the typical nearest-neighbor distance
CLOSE = 0.5  # share of the typical distance: crowding distance, and largest radius of a clump
CROWD = 9  # close tokens needed for a token to count as crowded
FEWEST_MEMBERS = CROWD + 1
RADIUS = 1.5  # multiple of the members' median distance from their center
FLOOR = 0.01  # share of the typical distance: rows that 8-bit numbers store alike can be as far apart
ISOLATION = 2  # largest growth in tokens at twice the radius of an isolated ball
SEEDS = 8  # crowded tokens tried as starting points
STEPS = 50  # growth steps
BLOCK = 1024
EPS32 = float(np.finfo(np.float32).eps)

TURNS = 100  # draws, each with a neighbor search among hundreds of tokens
SAMPLE = 512  # tokens per draw; "close" depends on their own distances, sizes on their number
SPREAD_OF_LENGTHS = 4096  # tokens, over all ids, from which spread and lengths are taken
SEED = 20211240


@dataclass(frozen=True)
class Crowding:
    """How close tokens lie: the distances of some, spread over all, to their nearest, and each one's others close by.

    `typical` is the median of these distances; close by means within half of that. Of a very large vocabulary some
    tokens have their others counted (`asked_tokens`); the rest have 0.
    """

    nearest: Float[Array, " n"]
    others: Int[Array, " V"]
    typical: float

    @property
    def crowded(self) -> Bool[Array, " V"]:
        return self.others >= CROWD


@dataclass(frozen=True)
class Clump:
    """A ball of at least ten tokens, isolated: in twice its radius there are at most twice as many.

    `members` are in the order of their `distances` from the centre.
    """

    members: Int[Array, " n"]
    distances: Float[Array, " n"]
    centre: Float[Array, " d"]
    radius: float
    within_twice_the_radius: int


_last: dict[bytes, tuple[Crowding, Clump | None]] = {}  # of one matrix, by its digest


def crowd_and_clump(E: Float[Array, "V d"]) -> tuple[Crowding, Clump | None]:
    """Return how close tokens lie and their clump; kept of the last matrix, since three findings ask for it."""
    name = hashlib.sha256(np.ascontiguousarray(E).data).digest()
    if name not in _last:
        found = crowding(E)
        _last.clear()
        _last[name] = found, find_clump(E, found)
    return _last[name]


def crowding(E: Float[Array, "V d"]) -> Crowding:
    nearest = nearest_distance(E, spread(len(E), SPREAD))
    typical = float(np.median(nearest))
    asked, others = asked_tokens(E), np.zeros(len(E), np.int64)
    # Tokens that aren't asked can't start a clump, but may be in one.
    others[... if asked is None else asked] = neighbours_within(E, CLOSE * typical, asked)
    return Crowding(nearest, others, typical)


def spread(count: int, most: int) -> Int[Array, " n"]:
    """Return at most so many of the places 0..count-1, evenly spread over them."""
    return np.unique(np.linspace(0, count - 1, most).astype(np.int64))


def find_clump(E: Float[Array, "V d"], found: Crowding) -> Clump | None:
    """Return the largest isolated ball that grows from crowded tokens, the most crowded first; None without any."""
    if found.typical == 0:
        return None  # most tokens share their embedding with another, so nothing is close in comparison
    squares, reach = norms(E) ** 2, CLOSE * found.typical
    seeds = found.crowded.copy()
    largest: Clump | None = None
    for _ in range(SEEDS):
        others = np.where(seeds, found.others, -1)
        seed = int(np.argmax(others))
        if others[seed] < (len(largest.members) / 2 if largest else 0):
            break
        start = np.sort(_within(E, squares, E[seed].astype(np.float64), reach)[0])
        ball = _grown(E, squares, start, FLOOR * found.typical, reach)
        seeds[start] = False
        if ball is not None:
            ball = _widened(E, squares, ball, reach)
            seeds[ball.members] = False
            isolated = ball.within_twice_the_radius <= ISOLATION * len(ball.members)
            if isolated and (largest is None or len(ball.members) > len(largest.members)):
                largest = ball
    return largest


def _grown(
    E: Float[Array, "V d"], squares: Float[Array, " V"], members: Int[Array, " n"], floor: float, reach: float
) -> Clump | None:
    """Move a ball to the mean of its members, with a radius that follows their spread, until it stays.

    Rows that are equal but for rounding pull the median down to 0: without a floor, few of them would be left.
    """
    ball = None
    for _ in range(STEPS):
        centre = _mean(E, members)
        wide = RADIUS * float(np.median(_distances(E, members, centre)))
        radius = min(max(wide, floor), reach)
        near, distances = _within(E, squares, centre, ISOLATION * radius)
        inside = int(np.searchsorted(distances, radius, side="right"))
        ball = Clump(near[:inside], distances[:inside], centre, radius, len(near))
        if inside < FEWEST_MEMBERS:
            return None
        before, members = members, np.sort(ball.members)
        if np.array_equal(before, members):
            break
    return ball


def _widened(E: Float[Array, "V d"], squares: Float[Array, " V"], ball: Clump, reach: float) -> Clump:
    """Return the ball at that of its doubled radii, up to `reach`, at which it is isolated best.

    A radius that follows the median leaves out the outer members of a clump that is dense in the middle, however
    empty its surroundings are. Isolated best is where doubling the radius adds the smallest share; of balls that are
    isolated as well, the larger one.
    """
    near, distances = _within(E, squares, ball.centre, ISOLATION * reach)
    best, radius = ball, ISOLATION * ball.radius
    while radius <= reach:
        inside, twice = np.searchsorted(distances, (radius, ISOLATION * radius), side="right").tolist()
        best_share = best.within_twice_the_radius / len(best.members)
        if inside > len(best.members) and twice / inside <= best_share:
            best = Clump(near[:inside], distances[:inside], ball.centre, radius, twice)
        radius *= ISOLATION
    return best


def _within(
    E: Float[Array, "V d"], squares: Float[Array, " V"], centre: Float[Array, " d"], radius: float
) -> tuple[Int[Array, " n"], Float[Array, " n"]]:
    """Return the rows within a radius and their distances, nearest first; rounding excludes none."""
    length = float(centre @ centre)
    approximate = squares - 2 * (E @ centre.astype(E.dtype)) + length
    rounding = (len(centre) + 16) * EPS32 * (float(squares.max()) + length)
    near = np.flatnonzero(approximate <= radius**2 + rounding)
    distances = _distances(E, near, centre)
    order = np.argsort(distances, kind="stable")
    order = order[distances[order] <= radius]
    return near[order], distances[order]


def _mean(E: Float[Array, "V d"], ids: Int[Array, " n"]) -> Float[Array, " d"]:
    return sum(E[part].sum(axis=0, dtype=np.float64) for part in _parts(ids)) / len(ids)


def _parts(ids: Int[Array, " n"]) -> list[Int[Array, " part"]]:
    """Return a few ids at a time: their rows are brought to float64."""
    return np.array_split(ids, len(ids) // BLOCK + 1)


def _distances(E: Float[Array, "V d"], ids: Int[Array, " n"], centre: Float[Array, " d"]) -> Float[Array, " n"]:
    parts = _parts(ids)
    return np.concatenate([np.linalg.norm(E[part] - centre, axis=1) for part in parts])


def scattered_clumps(E: Float[Array, "V d"]) -> StoredChance:
    """Return the sizes of the largest clumps among tokens that know nothing of one another, scaled to V of them.

    Each has the distance from the mean of one of the model's, in a direction drawn from the spread of all. The axes
    of that spread don't matter: distances are the same in any.
    """
    rows = E[spread(len(E), SPREAD_OF_LENGTHS)].astype(np.float64)
    rows -= rows.mean(axis=0)
    lengths = np.linalg.norm(rows, axis=1)
    scales = np.sqrt(np.clip(np.linalg.eigvalsh(gram(rows)), 0, None))
    rng = np.random.default_rng(SEED)
    count, sizes = min(SAMPLE, len(E)), np.zeros(TURNS)
    for draw in range(TURNS):
        wanted = rng.choice(lengths, count)
        directions = rng.standard_normal((count, len(scales))) * scales
        drawn_lengths = np.linalg.norm(directions, axis=1)
        drawn_lengths[drawn_lengths == 0] = 1  # all tokens are equal, and so is what is drawn
        tokens = (directions * (wanted / drawn_lengths)[:, None]).astype(np.float32)
        if (found := find_clump(tokens, crowding(tokens))) is not None:
            sizes[draw] = len(found.members)
    return drawn("tokens of these lengths in random directions", sizes * len(E) / count)
