import numpy as np

from generators.findings.plantings import Controls, D, E, Planting, Scene, V, noise, orthonormal


def about_a_mean(at: Scene, s: float) -> None:
    at.weights[E] = at.weights[E] + s * np.sqrt(D) * orthonormal(D, 1, at.seed).T


def split_by_space(at: Scene, s: float) -> None:
    """Words differ from the rest by s standard deviations, along a direction in which all vary twice as much."""
    mean, split = orthonormal(D, 2, at.seed).T
    wide = noise(at, V) * 2
    shift = 2 * s * (at.marks_space - 0.5)
    at.weights[E] = at.weights[E] + 3 * np.sqrt(D) * mean + np.outer(wide + shift, split)


CONTROLS = Controls(
    plantings=(
        Planting(
            "first-is-mean",
            "length of the mean, divided by the typical distance from it",
            about_a_mean,
            (3, 1, 0.5, 0.25, 0.1, 0),
        ),
        Planting(
            "space-plane",
            "distance of tokens that begin a word from other tokens, in standard deviations",
            split_by_space,
            (5, 4, 3, 2, 1, 0),
        ),
    ),
    preserved_by={
        "first-is-mean": {"permuted rows of a trained E": "The mean does not depend on the order of rows."}
    },
)
