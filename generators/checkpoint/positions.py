"""How positions enter where no table of them is learned: formulas, rotations, slopes, relative biases."""

import math
from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

BASE = 10_000.0  # of wavelengths: Vaswani et al. 2017, taken over by Su et al. 2021 for rotations


def fairseq_sinusoids(n: int, d: int) -> Float[Array, "n d"]:
    """Return sines, then cosines, of positions from 2 on (ids 0 and 1 are padding's), as XGLM computes them."""
    half = d // 2
    frequencies = np.exp(np.arange(half, dtype=np.float32) * np.float32(-math.log(BASE) / (half - 1)))
    angles = np.arange(2, n + 2, dtype=np.float32)[:, None] * frequencies
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return np.pad(table, ((0, 0), (0, d % 2)))


def split_sinusoids(n: int, d: int) -> Float[Array, "n d"]:
    """Return sines of wavelengths 2 pi 10000^(2 c / d), then their cosines, as CTRL and Marian compute them."""
    angles = np.arange(n)[:, None] / BASE ** (2 * np.arange((d + 1) // 2) / d)
    return np.concatenate([np.sin(angles), np.cos(angles)[:, : d // 2]], axis=1).astype(np.float32)


FORMULAS: Mapping[str, Callable[[int, int], Float[Array, "n d"]]] = {
    "fairseq": fairseq_sinusoids,
    "split": split_sinusoids,
}
