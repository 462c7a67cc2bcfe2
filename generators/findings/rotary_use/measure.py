from collections.abc import Iterator, Sequence
from itertools import islice
from math import comb
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Rotary
from generators.base.runs import Rotations, Run, Windows
from generators.findings import running
from generators.findings.inputs import Inputs, NotApplicableError, model_of
from generators.findings.measured import Measurements, StoredChance, table_of
from generators.findings.nulls import RESAMPLES, drawn, drawn_until_known
from generators.findings.positional import NO_ROTATIONS, queries_and_keys, scoring
from generators.findings.rotary_use.lengths import (
    LONGEST_WINDOWS,
    LengthRow,
    PairLengths,
    channels_of,
    pair_lengths,
)
from generators.maths.kernels import attention
from generators.maths.ranks import spearman
from generators.maths.resampling import interval, resample_items, spearman_of
from generators.maths.sequential import FEWEST_FOR_PERCENTILE, MOST, draws_until_known

Which = Literal["fastest", "slowest", "random"]
WINDOWS = 32
HEAD_WINDOWS = 4  # windows for single heads
PAIRED_WINDOWS = 2  # windows for random pairs, on which the fastest are compared with them
STEPS = 8  # steps in the number of pairs
SETS = 5  # random sets per size that no claim uses
FEWEST_SETS = 400  # distinct sets needed; with fewer, most would be drawn
RANDOM_PASSES = (2 * FEWEST_FOR_PERCENTILE + 6 * SETS + STEPS) * PAIRED_WINDOWS
PASSES = 18 * WINDOWS + RANDOM_PASSES + LONGEST_WINDOWS
PERMUTATIONS = 999  # permutations of heads within their layers

REACH = 64  # offsets
CLOSE = 0.01  # largest mean |difference| in a query's attention for a match with the model


class TurningRow(TypedDict):
    """What it costs if only some pairs turn, as a share of stopping all; of random sets the range of them."""

    which: Which
    turning: int
    damage: float
    low: float
    high: float


class RotaryHeadRow(TypedDict):
    """One head: attention to the previous token, and the fast half's share of its scores."""

    layer: int
    head: int
    previous: float
    fast_share: float


class FastHeads(TypedDict):
    """Rank correlation over heads of attention to the previous token with the fast half's share of scores."""

    rho: float
    low: float
    high: float
    by_chance: StoredChance


class RotaryUseMetrics(TypedDict):
    """Numbers by how many pairs turn; `stopped` is what it costs to stop all of them."""

    pairs: int
    stopped: running.WindowMean
    damages: list[TurningRow]
    quarter_by_chance: StoredChance | None
    half_by_chance: StoredChance | None
    heads: list[RotaryHeadRow] | None
    fast_heads: FastHeads | None
    lengths: PairLengths | None
    ran: running.Ran


def three_quarters(pairs: int) -> int:
    """Return how many pairs turn if the slowest quarter stands still; one pair at least stands still."""
    return pairs - max(1, round(pairs / 4))


