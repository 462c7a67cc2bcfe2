"""What curves without a feature show of everything that is claimed of the positions.

Curves are drawn in as many channels as P has, 64 at most. The one that judges is as smooth as P: neighbours correlate
as they do in P, or, where it matters how far a curve wanders, rows far apart do so too. A random walk and Gaussian
rows stand beside it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.contract import StoredChance
from generators.findings.nulls import DRAWS, drawn
from generators.maths import curve, surrogates, turning
from generators.maths.curve_statistics import TOP_ENERGY, Name, statistics

SEED = 20230714
DRAWS_OF_FRAYING = 1000  # its chance has a long tail, and P may lie in it
DRAWS_BESIDE = 100  # of curves that judge nothing, and of Gaussian rows, which hardly differ
HALF = 0.5  # correlation at the distance that is a curve's memory
OF_THE_RUN: tuple[Name, ...] = ("winding", "median_gain")  # measured on the longest run without an outlier position
OF_ALL_ROWS: tuple[Name, ...] = ("explained_variance_3d", "fraying")
SMOOTH = "featureless curves as smooth as P"
LASTING = "featureless curves as smooth as P and with as long a memory"
LASTING_CHANNELS = "featureless curves as smooth as P, with P's mean and spread in every channel,"
SMOOTH_COMPONENTS = "featureless curves as smooth as P and as spread over components"
OTHER_STEPS = "the steps between other neighbours"
GAUSSIAN_ROWS = "Gaussian rows of P's shape"


class OfShape(TypedDict):
    """What curves of one kind give for the numbers of a curve's shape; None where P is too short for one."""

    explained_variance_3d: StoredChance
    winding: StoredChance
    median_gain: StoredChance | None
    fraying: StoredChance | None


class ByClaim(OfShape):
    """What chance gives for every number that is claimed about."""

    first_position_distance: StoredChance
    norm_cv: StoredChance
    energy_top30: StoredChance


class Featureless(TypedDict):
    """Curves that judge nothing; `smooth_energy_top30` is the median of those as smooth as P."""

    random_walk: OfShape
    gaussian_rows: OfShape
    smooth_energy_top30: float


class Smoothness(TypedDict):
    """How smooth P is on its longest run without an outlier position.

    `lag_one` is the correlation of neighbours in the leading components, `width` the standard deviation, in
    positions, of the Gaussian that makes noise as smooth (median of those drawn); after `memory` positions the
    correlation has fallen to a half.
    """

    lag_one: float
    width: float
    memory: int


@dataclass(frozen=True)
class Nulls:
    """What was drawn for one P."""

    smoothness: Smoothness
    chance: ByClaim
    featureless: Featureless


def draw_nulls(P: Float[Array, "n d"], outliers: Int[Array, " outliers"]) -> Nulls:
    """Return what chance gives for P, of which some positions are outliers."""
    rng = np.random.default_rng(SEED)
    n, channels = len(P), min(surrogates.CHANNELS, P.shape[1])
    run = P[curve.longest_run(n, outliers)]
    leading = curve.principal_scores(run, turning.COMPONENTS).values
    lag_one, memory = surrogates.lag_one(leading), half_life(leading)
    widths = surrogates.matched_widths(lag_one, len(run), DRAWS, rng, channels)
    lasting = np.maximum(widths, min(width_of(memory), surrogates.WIDEST * len(run)))

    def smooth(all_widths: Float[Array, " draws"]) -> Iterator[Float[Array, "n channels"]]:
        return (surrogates.smooth_noise(n, width, rng, channels) for width in all_widths)

    turning_by_chance = _statistics(smooth(widths), (*OF_THE_RUN, "energy_top30"), len(run))
    wandering_by_chance = _statistics(smooth(lasting), ("explained_variance_3d",), len(run))
    walks = (surrogates.random_walk(n, rng, channels) for _ in range(DRAWS_BESIDE))
    noise = (rng.standard_normal((n, channels)) for _ in range(DRAWS_BESIDE))
    chance: ByClaim = {
        "explained_variance_3d": drawn(LASTING, wandering_by_chance["explained_variance_3d"]),
        "winding": drawn(SMOOTH, turning_by_chance["winding"]),
        "median_gain": _where_there(SMOOTH, turning_by_chance.get("median_gain")),
        "fraying": _where_there(SMOOTH_COMPONENTS, _frayings(P, widths, rng)),
        "first_position_distance": drawn(OTHER_STEPS, _other_steps(P, rng)),
        "norm_cv": drawn(
            LASTING_CHANNELS, _norm_cvs(P[curve.late_positions(n, outliers)], float(np.median(lasting)), rng), "at most"
        ),
        "energy_top30": drawn(GAUSSIAN_ROWS, gaussian_energy_shares(*P.shape, TOP_ENERGY, DRAWS_BESIDE, rng)),
    }
    featureless: Featureless = {
        "random_walk": _of_shape("random walks", walks, len(run)),
        "gaussian_rows": _of_shape("Gaussian rows", noise, len(run)),
        "smooth_energy_top30": float(np.median(turning_by_chance["energy_top30"])),
    }
    return Nulls({"lag_one": lag_one, "width": float(np.median(widths)), "memory": memory}, chance, featureless)


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


