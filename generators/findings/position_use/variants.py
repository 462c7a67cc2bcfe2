from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.findings.running import GROUP
from generators.maths.curve import grouped

Kind = Literal[
    "groups",
    "smoothed",
    "components",
    "strongest",
    "permuted",
    "random groups",
    "random directions",
    "random channels",
]
FIRST = (0,)  # row left as it is, in no group's mean
GROUPS = (2, 5, 10, 20, 50, 100)  # positions per group
WIDTHS = (1, 2, 4, 8, 16)  # standard deviations of a Gaussian, in positions
COMPONENTS = (1, 2, 3, 5, 10, 30)
PERCENTS = (10, 25, 50)  # percent of the channels
# Nulls are drawn only for the settings that claims use.
CLAIM_WIDTH, CLAIM_COMPONENTS, CLAIM_PERCENT = 1, 3, 50
SEED = 20230411


@dataclass(frozen=True)
class ChangedPositions:
    """Changed positions: rows of the table, or ids; `amount` is the strength of the change."""

    kind: Kind
    amount: float | None
    positions: Float[Array, "m ..."]


def of_table(P: Float[Array, "n d"], m: int) -> Iterator[ChangedPositions]:
    used, rng = P[:m], np.random.default_rng(SEED)
    for size in GROUPS:
        if size < m:
            yield ChangedPositions("groups", size, grouped(used, size, FIRST))
    for width in WIDTHS:
        yield ChangedPositions("smoothed", width, smoothed(P, width)[:m])
    mean, directions = P[1:].mean(axis=0), principal_directions(P[1:])
    for count in COMPONENTS:
        if count < min(directions.shape):
            yield ChangedPositions("components", count, projected(used, mean, directions[:count]))
    order = np.argsort(P[1:].std(axis=0), kind="stable")[::-1]
    for percent in PERCENTS:
        yield ChangedPositions("strongest", percent, with_channels(used, order[: _share(percent, len(order))]))
    yield ChangedPositions("permuted", None, used[rng.permutation(m)])
    if m > GROUP:
        yield ChangedPositions("random groups", GROUP, in_random_groups(used, rng, FIRST))
    random = np.linalg.qr(rng.standard_normal((P.shape[1], CLAIM_COMPONENTS)))[0].T
    yield ChangedPositions("random directions", CLAIM_COMPONENTS, projected(used, mean, random))
    chosen = rng.permutation(P.shape[1])[: _share(CLAIM_PERCENT, P.shape[1])]
    yield ChangedPositions("random channels", CLAIM_PERCENT, with_channels(used, chosen))


def of_ids(m: int) -> Iterator[ChangedPositions]:
    ids = np.arange(m, dtype=np.float64)
    for size in GROUPS:
        if size < m:
            yield ChangedPositions("groups", size, grouped(ids, size))
    rng = np.random.default_rng(SEED)
    yield ChangedPositions("permuted", None, ids[rng.permutation(m)])
    if m > GROUP:
        yield ChangedPositions("random groups", GROUP, in_random_groups(ids, rng))


def in_random_groups(
    rows: Float[Array, "m ..."], rng: np.random.Generator, apart: Sequence[int] = ()
) -> Float[Array, "m ..."]:
    """Return every row as the mean of a group of rows from anywhere; rows `apart` stay."""
    places = rng.permutation(np.setdiff1d(np.arange(len(rows)), apart))
    changed = rows.copy()
    changed[places] = grouped(rows[places], GROUP)
    return changed


def smoothed(P: Float[Array, "n d"], width: float) -> Float[Array, "n d"]:
    """Return rows smoothed along positions; row 0, which lies apart, stays and is not smeared over the others."""
    from scipy.ndimage import gaussian_filter1d

    return np.vstack([P[:1], gaussian_filter1d(P[1:], width, axis=0, mode="nearest")])


def principal_directions(rows: Float[Array, "n d"]) -> Float[Array, "r d"]:
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
