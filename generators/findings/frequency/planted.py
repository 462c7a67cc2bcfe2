import numpy as np
from numpy import ndarray as Array

from generators.findings.plantings import CORRELATIONS, Controls, E, Planting, Scene, V, noise, topped


def tracking(at: Scene, s: float) -> Array:
    return s * at.z + np.sqrt(1 - s**2) * noise(at, V)


def channel_tracks(at: Scene, s: float) -> None:
    at.weights[E][:, 9] = tracking(at, s)


def ln2_tracks(at: Scene, s: float) -> None:
    """ln2's channel tracks frequency with a correlation of s, another channel with 0.55."""
    topped(at, at.sizes.n_layer)
    at.weights[E][:, 9], at.weights[E][:, 20] = tracking(at, s), tracking(at, 0.55)


def shorter(at: Scene, s: float) -> None:
    at.weights[E] = at.weights[E] * np.exp(-0.5 * tracking(at, s))[:, None]


CONTROLS = Controls(
    plantings=(
        Planting("frequency-channel", "correlation of one channel with log-frequency", channel_tracks, CORRELATIONS),
        Planting(
            "frequency-is-ln2",
            "correlation of ln2's channel with log-frequency, when another channel has 0.55",
            ln2_tracks,
            (0.9, 0.7, 0.6, 0.5, 0.3, 0),
        ),
        Planting("frequent-shorter", "minus the correlation of log-length and log-frequency", shorter, CORRELATIONS),
    )
)
