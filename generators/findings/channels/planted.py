import numpy as np

from generators.findings.plantings import CORRELATIONS, Controls, D, E, N, P, Planting, Scene, V, noise


def loud_channels(at: Scene, s: float) -> None:
    loud = np.zeros(D)
    loud[: round(s * D)] = 1
    at.weights[P] = noise(at, N, D) * (0.01 + loud)


def quiet_tokens(at: Scene, s: float) -> None:
    """Positions have eight loud channels, in which tokens vary s times as much as in the others."""
    loud = np.arange(D) < 8
    at.weights[P] = noise(at, N, D) * np.where(loud, 10, 0.1)
    at.weights[E] = noise(at, V, D) * at.rng.uniform(0.8, 1.2, D) * np.where(loud, s, 1)


def opposite_spreads(at: Scene, s: float) -> None:
    mine, other = noise(at, 2, D)
    at.weights[P] = noise(at, N, D) * np.exp(mine)
    at.weights[E] = noise(at, V, D) * np.exp(-s * mine + np.sqrt(1 - s**2) * other)


CONTROLS = Controls(
    plantings=(
        Planting("few-channels", "share of channels that vary", loud_channels, (0.05, 0.1, 0.15, 0.25, 0.3, 0.5, 1)),
        Planting(
            "tokens-avoid",
            "std of tokens in eight channels where positions vary most, relative to others",
            quiet_tokens,
            (0.1, 0.5, 0.7, 0.8, 0.9, 1, 1.2),
        ),
        Planting("quiet-where-loud", "minus the correlation of both stds", opposite_spreads, CORRELATIONS),
    ),
    preserved_by={
        "few-channels": {
            "lognormal channel scales": "When channel scales vary this much, a few channels sometimes hold most of P."
        }
    },
)
