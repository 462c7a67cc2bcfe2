import numpy as np

DRAWS = 100_000


def beyond_spread(count: int, seed: int = 0) -> float:
    """Return how often one more normal draw lies farther from the first of `count` than these lie apart.

    One half for two, by symmetry; it falls slowly: what a few draws spread is no bound on the next one. From
    `DRAWS` draws, so to within about 0.003.

    Raises ValueError: fewer than two draws have no spread.
    """
    if count < 2:
        raise ValueError("fewer than two draws have no spread")
    drawn = np.random.default_rng(seed).standard_normal((DRAWS, count + 1))
    known, other = drawn[:, :count], drawn[:, count]
    return float(np.mean(np.abs(other - known[:, 0]) > np.ptp(known, axis=1)))
