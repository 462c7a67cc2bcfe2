"""Positions as a model might do with: coarser, smoother, in fewer directions, shuffled."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.findings.running import GROUP
from generators.maths.curve import grouped, rows_apart

Kind = Literal[
    "groups",
    "smoothed",
    "components",
    "strongest",
    "weakest",
    "permuted",
    "random groups",
    "random directions",
    "random channels",
]
GROUPS = (2, 5, 10, 20, 50, 100)  # positions
WIDTHS = (1, 2, 4, 8, 16)  # standard deviations of a Gaussian, in positions
COMPONENTS = (1, 2, 3, 5, 10, 30)
PERCENTS = (10, 25, 50)  # of the channels
WEAKEST = 50
# What chance gives is taken where the claims are made.
CLAIM_WIDTH, CLAIM_COMPONENTS, CLAIM_PERCENT = 1, 3, 50
SEED = 20230411


@dataclass(frozen=True)
class ChangedPositions:
    """Positions of our making: rows of the table, or ids; `amount` is how many or how much of its kind."""

    kind: Kind
    amount: float | None
    positions: Float[Array, "m ..."]


def of_table(P: Float[Array, "n d"], m: int) -> Iterator[ChangedPositions]:
    """Yield what replaces the first m rows of a position embedding."""
    used, rng, apart = P[:m], np.random.default_rng(SEED), rows_apart(P)
    for size in GROUPS:
        if size < m:
            yield ChangedPositions("groups", size, grouped(used, size, apart))
    for width in WIDTHS:
        yield ChangedPositions("smoothed", width, smoothed(P, width, apart)[:m])
    mean, directions = P[1:].mean(axis=0), principal_directions(P[1:])
    for count in COMPONENTS:
        if count < min(directions.shape):
            yield ChangedPositions("components", count, projected(used, mean, directions[:count]))
    order = np.argsort(P[1:].std(axis=0), kind="stable")[::-1]
    for percent in PERCENTS:
        yield ChangedPositions("strongest", percent, with_channels(used, order[: _share(percent, len(order))]))
    yield ChangedPositions("weakest", WEAKEST, with_channels(used, order[-_share(WEAKEST, len(order)) :]))
    places = rng.permutation(m)
    yield ChangedPositions("permuted", None, used[places])
    if m > GROUP:
        shuffled = grouped(used[places], GROUP, np.flatnonzero(np.isin(places, apart)))
        yield ChangedPositions("random groups", GROUP, shuffled[np.argsort(places)])
    random = np.linalg.qr(rng.standard_normal((P.shape[1], CLAIM_COMPONENTS)))[0].T
    yield ChangedPositions("random directions", CLAIM_COMPONENTS, projected(used, mean, random))
    chosen = rng.permutation(P.shape[1])[: _share(CLAIM_PERCENT, P.shape[1])]
    yield ChangedPositions("random channels", CLAIM_PERCENT, with_channels(used, chosen))


def of_ids(m: int) -> Iterator[ChangedPositions]:
    """Yield what replaces the position ids 0 to m - 1."""
    ids = np.arange(m, dtype=np.float64)
    for size in GROUPS:
        if size < m:
            yield ChangedPositions("groups", size, grouped(ids, size))
    places = np.random.default_rng(SEED).permutation(m)
    yield ChangedPositions("permuted", None, ids[places])
    if m > GROUP:
        yield ChangedPositions("random groups", GROUP, grouped(ids[places], GROUP)[np.argsort(places)])


def smoothed(
    P: Float[Array, "n d"], width: float, apart: Sequence[int] | Int[Array, " apart"] = (0,)
) -> Float[Array, "n d"]:
    """Return rows smoothed along positions; rows `apart` stay and are not smeared over the others."""
    from scipy.ndimage import gaussian_filter1d

    others = np.setdiff1d(np.arange(len(P)), apart)
    if not len(others):
        return P
    # In the place of a row apart its neighbor is smoothed, as the filter does beyond the ends.
    nearest = others[np.abs(np.arange(len(P))[:, None] - others).argmin(axis=1)]
    changed = gaussian_filter1d(P[nearest], width, axis=0, mode="nearest")
    changed[apart] = P[apart]
    return changed


def principal_directions(rows: Float[Array, "n d"]) -> Float[Array, "r d"]:
    """Return the principal directions of centred rows, strongest first."""
    return np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2]


def projected(
    rows: Float[Array, "m d"], mean: Float[Array, " d"], directions: Float[Array, "k d"]
) -> Float[Array, "m d"]:
    """Return rows with only these directions about the mean; row 0 stays."""
    inside = mean + (rows - mean) @ directions.T @ directions
    inside[0] = rows[0]
    return inside


def with_channels(rows: Float[Array, "m d"], channels: Int[Array, " k"]) -> Float[Array, "m d"]:
    """Return rows with only these channels; the others are held at their mean."""
    changed = np.tile(rows.mean(axis=0), (len(rows), 1))
    changed[:, channels] = rows[:, channels]
    return changed


def _share(percent: float, d: int) -> int:
    return max(1, round(percent * d / 100))
