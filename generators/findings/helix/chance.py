"""What chance gives for everything that is claimed of the positions, as it is stored.

Which null answers which doubt is said in `maths/curve_chance.py`. Where it matters how far a curve wanders, for the
variance in three components and for norms, there is one more: smoothed noise that forgets as slowly as P. Neighbours
in a random walk or in P tell little of that. A value counts as beyond chance where it is beyond each null.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.helix.trained import Trained, trained
from generators.findings.measured import StoredChance
from generators.findings.nulls import DRAWS, drawn, stored
from generators.maths import curve, surrogates, turning
from generators.maths.curve_chance import CurveNulls, Null, steps_of_others
from generators.maths.curve_statistics import TOP_ENERGY, Name

SEED = 20230714
FEWER_DRAWS = 100  # of Gaussian rows, which hardly differ
LONG = 16_384  # positions; longer curves take more time, so fewer are drawn
FEWEST = 99  # draws needed for a 99th percentile
HALF = 0.5  # correlation at the distance that is a curve's memory
IN_WORDS: dict[Null, str] = {
    "smooth": "featureless curves as smooth as P",
    "own channels": "featureless curves as smooth as P in channels as loud as its own",
    "gaussian": "Gaussian rows",
    "other times": "curves that begin P's waves at other times",
    "other order": "reorderings of P's rows",
    "other positions": "other positions",
}
LASTING, IN_WORDS_LASTING = "own memory", "featureless curves as slow to forget as P in channels as loud as its own"
ByNull = dict[str, StoredChance]  # null -> its distribution; empty where P is too short for the number


class HelixChances(TypedDict):
    explained_variance_3d: ByNull
    winding: ByNull
    median_gain: ByNull
    fraying: ByNull
    first_position_distance: ByNull
    norm_cv: ByNull
    energy_top30: ByNull


class ReferenceNulls(TypedDict):
    """What smooth curves give for the energy, which they don't judge (median)."""

    energy_top30_smooth: float


class Smoothness(TypedDict):
    """How smooth P is where no outlier position interrupts it.

    `lag_one` is the correlation of neighbours in the leading components, `width` the standard deviation, in
    positions, of the Gaussian that makes noise as smooth (the median of those used); after `memory` positions the
    correlation has fallen to a half.
    """

    lag_one: float
    width: float
    memory: int


class HelixDraws(TypedDict):
    smoothness: Smoothness
    chance: HelixChances
    beside: ReferenceNulls
    trained: Trained | None


def draw(P: Float[Array, "n d"]) -> HelixDraws:
    nulls, fewer = (CurveNulls(P, _draws(most, len(P)), SEED) for most in (DRAWS, FEWER_DRAWS))
    outliers, _ = curve.outlier_positions(P)
    run = P[curve.longest_run(len(P), outliers)]
    memory = half_life(curve.principal_scores(run, turning.COMPONENTS).values)
    lasting = max(float(np.median(nulls.own_widths)), min(width_of(memory), surrogates.WIDEST * len(run)))

    return {
        "smoothness": {"lag_one": nulls.lag_one, "width": float(np.median(nulls.like_widths)), "memory": memory},
        "chance": {
            "explained_variance_3d": {
                **_by_null(nulls, "explained_variance_3d"),
                LASTING: drawn(IN_WORDS_LASTING, wandering(P, run, lasting)),
            },
            "winding": _by_null(nulls, "winding"),
            "median_gain": _by_null(nulls, "median_gain"),
            "fraying": _by_null(nulls, "fraying"),
            "first_position_distance": {"other positions": drawn(IN_WORDS["other positions"], others_of(P))},
            "norm_cv": {
                LASTING: drawn(
                    IN_WORDS_LASTING, norm_cvs(P[curve.late_positions(len(P), outliers)], lasting), "at most"
                )
            },
            "energy_top30": _by_null(fewer, "energy_top30"),
        },
        "beside": {"energy_top30_smooth": _energy_of_smooth(P.shape, float(np.median(nulls.like_widths)))},
        "trained": trained(P, float(np.median(nulls.own_widths))),
    }


def _by_null(nulls: CurveNulls, name: Name) -> ByNull:
    return {null: stored(IN_WORDS[null], found) for null, found in nulls.chances(name).items()}


def _draws(most: int, n: int) -> int:
    return most if n <= LONG else min(most, FEWEST)


def half_life(scores: Float[Array, "rows c"]) -> int:
    """Return after how many rows the correlation of scores, weighed by their energy, has fallen to a half.

    The number of rows where it never does.
    """
    n = len(scores)
    power = np.abs(np.fft.rfft(scores, 2 * n, axis=0)) ** 2
    products = np.fft.irfft(power, 2 * n, axis=0)[:n].sum(axis=1) / np.arange(n, 0, -1)
    fallen = np.flatnonzero(products < HALF * products[0])
    return int(fallen[0]) if len(fallen) else n


def width_of(memory: int) -> float:
    """Return the width of the Gaussian that gives smoothed noise this memory: exp(-k^2 / 4 s^2) = 1/2."""
    return float(memory / np.sqrt(-4 * np.log(HALF)))


def others_of(P: Float[Array, "n d"]) -> Float[Array, " draws"]:
    """Return how far other positions are from the next; resampled if there are too few for a percentile."""
    others = steps_of_others(P)
    return others if len(others) >= FEWER_DRAWS else np.random.default_rng([SEED, 3]).choice(others, DRAWS)


def wandering(P: Float[Array, "n d"], run: Float[Array, "rows d"], width: float) -> Float[Array, " draws"]:
    """Return the variance in three components of smoothed noise in channels with the spreads of a run of P."""
    rng, spreads = np.random.default_rng([SEED, 4]), surrogates.channel_spreads(run)
    curves = (surrogates.smooth_curve(len(P), width, rng, spreads) for _ in range(_draws(DRAWS, len(P))))
    return np.array([curve.explained_variance(rows[1:]) or 0.0 for rows in curves])


def norm_cvs(rows: Float[Array, "rows d"], width: float) -> Float[Array, " draws"]:
    """Return std/mean of the norms of smoothed noise with the mean and spread of every channel of rows."""
    rng = np.random.default_rng([SEED, 1])
    curves = surrogates.with_channels_of(rows, width, rng, _draws(DRAWS, len(rows)))
    return np.array([curve.coefficient_of_variation(np.linalg.norm(each, axis=1)) for each in curves])


def _energy_of_smooth(shape: tuple[int, ...], width: float) -> float:
    (n, d), rng = shape, np.random.default_rng([SEED, 2])
    shares = [
        curve.energy_share(surrogates.smooth_curve(n, width, rng, np.ones(d)), TOP_ENERGY)
        for _ in range(_draws(FEWER_DRAWS // 5, n))
    ]
    return float(np.median([share or 0.0 for share in shares]))
