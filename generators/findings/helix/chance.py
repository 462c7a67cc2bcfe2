"""What featureless curves show of what is claimed of the positions: which null, how many draws, what they give.

Claims about the curve's shape are set against smoothed noise that is as smooth as P; a random walk and Gaussian rows
stand beside it. Each is drawn in as many channels as P has, 64 at most.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.contract import StoredChance
from generators.findings.nulls import DRAWS, drawn
from generators.maths import curve, surrogates
from generators.maths.curve_statistics import TOP_ENERGY, MeasuredCurve, Name, statistics

SEED = 20230714
DRAWS_BESIDE = 100  # of the curves that stand beside the null that judges
SMOOTH = "curves as smooth as P, without features,"
SMOOTH_COMPONENTS = "curves as smooth as P and spread over as many components"
SMOOTH_CHANNELS = "curves as smooth as P, with its mean and spread in every channel,"
OTHER_STEPS = "the steps between other positions"
GAUSSIAN_ROWS = "Gaussian rows of P's shape"
ON_ALL_ROWS: tuple[Name, ...] = ("explained_variance_3d", "fraying")
ON_THE_RUN: tuple[Name, ...] = ("winding", "median_gain")  # on the longest run of positions without an outlier


class OfShape(TypedDict):
    """What curves of one kind give for every number of a curve's shape; None where P is too short for it."""

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
    """Other curves without a feature, beside those that judge."""

    random_walk: OfShape
    gaussian_rows: OfShape


@dataclass(frozen=True)
class Nulls:
    """All that was drawn for one P."""

    lag_one: float
    smoothing: float  # median width, in positions, of the Gaussian that makes noise as smooth as P
    chance: ByClaim
    featureless: Featureless
    energy_top30_smooth: float  # median of the curves as smooth as P


def draw_nulls(P: Float[Array, "n d"], measured: MeasuredCurve) -> Nulls:
    """Return what chance gives for P; `measured` is P as a curve."""
    rng = np.random.default_rng(SEED)
    n, channels = len(P), min(surrogates.CHANNELS, P.shape[1])
    outliers, _ = curve.outlier_positions(P)
    run = curve.longest_run(n, outliers)
    length = run.stop - run.start
    lag_one = surrogates.lag_one(curve.principal_scores(P[run], 8).values)
    widths = surrogates.matched_widths(lag_one, length, DRAWS, rng, channels)
    late = P[curve.late_positions(n, outliers)]
    smooth = [surrogates.smooth_noise(n, width, rng, channels) for width in widths]
    chance: ByClaim = {
        **_of_shape(SMOOTH, smooth, length),
        "fraying": _fraying(P, widths, rng),
        "first_position_distance": _first_position(P, rng),
        "norm_cv": drawn(SMOOTH_CHANNELS, np.array([*_norm_cvs(late, widths, rng)]), "at most"),
        "energy_top30": drawn(GAUSSIAN_ROWS, gaussian_energy_shares(*P.shape, TOP_ENERGY, DRAWS, rng)),
    }
    walks = (surrogates.random_walk(n, rng, channels) for _ in range(DRAWS_BESIDE))
    noise = (rng.standard_normal((n, channels)) for _ in range(DRAWS_BESIDE))
    top = [curve.energy_share(rows, TOP_ENERGY) or 0.0 for rows in smooth]
    return Nulls(
        lag_one,
        float(np.median(widths)),
        chance,
        {
            "random_walk": _of_shape("random walks", walks, length),
            "gaussian_rows": _of_shape("Gaussian rows", noise, length),
        },
        float(np.median(top)),
    )
