"""Does the frequency channel follow log-frequency in a straight line, and does that explain why its mean isn't zero?

Adam Scherlis supposed that a channel which is zero at the middle of the range of log-frequencies has a mean far from
zero because most tokens are rare.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

GROUPS = 20  # groups of tokens of similar frequency; any curve could pass through their means


class ChannelLine(TypedDict):
    """The frequency channel as a line in log-frequency, over tokens that occur.

    `r2` is the line's share of the channel's variance, `r2_groups` that of the means of 20 groups by frequency.
    `zero_at` is where the line crosses zero, as a share of the range from the lowest to the highest log-frequency;
    `rarer` the share of tokens below the middle of that range, `skewness` of log-frequencies. `mean` is the channel's
    mean in standard deviations, `mean_expected` what it would be if the line were zero in the middle of the range.
    """

    r2: float
    r2_groups: float
    zero_at: float | None
    rarer: float
    skewness: float
    mean: float
    mean_expected: float
    n_tokens: int


def channel_line(values: Float[Array, " n"], log_frequency: Float[Array, " n"]) -> ChannelLine | None:
    """Return how straight a channel follows log-frequency; None where either is the same for all tokens."""
    x, y = log_frequency.astype(np.float64), values.astype(np.float64)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    centered, spread = x - x.mean(), float(y.std())
    slope = float(centered @ y / (centered @ centered))
    middle = float(x.min() + x.max()) / 2
    zero = float(x.mean() - y.mean() / slope) if slope else None
    groups = np.array_split(y[np.argsort(x, kind="stable")], GROUPS)
    between = sum(len(part) * float(part.mean() - y.mean()) ** 2 for part in groups if len(part))
    return {
        "r2": slope**2 * float(centered @ centered) / (len(y) * spread**2),
        "r2_groups": between / (len(y) * spread**2),
        "zero_at": None if zero is None else (zero - float(x.min())) / float(np.ptp(x)),
        "rarer": float(np.mean(x < middle)),
        "skewness": float(np.mean(centered**3) / np.mean(centered**2) ** 1.5),
        "mean": float(y.mean()) / spread,
        "mean_expected": slope * (float(x.mean()) - middle) / spread,
        "n_tokens": len(y),
    }
