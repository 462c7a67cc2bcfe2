"""How many positions were trained: last rows of another length, and seams where norms or steps jump.

A row that no gradient reaches keeps its first values, or shrinks by weight decay, and resembles no neighbor.
"""

from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from numpy.lib.stride_tricks import sliding_window_view
from typing_extensions import TypedDict

from generators.findings.measured import StoredChance
from generators.findings.nulls import DRAWS, drawn
from generators.maths import curve, surrogates

SEED = 20260701
WINDOW = 8  # rows whose median is compared
START = 16  # the first row in so many is left out: there the curve may fray
FEWEST = 5 * WINDOW
NEARLY = 0.9  # of the largest factor: the break is at the first row that has so much
LEAST = 1e-3  # of the largest norm, or step: what smaller ones count as
LONG, FEWER = 16_384, 99  # positions from which fewer curves are drawn
Series = Literal["norms", "steps"]


class Tail(TypedDict):
    """The last rows, from `first` on: every one is `factor` times shorter, or longer, than the eight rows before.

    `cosine` is the mean one of neighbors from the row before `first` on, `usual_cosine` the median of all neighbors.
    """

    first: int
    factor: float
    short: bool
    cosine: float
    usual_cosine: float
    chance: StoredChance


class Seam(TypedDict):
    """Where the median of eight norms (or steps) jumps most, by `change` times, `beyond` the drift on either side."""

    series: Series
    at: int
    change: float
    beyond: float
    chance: dict[str, StoredChance]


class Trained(TypedDict):
    tail: Tail
    seams: list[Seam]


def trained(P: Float[Array, "n d"], width: float) -> Trained | None:
    """Return where the length of rows breaks; None for short tables, and where all norms are equal.

    `width` is that of the Gaussian which makes noise as smooth as P.
    """
    start, norms = max(2, len(P) // START), np.linalg.norm(P, axis=1)
    norms = np.maximum(norms, LEAST * norms.max())
    if len(P) < FEWEST or np.ptp(norms[start:]) <= LEAST * norms.max():
        return None
    return {"tail": _tail(P, norms, start), "seams": _seams(P, start, width)}


def _tail(P: Float[Array, "n d"], norms: Float[Array, " n"], start: int) -> Tail:
    rng, counted = np.random.default_rng(SEED), norms[start:]
    factors = tail_factors(counted)
    first = start + WINDOW + int(np.flatnonzero(factors >= NEARLY * factors.max())[0])
    others = [rng.choice(norms[start:first], len(counted)) for _ in range(DRAWS)]
    cosines = np.sum(P[1:] * P[:-1], axis=1) / (norms[1:] * norms[:-1])
    return {
        "first": first,
        "factor": float(factors.max()),
        "short": bool(norms[first] < norms[first - 1]),
        "cosine": float(cosines[first - 1 :].mean()),
        "usual_cosine": float(np.median(cosines)),
        "chance": drawn("the rows before in random order", np.array([tail_factors(each).max() for each in others])),
    }


def tail_factors(norms: Float[Array, " n"]) -> Float[Array, " places"]:
    """Return for each row from the ninth on by how much it and all later ones are shorter, or longer, than before."""
    before = np.median(sliding_window_view(norms, WINDOW), axis=1)[:-1]
    longest, shortest = (extreme.accumulate(norms[::-1])[::-1][WINDOW:] for extreme in (np.maximum, np.minimum))
    return np.maximum(before / longest, shortest / before)


def _seams(P: Float[Array, "n d"], start: int, width: float) -> list[Seam]:
    rng, rows = np.random.default_rng([SEED, 1]), P[start:]
    curves = surrogates.with_channels_of(rows, width, rng, DRAWS if len(rows) <= LONG else FEWER)
    smooth = np.array([[jumps(each).max() for each in log_lengths(one).values()] for one in curves])
    found: list[Seam] = []
    for index, (series, logs) in enumerate(log_lengths(rows).items()):
        beyond = jumps(logs)
        at = int(beyond.argmax()) + 2 * WINDOW
        without = np.concatenate([part - np.median(part) for part in (logs[:at], logs[at:])])
        permuted = np.array([jumps(rng.permutation(without)).max() for _ in range(DRAWS)])
        seam: Seam = {
            "series": series,
            "at": start + at,
            "change": float(np.exp(np.median(logs[at : at + WINDOW]) - np.median(logs[at - WINDOW : at]))),
            "beyond": float(np.expm1(beyond.max())),
            "chance": {
                "permuted": drawn(f"{series} without the jump in random order", np.expm1(permuted)),
                "smooth": drawn("featureless curves as smooth as P", np.expm1(smooth[:, index])),
            },
        }
        found.append(seam)
    return found


def log_lengths(rows: Float[Array, "n d"]) -> dict[Series, Float[Array, " m"]]:
    lengths: dict[Series, Array] = {"norms": np.linalg.norm(rows, axis=1), "steps": curve.step_lengths(rows)}
    return {name: np.log(np.maximum(each, LEAST * each.max())) for name, each in lengths.items()}


def jumps(logs: Float[Array, " m"]) -> Float[Array, " places"]:
    """Return by how much medians of eight before and after a row differ, less what they do eight rows away.

    The first place is row 16. A trend, or a bend, jumps nowhere.
    """
    medians = np.median(sliding_window_view(logs, WINDOW), axis=1)
    changes = np.abs(medians[WINDOW:] - medians[:-WINDOW])
    return changes[WINDOW:-WINDOW] - np.maximum(changes[: -2 * WINDOW], changes[2 * WINDOW :])
