import numpy as np

from generators.findings.plantings import (
    CORRELATIONS,
    LN1,
    LN2,
    Controls,
    D,
    N,
    P,
    Planting,
    Scene,
    noise,
    topped,
    with_gains,
)


def dialled_down(at: Scene, s: float) -> None:
    mine, other = noise(at, 2, D)
    at.weights[P] = noise(at, N, D) * np.exp(mine)
    gain = np.exp(-s * mine + np.sqrt(1 - s**2) * other)
    at.weights |= with_gains({}, LN1, [gain] * at.sizes.n_layer)


def muted(at: Scene, s: float) -> None:
    at.weights[f"blocks.{at.sizes.n_layer - 1}.{LN2}.gain"][:2] = 0
    for layer in range(round(s)):
        at.weights[f"blocks.{layer}.{LN2}.gain"][9] = 0.01


CONTROLS = Controls(
    plantings=(
        Planting("ln1-dials-down", "minus the correlation of gain and position std", dialled_down, CORRELATIONS),
        Planting("ln2-one-channel", "layers of six in which one channel leads by half", topped, (6, 5, 4, 3, 2, 1)),
        Planting("ln2-mutes-channel", "layers of six in which one channel is muted", muted, (6, 5, 4, 3, 2, 1)),
    )
)
