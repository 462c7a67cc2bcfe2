"""Featureless random curves: as smooth as a given curve, or random walks, or noise.

They show what any curve of their kind shows. Surrogates that preserve the autocorrelation of a series and nothing
else: Theiler et al., "Testing for nonlinearity in time series: the method of surrogate data", Physica D (1992).
"""

from collections.abc import Iterator

import numpy as np
import scipy.fft
import scipy.linalg
from jaxtyping import Float
from numpy import ndarray as Array

from generators.maths.curve import leading_axes, principal_scores
from generators.maths.spectra import components_for
from generators.maths.turning import COMPONENTS

CHANNELS = 64
ROUGH_CHANNELS = 256  # at most, in which a rough curve is made
AS_THEY_ARE = 4  # one of so many of these keeps its spread; the others share the rest of the variance
LARGEST_RANK = 128  # rank of smoothed noise up to which it is made in more channels than that
WIDEST = 0.5  # share of the number of rows; beyond it every smooth curve is the same arc
NARROWEST = 0.25  # rows: neighbors correlate by less than 2 %
WIDTHS_TRIED = 16
CURVES_TRIED = 4  # curves per width
MEMORY = 8.0  # widths beyond which smoothed noise has forgotten where it was
SMALLEST_AMPLITUDE = 1e-6  # smallest Fourier coefficient relative to the largest; rounding alone gives 1e-8
USED = 0.99  # share of variance in the channels counted as used
LEFT_OUT = 1e-3  # share of variance in channels that count as constant
ROUNDING = 1e-15
EQUAL_SPREADS = np.ones(CHANNELS)


# How smooth a curve is


def lag_one(scores: Float[Array, "rows c"]) -> float:
    """Return the correlation of neighbouring rows: the mean over components, weighed by their energy."""
    x, y = scores[:-1] - scores[:-1].mean(axis=0), scores[1:] - scores[1:].mean(axis=0)
    spreads = np.sqrt(np.sum(x**2, axis=0) * np.sum(y**2, axis=0))
    each = np.divide(np.sum(x * y, axis=0), spreads, out=np.zeros_like(spreads), where=spreads > 0)
    energies = np.sum(scores**2, axis=0)
    return float(each @ energies / energies.sum()) if energies.any() else 0.0


def matched_widths(
    correlation: float,
    n: int,
    draws: int,
    rng: np.random.Generator,
    spreads: Float[Array, " channels"] = EQUAL_SPREADS,
) -> Float[Array, " draws"]:
    """Return widths at which `smooth_curve` has this lag-1 correlation in its own leading components.

    Of endless noise with all its components, the correlation gives the width. In a window of n rows, slow noise looks
    rougher, because its mean is removed, and its leading components look smoother than all of it. So the width is
    calibrated on simulated curves. One curve determines its width only roughly, so the widths returned vary as much
    as estimates from curves of one width would.
    """
    widths = np.geomspace(NARROWEST, max(WIDEST * n, 2 * NARROWEST), WIDTHS_TRIED)
    seen = [np.mean([_seen_correlation(n, each, rng, spreads) for _ in range(CURVES_TRIED)]) for each in widths]
    falling = np.minimum.accumulate(_log_roughness(np.array(seen)))

    def width_at(correlations: Float[Array, " m"]) -> Float[Array, " m"]:
        return np.exp(np.interp(-_log_roughness(correlations), -falling, np.log(widths)))

    typical = float(width_at(np.array([correlation]))[0])
    return width_at(np.array([_seen_correlation(n, typical, rng, spreads) for _ in range(draws)]))


def _log_roughness(correlations: Float[Array, " m"]) -> Float[Array, " m"]:
    """Return log(1 - r), which falls in proportion to the logarithm of the width."""
    return np.log(np.clip(1 - correlations, ROUNDING, None))


def _seen_correlation(
    n: int, smoothing: float, rng: np.random.Generator, spreads: Float[Array, " channels"]
) -> float:
    return lag_one(principal_scores(smooth_curve(n, smoothing, rng, spreads), COMPONENTS).values)


def channel_spreads(rows: Float[Array, "n d"]) -> Float[Array, " strong"]:
    """Return the standard deviations, largest first, of the channels that hold all but 0.1 % of the variance."""
    variances = np.sort(rows.var(axis=0))[::-1]
    return np.sqrt(variances[: components_for(variances, 1 - LEFT_OUT)])


def channels_used(rows: Float[Array, "n d"]) -> int:
    """Return how many channels hold 99 % of the variance, and 64 where they are fewer."""
    return max(CHANNELS, components_for(rows.var(axis=0), USED))


