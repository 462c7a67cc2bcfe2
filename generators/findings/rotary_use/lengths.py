"""Which pairs do queries and keys put their length in?"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Rotary
from generators.base.runs import Run, Windows
from generators.findings import running
from generators.findings.measured import StoredChance
from generators.findings.nulls import DRAWS, drawn

LONGEST_WINDOWS = 8
Lengths = Float[Array, "layers windows heads pairs"]


class LengthRow(TypedDict):
    """A pair's share of query length times key length, a mean over heads."""

    pair: int
    share: float


class PairLengths(TypedDict):
    """`slow_share` is the share of query length times key length in the slower half of the pairs, a mean over heads;
    `values_slow_share` is that of the length of values, which never turn. Rows of pairs begin with the fastest.
    """

    slow_share: running.WindowMean
    values_slow_share: float
    by_chance: StoredChance
    pairs: list[LengthRow]


def pair_lengths(
    run: Run, windows: Windows, rotary: Sequence[Rotary | None], order: Sequence[int]
) -> PairLengths | None:
    """Measure lengths in layers that turn; None where queries and keys can't be seen, or layers turn unlike parts."""
    turning = {layer: rotation for layer, rotation in enumerate(rotary) if rotation is not None}
    if len({rotation.dim for rotation in turning.values()}) != 1:
        return None
    found = seen_lengths(run, windows, turning)
    if found is None:
        return None
    queries, keys, values = (each[..., order] for each in found)
    products = queries.reshape(*keys.shape[:3], -1, len(order)) * keys[:, :, :, None]
    whole = np.maximum(products.sum(axis=-1, keepdims=True), np.finfo(np.float32).tiny)
    shares = (products / whole).mean(axis=3)  # of heads that share keys
    slow = slice(len(order) // 2, None)
    of_values, of_pairs = (each.mean(axis=(0, 1, 2)) for each in (values, shares))
    return PairLengths(
        slow_share=running.mean_over_windows(shares[..., slow].sum(axis=-1).mean(axis=(0, 2)), windows.files),
        values_slow_share=float(of_values[slow].sum() / of_values.sum()),
        by_chance=drawn("pairs exchanged within heads", exchanged(shares.mean(axis=1), slow)),
        pairs=[LengthRow(pair=pair, share=share) for pair, share in zip(order, of_pairs.tolist(), strict=True)],
    )


def exchanged(shares: Float[Array, "layers heads pairs"], slow: slice) -> Float[Array, " draws"]:
    """Return the slower half's share with the pairs of every head in random order.

    Heads that share keys are exchanged alike. Nothing but speed gives pairs of different heads anything in common.
    """
    rng = np.random.default_rng(running.SEED)
    return np.array([rng.permuted(shares, axis=-1)[..., slow].sum(axis=-1).mean() for _ in range(DRAWS)])


def seen_lengths(run: Run, windows: Windows, turning: dict[int, Rotary]) -> tuple[Lengths, Lengths, Lengths] | None:
    """Return mean lengths of pairs of queries, keys and values over each window."""
    found: dict[tuple[int, str], list[Array]] = {}

    def see(layer: int, begin: int, *arrays: Float[Array, "batch heads n width"]) -> None:
        for name, rows in zip("qkv", arrays, strict=True):
            if layer in turning:
                found.setdefault((layer, name), []).append(lengths(rows, turning[layer]))

    if not run.queries_keys_values(windows.ids, see):
        return None
    q, k, v = (np.stack([np.concatenate(found[layer, name]) for layer in turning]) for name in "qkv")
    return q, k, v


def channels_of(rotation: Rotary) -> tuple[Array, Array]:
    pairs = np.arange(rotation.dim // 2)
    return (2 * pairs, 2 * pairs + 1) if rotation.adjacent else (pairs, pairs + rotation.dim // 2)


def lengths(rows: Float[Array, "... n c"], rotation: Rotary) -> Float[Array, "... pairs"]:
    first, second = channels_of(rotation)
    return np.hypot(rows[..., first], rows[..., second]).mean(axis=-2)