def measure(inputs: Inputs) -> Measurements[RotaryUseMetrics]:
    """Measure the loss with only the fastest, the slowest or random pairs turning, in all layers."""
    run, arch = model_of(inputs), inputs.architecture
    if run.position_kind != "rotary" or not any(arch.rotary):
        raise NotApplicableError(NO_ROTATIONS)
    rotation = next(rotation for rotation in arch.rotary if rotation is not None)
    order = np.argsort(rotation.periods, kind="stable").tolist()  # fastest first, by the first layer that rotates
    if len(order) < 2:
        raise NotApplicableError("A single pair of channels turns: there are none to choose from.")
    windows = run.windows(WINDOWS, running.SEED, PASSES / WINDOWS, RANDOM_PASSES)
    many, few = _Turning(run, windows), _Turning(run, running.first_windows(windows, PAIRED_WINDOWS))
    steps = sorted({round(len(order) * step / STEPS) for step in range(1, STEPS)} - {0, len(order)})
    claimed = {three_quarters(len(order)), len(order) // 2}
    most = max(FEWEST_FOR_PERCENTILE, run.affordable(MOST, windows.ids.shape[1], PAIRED_WINDOWS))
    rows, chances = [], {}
    for turning in sorted({*steps, *claimed}):
        fastest = many.row("fastest", order[:turning])
        rows += [fastest, many.row("slowest", order[-turning:])]
        found = few.random_sets(order, turning, fastest["damage"], most if turning in claimed else SETS)
        enough_sets = turning in claimed and comb(len(order), turning) >= FEWEST_SETS
        chances[turning] = drawn_until_known("random pairs", found, "at most") if enough_sets else None
        values = [float(value) for value in (np.median(found), found.min(), found.max())]
        rows.append(TurningRow(which="random", turning=turning, damage=values[0], low=values[1], high=values[2]))
    heads = pairs_of_heads(inputs, run, windows.ids[:HEAD_WINDOWS], order[: len(order) // 2])
    metrics = RotaryUseMetrics(
        pairs=len(order),
        stopped=running.mean_over_windows(many.lost, windows.files),
        damages=rows,
        quarter_by_chance=chances[three_quarters(len(order))],
        half_by_chance=chances[len(order) // 2],
        heads=heads,
        fast_heads=None if heads is None else _fast_heads(heads),
        lengths=pair_lengths(run, running.first_windows(windows, LONGEST_WINDOWS), arch.rotary, order),
        ran=running.ran(run, windows),
    )
    tables = {"damages": table_of("What it costs if only some pairs turn", TurningRow, rows)}
    if (long := metrics["lengths"]) is not None:
        tables["lengths"] = table_of("Mean length of each pair", LengthRow, long["pairs"])
    if heads is not None:
        tables["heads"] = table_of("Heads and the pairs that they use", RotaryHeadRow, heads)
    return Measurements(metrics, tables)


class _Turning:
    def __init__(self, run: Run, windows: Windows) -> None:
        self._run, self._loss, self.files = run, run.loss(windows), windows.files
        self.base = self._loss.per_window()
        self.lost = self._extra([])

    def _extra(self, turning: Sequence[int]) -> Float[Array, " windows"]:
        with self._run.replaced(rotations=Rotations(pairs=turning)):
            return self._loss.per_window() - self.base

    def row(self, which: Which, turning: Sequence[int]) -> TurningRow:
        damage, low, high = running.ratio_over_windows(self._extra(turning), self.lost, self.files)
        return TurningRow(which=which, turning=len(turning), damage=damage, low=low, high=high)

    def damage(self, turning: Sequence[int]) -> float:
        whole = float(self.lost.mean())
        return float(self._extra(turning).mean()) / whole if whole else 0.0

    def random_sets(self, order: list[int], turning: int, fastest: float, most: int) -> Float[Array, " sets"]:
        """Return the damage of random sets of turning pairs; they end once ten cost no more than the fastest pairs.

        `fastest` is what these cost on all windows. Each set is compared with them on the windows of this object, so
        that what these windows have in common cancels.
        """
        here = self.damage(order[:turning])
        sets = islice(_random_sets(len(order), turning), most)
        return draws_until_known(map(self.damage, sets), here, "at most") + (fastest - here)


def _random_sets(pairs: int, turning: int) -> Iterator[tuple[int, ...]]:
    rng, yielded = np.random.default_rng([running.SEED, turning]), set[tuple[int, ...]]()
    while len(yielded) < comb(pairs, turning):
        one = tuple(sorted(rng.permutation(pairs)[:turning].tolist()))
        if one not in yielded:
            yielded.add(one)
            yield one


def _fast_heads(rows: list[RotaryHeadRow]) -> FastHeads | None:
    previous, fast = np.array([row["previous"] for row in rows]), np.array([row["fast_share"] for row in rows])
    rho = spearman(previous, fast)
    if rho is None:
        return None
    layers = np.array([row["layer"] for row in rows])
    rng = np.random.default_rng(running.SEED)
    exchanged = [spearman(previous, fast[within(layers, rng)]) or 0.0 for _ in range(PERMUTATIONS)]
    low, high = interval(resample_items(spearman_of(previous, fast), len(rows), RESAMPLES, rng))
    return FastHeads(
        rho=rho, low=low, high=high, by_chance=drawn("heads exchanged within their layers", np.array(exchanged))
    )


def within(layers: Array, rng: np.random.Generator) -> Array:
    """Return an order of heads in which only heads of the same layer are exchanged."""
    order = np.arange(len(layers))
    for layer in np.unique(layers):
        order[layers == layer] = rng.permutation(order[layers == layer])
    return order


def pairs_of_heads(
    inputs: Inputs, run: Run, ids: Int[Array, "windows n"], fast: list[int]
) -> list[RotaryHeadRow] | None:
    """Return rows of all heads, with the share of their scores from `fast` pairs.

    None where the weights don't give the queries and keys of the model.
    """
    arch, weights = inputs.architecture, inputs.weights
    roles = [f"blocks.{i}.attn.{name}" for i in range(arch.n_layer) for name in "qk"]
    if (
        any(role not in weights for role in roles)
        or len({None if rotation is None else rotation.dim for rotation in arch.rotary}) != 1
    ):
        return None
    streams = np.empty((arch.n_layer, *ids.shape, run.architecture.d_model), np.float32)
    looks = np.empty((arch.n_layer, len(ids), arch.n_head, *2 * ids.shape[1:]), np.float32)

    def see_states(stage: int, begin: int, states: Float[Array, "batch n d"]) -> None:
        if stage < arch.n_layer:
            streams[stage, begin : begin + len(states)] = states

    def see_attention(layer: int, begin: int, seen: Float[Array, "batch heads n n"]) -> None:
        looks[layer, begin : begin + len(seen)] = seen

    run.hidden_states(ids, see_states)
    run.attention(ids, see_attention)
    shares = []
    for layer in range(arch.n_layer):
        rotation = arch.rotary[layer]
        found = [queries_and_keys(weights, arch, rows, layer) for rows in streams[layer]]
        if rotation is None or not _are_the_models(found[0], inputs, layer, looks[layer, 0]):
            return None
        shares.append(np.mean([_score_shares(q, k, rotation) for q, k in found], axis=0))
    previous = np.diagonal(looks, -1, -2, -1).mean(axis=(1, 3)).ravel()
    return [
        RotaryHeadRow(
            layer=index // arch.n_head,
            head=index % arch.n_head,
            previous=float(look),
            fast_share=float(of_pairs[fast].sum()),
        )
        for index, (of_pairs, look) in enumerate(zip(np.concatenate(shares), previous, strict=True))
    ]


def _are_the_models(
    found: tuple[Float[Array, "heads n c"], ...], inputs: Inputs, layer: int, looks: Float[Array, "heads n n"]
) -> bool:
    """Return whether queries and keys give the attention that the model shows; not if it changes them once more."""
    scored = scoring(inputs.weights, inputs.architecture, layer, looks.shape[-1])
    heads = enumerate(zip(*found, strict=True))
    made = [np.concatenate([rows for _, rows in attention(q, k, scored, head)]) for head, (q, k) in heads]
    return bool(np.abs(np.stack(made) - looks).sum(axis=-1).mean() < CLOSE)


def _score_shares(
    queries: Float[Array, "heads n c"], keys: Float[Array, "heads n c"], rotation: Rotary
) -> Float[Array, "heads pairs"]:
    """Return by how much each pair covaries with the score, over the variance of scores; all channels add up to 1.

    Scores of a query are centred over the last 64 tokens.
    """
    n = queries.shape[1]
    reach = min(REACH, n // 2)
    at = np.arange(reach, n)
    behind = at[:, None] - np.arange(reach)
    first, second = channels_of(rotation)
    found = np.empty((len(queries), len(first)))
    for head, (query, key) in enumerate(zip(queries, keys, strict=True)):
        near = key[behind]  # (queries, offsets, channels)
        near = near - near.mean(axis=1, keepdims=True)
        scores = np.einsum("qc,qoc->qo", query[at], near)
        each = query[at] * np.einsum("qo,qoc->qc", scores, near)  # covariance of each channel's part with the score
        each = each.sum(axis=0, dtype=np.float64)
        total = float(np.sum(scores.astype(np.float64) ** 2))
        found[head] = (each[first] + each[second]) / total if total > 0 else 0.0
    return found