def gaussian_energy_shares(
    n: int, d: int, count: int, draws: int, rng: np.random.Generator
) -> Float[Array, " draws"]:
    """Return the share of energy in the leading singular directions of Gaussian rows (n, d), for many draws.

    Gaussian rows have the singular values of a bidiagonal matrix of independent chi variables (Dumitriu and Edelman,
    "Matrix models for beta ensembles", 2002), which are found in no time.
    """
    short, long = sorted((n, d))
    diagonal = rng.chisquare(np.arange(long, long - short, -1), (draws, short))
    below = rng.chisquare(np.arange(short - 1, 0, -1), (draws, short - 1))
    squares = diagonal + np.pad(below, ((0, 0), (1, 0)))
    products = np.sqrt(diagonal[:, :-1] * below)
    largest = (short - min(count, short), short - 1)
    leading = [
        scipy.linalg.eigvalsh_tridiagonal(main, beside, select="i", select_range=largest).sum()
        for main, beside in zip(squares, products, strict=True)
    ]
    return np.array(leading) / squares.sum(axis=1)


def _statistics(
    curves: Iterable[Float[Array, "n c"]], names: tuple[Name, ...], run: int
) -> dict[Name, Float[Array, " draws"]]:
    """Return numbers of many curves, by name; those of a run without outliers on as many rows as it has."""
    whole = tuple(name for name in names if name not in OF_THE_RUN)
    of_run = tuple(name for name in names if name in OF_THE_RUN)
    found = defaultdict(list)
    for rows in curves:
        for name, values in (statistics(rows, whole) | statistics(rows[:run], of_run)).items():
            found[name].append(values[0])
    return {name: np.array(values) for name, values in found.items()}


def _of_shape(null: str, curves: Iterable[Float[Array, "n c"]], run: int) -> OfShape:
    found = _statistics(curves, (*OF_ALL_ROWS, *OF_THE_RUN), run)
    return {
        "explained_variance_3d": drawn(null, found["explained_variance_3d"]),
        "winding": drawn(null, found["winding"]),
        "median_gain": _where_there(null, found.get("median_gain")),
        "fraying": _where_there(null, found.get("fraying")),
    }


def _where_there(null: str, values: Float[Array, " draws"] | None) -> StoredChance | None:
    return None if values is None else drawn(null, values)


def _frayings(
    P: Float[Array, "n d"], widths: Float[Array, " draws"], rng: np.random.Generator
) -> Float[Array, " draws"] | None:
    n = len(P)
    if n < curve.FEWEST_FOR_START:
        return None
    scores = curve.principal_scores(P[1:], surrogates.CHANNELS).values
    spread = scores.std(axis=0)
    chosen = rng.choice(widths, DRAWS_OF_FRAYING)
    found = (curve.fraying(spread * surrogates.smooth_noise(n, width, rng, len(spread))) for width in chosen)
    return np.array([0.0 if value is None else value for value in found])


def _other_steps(P: Float[Array, "n d"], rng: np.random.Generator) -> Float[Array, " draws"]:
    """Return how far other positions lie from the next, in median distances to the nearer neighbour."""
    steps = curve.step_lengths(P)[1:]
    median = float(np.median(curve.neighbour_distances(P)))
    drawn_steps = steps if len(steps) >= DRAWS_BESIDE else rng.choice(steps, DRAWS)
    return drawn_steps / median if median else np.zeros(len(drawn_steps))


def _norm_cvs(rows: Float[Array, "rows d"], width: float, rng: np.random.Generator) -> Float[Array, " draws"]:
    drawn_rows = surrogates.with_channels_of(rows, width, rng, DRAWS)
    return np.array([curve.coefficient_of_variation(np.linalg.norm(each, axis=1)) for each in drawn_rows])
