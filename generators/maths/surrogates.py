"""Curves without a feature: as smooth as a given one, or a random walk, or noise.

What such a curve shows, any curve of its kind shows. Surrogates of a time series that keep its autocorrelation and
nothing else: Theiler et al., "Testing for nonlinearity in time series", Physica D (1992).
"""

from collections.abc import Iterator

import numpy as np
import scipy.fft
from jaxtyping import Float
from numpy import ndarray as Array
from scipy.signal import lfilter

from generators.maths.curve import principal_scores, smaller_gram
from generators.maths.turning import COMPONENTS

CHANNELS = 64
WIDEST = 0.5  # of the number of rows: from there on all smooth curves are alike, an arc
NARROWEST = 0.25  # rows: neighbours correlate by less than 2 %
WIDTHS_TRIED = 16
CURVES_TRIED = 4  # for each width
MEMORY = 8.0  # widths beyond which smoothed noise has forgotten where it was
SMALLEST_AMPLITUDE = 1e-8  # of a Fourier coefficient, against the largest
ROUNDING = 1e-15
LEFT_OUT = 1e-3  # share of variance in channels so quiet that they count as constant


def lag_one(scores: Float[Array, "rows c"]) -> float:
    """Return the correlation of neighbouring rows: the mean over components, weighed by their energy."""
    x, y = scores[:-1] - scores[:-1].mean(axis=0), scores[1:] - scores[1:].mean(axis=0)
    spreads = np.sqrt(np.sum(x**2, axis=0) * np.sum(y**2, axis=0))
    each = np.divide(np.sum(x * y, axis=0), spreads, out=np.zeros_like(spreads), where=spreads > 0)
    energies = np.sum(scores**2, axis=0)
    return float(each @ energies / energies.sum()) if energies.any() else 0.0


def width(correlation: float, n: int) -> float:
    """Return the standard deviation, in rows, of the Gaussian by which white noise gets this lag-1 correlation.

    0 where neighbours do not go together, n / 2 at most.
    """
    if correlation <= 0:
        return 0.0
    widest = WIDEST * n
    least = np.exp(-1 / (4 * widest**2))
    return widest if correlation >= least else float(np.sqrt(-1 / (4 * np.log(correlation))))


def matched_widths(
    correlation: float, n: int, draws: int, rng: np.random.Generator, channels: int = CHANNELS
) -> Float[Array, " draws"]:
    """Return widths at which smoothed noise has this lag-1 correlation in its own leading components.

    `width` holds for endless noise with all its components. Seen through a window of n rows, noise that hardly turns
    in it looks rougher (its mean is gone); its leading components, of which a curve's correlation is taken, look
    smoother than all of it. How exactly one curve tells its width is a matter of luck, too: the widths spread as
    those do that noise of one and the same width would be given.
    """
    widths = np.geomspace(NARROWEST, max(WIDEST * n, 2 * NARROWEST), WIDTHS_TRIED)
    seen = [np.mean([_lag_one_of_noise(n, each, rng, channels) for _ in range(CURVES_TRIED)]) for each in widths]
    falling = np.minimum.accumulate(_log_roughness(np.array(seen)))

    def width_at(correlations: Float[Array, " m"]) -> Float[Array, " m"]:
        return np.exp(np.interp(-_log_roughness(correlations), -falling, np.log(widths)))

    typical = float(width_at(np.array([correlation]))[0])
    return width_at(np.array([_lag_one_of_noise(n, typical, rng, channels) for _ in range(draws)]))


def _log_roughness(correlations: Float[Array, " m"]) -> Float[Array, " m"]:
    """Return log(1 - r), which falls in proportion to the logarithm of the width."""
    return np.log(np.clip(1 - correlations, ROUNDING, None))


def _lag_one_of_noise(n: int, smoothing: float, rng: np.random.Generator, channels: int) -> float:
    return lag_one(principal_scores(smooth_noise(n, smoothing, rng, channels), COMPONENTS).values)


