import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.findings.measured import StoredChance
from generators.findings.nulls import drawn
from generators.findings.outliers.clump import crowding, find_clump, spread
from generators.maths.spectra import gram

TURNS = 100  # draws, each with a neighbor search among hundreds of tokens
SAMPLE = 512  # tokens per draw; "close" depends on their own distances, sizes on their number
SPREAD = 4096  # tokens, over all ids, from which spread and lengths are taken
SEED = 20211240
SCATTERED = "tokens of these lengths in random directions"


def scattered_clumps(E: Float[Array, "V d"]) -> StoredChance:
    """Return the sizes of the largest clumps among tokens that know nothing of one another, scaled to V of them.

    Each has the distance from the mean of one of the model's, in a direction drawn from the spread of all. The axes
    of that spread don't matter: distances are the same in any.
    """
    rows = E[spread(len(E), SPREAD)].astype(np.float64)
    rows -= rows.mean(axis=0)
    lengths = np.linalg.norm(rows, axis=1)
    scales = np.sqrt(np.clip(np.linalg.eigvalsh(gram(rows)), 0, None))
    rng = np.random.default_rng(SEED)
    count = min(SAMPLE, len(E))
    sizes = [_largest(_scattered(scales, rng.choice(lengths, count), rng)) for _ in range(TURNS)]
    return drawn(SCATTERED, np.array(sizes) * len(E) / count)


def _scattered(
    scales: Float[Array, " d"], lengths: Float[Array, " n"], rng: np.random.Generator
) -> Float[Array, "n d"]:
    directions = rng.standard_normal((len(lengths), len(scales))) * scales
    directions *= (lengths / np.linalg.norm(directions, axis=1))[:, None]
    return directions.astype(np.float32)


def _largest(tokens: Float[Array, "n d"]) -> int:
    found = find_clump(tokens, crowding(tokens))
    return 0 if found is None else len(found.members)
