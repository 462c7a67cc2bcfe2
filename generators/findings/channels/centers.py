import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.maths.ranks import spearman


class Centers(TypedDict):
    """Over channels: the median |mean| over std, the share where |mean| is below std, and rho of |mean| with std.

    Of positions (row 0 left out), and of tokens, None without any. Constant channels are left out.
    """

    position_mean_over_std: float
    position_centered_share: float
    position_rho: float | None
    token_mean_over_std: float | None
    token_rho: float | None


def centers(
    rows: Float[Array, "n d"],
    std: Float[Array, " d"],
    token_moments: tuple[Float[Array, " d"], Float[Array, " d"]] | None,
) -> Centers:
    ratios, rho = _ratios(rows.mean(axis=0), std)
    tokens, token_rho = (None, None) if token_moments is None else _ratios(*token_moments)
    return {
        "position_mean_over_std": float(np.median(ratios)),
        "position_centered_share": float(np.mean(ratios < 1)),
        "position_rho": rho,
        "token_mean_over_std": None if tokens is None or not len(tokens) else float(np.median(tokens)),
        "token_rho": token_rho,
    }


def _ratios(mean: Float[Array, " d"], std: Float[Array, " d"]) -> tuple[Float[Array, " varying"], float | None]:
    varying = std > 0
    sizes, std = np.abs(mean[varying]), std[varying]
    return sizes / std, spearman(sizes, std) if len(std) > 2 else None