def smooth_noise(
    n: int, smoothing: float, rng: np.random.Generator, channels: int = CHANNELS
) -> Float[Array, "n channels"]:
    """Return white noise smoothed along its rows by a Gaussian, with unit variance and no ends of its own.

    Rows k apart correlate by exp(-k^2 / 4 s^2) for a Gaussian of standard deviation s = `smoothing`, exactly.
    """
    if smoothing <= 0:
        return rng.standard_normal((n, channels))
    length = scipy.fft.next_fast_len(int(np.ceil(n + MEMORY * smoothing)) + 1, real=True)
    amplitudes = _amplitudes(length, smoothing)
    noise = rng.standard_normal((2, channels, len(amplitudes)))
    coefficients = (noise[0] + 1j * noise[1]) * amplitudes
    return scipy.fft.irfft(coefficients, length, axis=1)[:, :n].T


def _amplitudes(length: int, smoothing: float) -> Float[Array, " frequencies"]:
    """Return the size of each Fourier coefficient of smoothed noise, up to the last that matters."""
    lag = np.arange(length)
    lag = np.minimum(lag, length - lag)
    power = np.clip(scipy.fft.rfft(np.exp(-(lag**2) / (4 * smoothing**2))).real, 0, None)
    amplitudes = np.sqrt(power * length / 2)
    amplitudes[0] *= np.sqrt(2)  # the constant and, for an even length, the fastest wave have one real coefficient
    if length % 2 == 0:
        amplitudes[-1] *= np.sqrt(2)
    matters = np.flatnonzero(amplitudes > SMALLEST_AMPLITUDE * amplitudes.max())
    return amplitudes[: matters[-1] + 1]


def autoregressive(
    n: int, correlation: float, rng: np.random.Generator, channels: int = CHANNELS
) -> Float[Array, "n channels"]:
    """Return AR(1) noise of unit variance: every row is `correlation` times the last plus news."""
    news = rng.standard_normal((channels, n))
    news[:, 1:] *= np.sqrt(1 - correlation**2)
    return lfilter([1.0], [1.0, -correlation], news, axis=1).T


def random_walk(n: int, rng: np.random.Generator, channels: int = CHANNELS) -> Float[Array, "n channels"]:
    """Return a walk of independent Gaussian steps."""
    return np.cumsum(rng.standard_normal((channels, n)), axis=1).T


def with_channels_of(
    rows: Float[Array, "n d"], smoothing: float, rng: np.random.Generator, draws: int
) -> Iterator[Float[Array, "n c"]]:
    """Yield smoothed noise with the mean and the spread that every channel of `rows` has: for the length of rows.

    Channels that together hold a thousandth of the variance stay at their mean, in one column.
    """
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    order = np.argsort(spread)[::-1]
    held = np.cumsum(spread[order] ** 2)
    loud = order[: int(np.searchsorted(held, (1 - LEFT_OUT) * held[-1])) + 1]
    quiet = np.delete(np.arange(len(mean)), loud)
    still = np.sqrt(np.sum(mean[quiet] ** 2) + np.sum(spread[quiet] ** 2))
    for _ in range(draws):
        moving = mean[loud] + spread[loud] * smooth_noise(len(rows), smoothing, rng, len(loud))
        yield np.column_stack([moving, np.full(len(rows), still)])


def with_components_of(
    rows: Float[Array, "n d"], smoothing: float, rng: np.random.Generator, draws: int
) -> Iterator[Float[Array, "n channels"]]:
    """Yield smoothed noise that varies in 64 directions as much as `rows` do in their first 64 components."""
    energies = np.linalg.eigvalsh(smaller_gram(rows - rows.mean(axis=0)))[::-1][:CHANNELS]
    spread = np.sqrt(np.clip(energies, 0, None) / len(rows))
    for _ in range(draws):
        yield spread * smooth_noise(len(rows), smoothing, rng, len(spread))


def permuted_scores(
    scores: Float[Array, "n c"], rng: np.random.Generator, draws: int
) -> Iterator[Float[Array, "n c"]]:
    """Yield the rows with every column permuted by itself: each keeps its values, no two their relation."""
    for _ in range(draws):
        yield rng.permuted(scores, axis=0)
