from functools import partial

import numpy as np

from generators.findings.plantings import SHARES, Controls, D, E, N, P, Planting, Scene, V, noise, orthonormal


def separated(at: Scene, s: float) -> None:
    """Of P's variance, s lies where tokens hardly vary (half of the directions), the rest where they do."""
    axes = orthonormal(D, D, at.seed)
    at.weights[E] = (noise(at, V, D) * np.where(np.arange(D) < D // 2, 1, 0.1)) @ axes.T
    loud = np.where(np.arange(D) < D // 2, np.sqrt(1 - s), np.sqrt(s))
    at.weights[P] = (noise(at, N, D) * loud) @ axes.T


def in_tail(at: Scene, s: float, of: str = P, among: str = E) -> None:
    rows, others = at.weights[of].shape[0], at.weights[among].shape[0]
    axes, tail = orthonormal(D, D, at.seed), -(-D // 10)
    at.weights[among] = (noise(at, others, D) * np.geomspace(1, 0.05, D)) @ axes.T
    quiet, loud = axes[:, -tail:], axes[:, :-tail]
    at.weights[of] = (
        np.sqrt(s / tail) * noise(at, rows, tail) @ quiet.T
        + np.sqrt((1 - s) / (D - tail)) * noise(at, rows, D - tail) @ loud.T
    )


CONTROLS = Controls(
    plantings=(
        Planting(
            "keep-apart",
            "share of P's variance where tokens hardly vary",
            separated,
            (1, 0.9, 0.8, 0.7, 0.65, 0.6, 0.5),
        ),
        Planting("p-in-tail", "share of P's variance in E's last tenth", in_tail, SHARES),
        Planting(
            "tokens-in-tail", "share of E's variance in P's last tenth", partial(in_tail, of=E, among=P), SHARES
        ),
    )
)
