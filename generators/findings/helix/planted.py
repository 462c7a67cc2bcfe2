import numpy as np

from generators.findings.plantings import Controls, D, N, P, Planting, Scene, coil, embed, mixed, noise, with_spectrum
from generators.maths.surrogates import smooth_noise


def share_of_helix(at: Scene, s: float) -> None:
    """s of the variance is a helix of four turns in three directions, the rest is spread over all."""
    at.weights[P] = mixed(s, embed(coil(N, 4), D, seed=at.seed), noise(at, N, D))


def turns(at: Scene, s: float) -> None:
    at.weights[P] = embed(coil(N, s), D, noise=0.01, seed=at.seed)


def frayed(at: Scene, s: float) -> None:
    curve = embed(coil(N, 4), D, noise=0.01, seed=at.seed)
    curve[:100] += s * np.random.default_rng([at.seed, 3]).standard_normal((100, D))
    at.weights[P] = curve


def apart(at: Scene, s: float) -> None:
    curve = embed(coil(N, 4), D, noise=0.01, seed=at.seed)
    steps = np.linalg.norm(np.diff(curve, axis=0), axis=1)
    curve[0] = curve[1] + s * np.median(steps) * np.ones(D) / np.sqrt(D)
    at.weights[P] = curve


def rings(at: Scene, s: float) -> None:
    t = 2 * np.pi * np.arange(N) / N
    ring = np.column_stack([np.cos(5 * t), np.sin(5 * t), 0.9 * np.cos(11 * t), 0.9 * np.sin(11 * t)])
    at.weights[P] = embed(ring * (1 + s * np.sqrt(2) * np.sin(29 * t))[:, None], D, seed=at.seed)


def spectrum(at: Scene, s: float) -> None:
    variances = np.concatenate([np.full(30, s / 30), np.full(D - 30, (1 - s) / (D - 30))])
    at.weights[P] = with_spectrum(N, D, variances, at.seed)


def untrained(at: Scene, s: float) -> None:
    """The last 40 rows are s times shorter than those of a helix, and noise."""
    curve = embed(coil(N, 4), D, noise=0.01, seed=at.seed)
    last = noise(at, 40, D)
    norms = np.linalg.norm(last, axis=1, keepdims=True)
    curve[-40:] = last / norms * np.linalg.norm(curve[-41]) / s
    at.weights[P] = curve


def in_two_parts(at: Scene, s: float) -> None:
    curve = smooth_noise(N, 3.0, at.rng, D)
    curve[N // 2 :] *= 1 + s
    at.weights[P] = curve


CONTROLS = Controls(
    plantings=(
        Planting(
            "three-components",
            "share of variance that is a helix",
            share_of_helix,
            (0.98, 0.95, 0.92, 0.88, 0.8, 0.72, 0.6, 0.3, 0),
        ),
        Planting("winding", "turns of a helix", turns, (12, 8, 4, 3, 2, 1.5, 1, 0.5)),
        Planting(
            "fraying",
            "noise in the first hundred rows, in radii of the helix",
            frayed,
            (1, 0.5, 0.3, 0.2, 0.1, 0.05, 0),
        ),
        Planting(
            "first-position", "distance of the first row, in steps of the curve", apart, (50, 20, 10, 6, 4, 2, 1)
        ),
        Planting(
            "constant-norms", "std/mean of the norms on two circles", rings, (0, 0.03, 0.045, 0.06, 0.08, 0.12, 0.3)
        ),
        Planting(
            "look-back",
            "share of variance that is a helix",
            share_of_helix,
            (0.999, 0.98, 0.95, 0.9, 0.8, 0.6, 0.3, 0),
        ),
        Planting(
            "low-rank",
            "share of energy in 30 of 128 directions",
            spectrum,
            (0.999, 0.995, 0.985, 0.96, 0.94, 0.8, 0.6),
        ),
        Planting(
            "untrained-rows", "factor by which the last 40 rows are shorter", untrained, (20, 5, 3, 2.1, 1.8, 1.2, 1)
        ),
        Planting("seam", "growth of norms and steps in the middle", in_two_parts, (1, 0.5, 0.3, 0.2, 0.1, 0)),
    ),
    preserved_by={
        "three-components": {
            "permuted rows of a trained P": "A share of variance does not depend on the order of rows.",
            "rank-1 pairs": "Rows on one line lie in three dimensions.",
            "low-rank pairs": "These rows span few dimensions, so three components hold much of their variance.",
            "Cauchy rows": "A few huge entries, in few directions, hold most of the variance.",
        },
        "first-position": {
            "permuted rows of a trained P": "Four of 256 rows lie far from the rest, so one of them comes first in "
            "4 of 256 orders."
        },
    },
    about=(P,),  # nothing is claimed about the tokens drawn among positions
)
