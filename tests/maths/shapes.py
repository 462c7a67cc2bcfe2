"""Curves with known answers: rows by position."""

import numpy as np

from generators.findings.plantings import coil
from tests.synthetic import autoregressive, line, random_walk, smoothed_noise

Array = np.ndarray
__all__ = ["autoregressive", "circle", "coil", "embedded", "line", "random_walk", "smoothed_noise"]


def circle(n: int, turns: float) -> Array:
    """Return n points that turn `turns` times (against the clock where positive) in n steps."""
    angle = 2 * np.pi * turns * np.arange(n) / n
    return np.column_stack([np.cos(angle), np.sin(angle)])


def embedded(curve: Array, d: int, noise: float = 0.0, seed: int = 0, away: float = 0.1) -> Array:
    """Return a curve in random directions of d channels, `away` from the origin in each, with noise in all."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.standard_normal((d, curve.shape[1])))[0]
    return away + curve @ directions.T + noise * rng.standard_normal((len(curve), d))