def fewer(spreads: Float[Array, " channels"], most: int) -> Float[Array, " some"]:
    """Return spreads, largest first, of at most `most` channels with the same variance in all.

    The largest stay as they are, so that they hold the share that they held before; the others become equal ones.
    """
    if len(spreads) <= most:
        return spreads
    loud = np.sort(spreads)[::-1][: most // AS_THEY_ARE]
    rest = max(0.0, float(np.sum(spreads**2) - np.sum(loud**2)))
    return np.append(loud, np.full(most - len(loud), np.sqrt(rest / (most - len(loud)))))


# Random curves


def smooth_curve(
    n: int, smoothing: float, rng: np.random.Generator, spreads: Float[Array, " channels"] = EQUAL_SPREADS
) -> Float[Array, "n columns"]:
    """Return a featureless curve: smoothed noise in channels of these standard deviations, in some orthonormal axes.

    With more channels a rotation predicts a smooth curve better, since all its stretches have nearly the same inner
    products. A rough curve doesn't show that, and is made in at most 256 channels, or 64 where they are alike.
    """
    # Smooth noise has few Fourier coefficients, so a curve of many channels lies in a small subspace. The triangular
    # factor of a QR decomposition has the same inner products in fewer columns, and only those matter here.
    amplitudes, length = _spectrum(n, smoothing)
    if 2 * len(amplitudes) > LARGEST_RANK:
        spreads = fewer(spreads, ROUGH_CHANNELS) if np.ptp(spreads) else spreads[:CHANNELS]
    noise = rng.standard_normal((len(spreads), 2 * len(amplitudes))) * spreads[:, None]
    if len(spreads) > noise.shape[1]:  # more channels than it can fill: their inner products in fewer
        noise = scipy.linalg.qr(noise, mode="r", check_finite=False)[0][: noise.shape[1]]
    return _waves(noise, amplitudes, length)[:n]


def smooth_noise(
    n: int, smoothing: float, rng: np.random.Generator, channels: int = CHANNELS
) -> Float[Array, "n channels"]:
    """Return white noise smoothed along its rows by a Gaussian, with unit variance and no ends of its own.

    Rows k apart correlate by exp(-k^2 / 4 s^2) for a Gaussian of standard deviation s = `smoothing`, exactly.
    """
    amplitudes, length = _spectrum(n, smoothing)
    return _waves(rng.standard_normal((channels, 2 * len(amplitudes))), amplitudes, length)[:n]


def _spectrum(n: int, smoothing: float) -> tuple[Float[Array, " frequencies"], int]:
    """Return the size of each Fourier coefficient of smoothed noise, up to the last that matters, and its length.

    The noise is periodic, with a period so long that the last of n rows is far from the first.
    """
    length = int(scipy.fft.next_fast_len(int(np.ceil(n + MEMORY * smoothing)) + 1, real=True))
    lag = np.arange(length) + length * np.arange(-2, 2)[:, None]  # once round the circle and more, so without a kink
    correlations = np.exp(-(lag**2) / (4 * smoothing**2)) if smoothing > 0 else lag == 0
    power = np.clip(scipy.fft.rfft(correlations.sum(axis=0)).real, 0, None)
    amplitudes = np.sqrt(power * length / 2)
    amplitudes[0] *= np.sqrt(2)  # the constant and, for an even length, the fastest wave have one real coefficient
    if length % 2 == 0:
        amplitudes[-1] *= np.sqrt(2)
    matters = np.flatnonzero(amplitudes > SMALLEST_AMPLITUDE * amplitudes.max())
    return amplitudes[: matters[-1] + 1], length


def _waves(
    noise: Float[Array, "channels twice"], amplitudes: Float[Array, " frequencies"], length: int
) -> Float[Array, "length channels"]:
    real, imaginary = np.hsplit(noise, 2)
    return scipy.fft.irfft((real + 1j * imaginary) * amplitudes, length, axis=1).T


def random_walk(n: int, rng: np.random.Generator, channels: int = CHANNELS) -> Float[Array, "n channels"]:
    return np.cumsum(rng.standard_normal((channels, n)), axis=1).T


def gaussian_energy_shares(
    n: int, d: int, count: int, draws: int, rng: np.random.Generator
) -> Float[Array, " draws"]:
    """Return the share of energy that n Gaussian rows of d channels have in their leading singular directions.

    Their singular values are those of a bidiagonal matrix of chi variables (Dumitriu & Edelman, "Matrix models for
    beta ensembles", 2002), so no rows are made.
    """
    few, many = sorted((n, d))
    first = max(0, few - count)
    shares = np.empty(draws)
    for draw in range(draws):
        diagonal = rng.chisquare(np.arange(many, many - few, -1))
        below = rng.chisquare(np.arange(few - 1, 0, -1))
        squares = diagonal + np.append(0.0, below)
        products = np.sqrt(diagonal[:-1] * below)
        leading = scipy.linalg.eigvalsh_tridiagonal(squares, products, select="i", select_range=(first, few - 1))
        shares[draw] = leading.sum() / squares.sum()
    return shares


# Curves that share properties with a given one


def with_channels_of(
    rows: Float[Array, "n d"], smoothing: float, rng: np.random.Generator, draws: int
) -> Iterator[Float[Array, "n c"]]:
    """Yield smoothed noise with the mean and the spread that every channel of `rows` has, for the length of rows.

    Channels that together hold a thousandth of the variance stay at their mean, in one column.
    """
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    order = np.argsort(spread)[::-1]
    strong_channels, weak_channels = np.split(order, [components_for(spread**2, 1 - LEFT_OUT)])
    still = np.sqrt(np.sum(mean[weak_channels] ** 2) + np.sum(spread[weak_channels] ** 2))
    for _ in range(draws):
        moving = mean[strong_channels] + spread[strong_channels] * smooth_noise(
            len(rows), smoothing, rng, len(strong_channels)
        )
        yield np.column_stack([moving, np.full(len(rows), still)])


def at_other_times(
    rows: Float[Array, "n d"], rng: np.random.Generator, draws: int
) -> Iterator[Float[Array, "n channels"]]:
    """Yield curves with the waves of the first 64 components of `rows`, each begun at a random time.

    Every component keeps its power at every frequency; what happened at one end of the curve happens anywhere.
    """
    centred = rows - rows.mean(axis=0)
    waves = scipy.fft.rfft(centred @ leading_axes(centred, CHANNELS), axis=0)
    for _ in range(draws):
        yield scipy.fft.irfft(waves * np.exp(2j * np.pi * rng.random(waves.shape)), len(rows), axis=0)
