from collections.abc import Sequence
from contextlib import ExitStack
from math import comb

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run
from generators.findings.inputs import Inputs, NotApplicableError, model_of
from generators.findings.measured import Measurements, StoredChance, table_of
from generators.findings.nulls import drawn
from generators.findings.running import SEED, WindowMean, mean_over_windows, ratio_over_windows

# The draw: sequences of tokens that occur in the text, each as likely as any other, half a window long, seen twice.
SEQUENCES = 32
FEW_SEQUENCES = 8  # sequences for silencing single heads
LONGEST = 256
NEAREST = 16  # tokens back; closer ones are where heads look by distance alone
APART = 4  # smallest gap between the null's distances and those of copying
FEWEST_SEQUENCES = 2  # minimum sequences for silencing sets of heads
SILENCED = 24  # heads at most
SETS = 99  # random sets of other heads
PASSES = 3 * SEQUENCES + (SILENCED + 1) * FEW_SEQUENCES + SETS * FEWEST_SEQUENCES
FEWEST_DISTANCES = 99
SHORTEST = 24  # tokens per half


class InductionHeadRow(TypedDict):
    """One head on the second half: attention to what followed the same token, to that token, and to the last."""

    layer: int
    head: int
    copying: float
    low: float
    high: float
    duplicate: float
    previous: float


class Feeding(TypedDict):
    """What silencing the previous-token heads in front of the copying head, all at once, does to it.

    These are the heads that give the previous token at least half of what the strongest does. `others` is what
    silencing as many other heads in front does, drawn at random.
    """

    heads: list[str]
    strongest: float
    drop: float
    low: float
    high: float
    others: list[float]


class Copying(TypedDict):
    """How much better the second half is predicted than the first, in nats per token.

    `lost` is the share of that which is lost while the copying head is silenced, `others` the same of other heads of
    its layer, one at a time, and of heads of other layers, up to 24 in all.
    """

    benefit: WindowMean
    lost: float
    low: float
    high: float
    others: list[float]


class InductionRun(TypedDict):
    sequences: int
    half: int
    tokens: int
    text: str
    software: dict[str, str]


class InductionMetrics(TypedDict):
    """Numbers of all heads; `best` is the place of the head that copies most in their list."""

    heads: list[InductionHeadRow]
    best: int
    uniform: float
    other_distances: StoredChance | None
    feeding: Feeding | None
    copying: Copying | None
    ran: InductionRun


def measure(inputs: Inputs) -> Measurements[InductionMetrics]:
    """Measure attention on random tokens seen twice, and again with single heads silenced."""
    run, arch = model_of(inputs), inputs.architecture
    if not arch.causal:
        raise NotApplicableError("An encoder sees the whole text at once: nothing has to be copied from before.")
    ids, begins, half = sequences(run, arch.n_ctx)
    looks = _looks(run, ids, begins, half)
    best = int(np.argmax(looks["copying"].mean(axis=0)))
    feeding = _feeding(run, ids[:FEW_SEQUENCES], begins, half, looks, best)
    copying = [mean_over_windows(head, np.arange(len(ids))) for head in looks["copying"].T]
    rows = [
        InductionHeadRow(
            layer=index // arch.n_head,
            head=index % arch.n_head,
            copying=mean["mean"],
            low=mean["low"],
            high=mean["high"],
            duplicate=float(looks["duplicate"][:, index].mean()),
            previous=float(looks["previous"][:, index].mean()),
        )
        for index, mean in enumerate(copying)
    ]
    largest = looks["by_distance"][:, NEAREST : half - APART].max(axis=0)
    metrics = InductionMetrics(
        heads=rows,
        best=best,
        uniform=float(np.mean(1 / (np.arange(begins + half, begins + 2 * half) + 1))),
        other_distances=drawn("other distances", largest) if len(largest) >= FEWEST_DISTANCES else None,
        feeding=feeding,
        copying=_copying(run, ids, begins, half, best) if run.predicts else None,
        ran=InductionRun(
            sequences=len(ids),
            half=half,
            tokens=len(np.unique(run.text.ids)),
            text=run.text.name,
            software=run.record,
        ),
    )
    table = table_of("Heads on random tokens seen twice", InductionHeadRow, rows)
    return Measurements(metrics, {"heads": table})


def sequences(run: Run, n_ctx: int | None) -> tuple[Int[Array, "sequences n"], int, int]:
    """Return random tokens seen twice, where their first half begins, and how long a half is."""
    before = np.array(run.text.before, np.int32)
    half = (min(n_ctx or LONGEST, LONGEST) - len(before)) // 2
    if half < SHORTEST:
        raise NotApplicableError("The context is too short to see a sequence of tokens twice.")
    known = np.unique(run.text.ids)
    count = run.affordable(SEQUENCES, len(before) + 2 * half, PASSES / SEQUENCES)
    rng = np.random.default_rng([SEED, 2])
    once = rng.choice(known, size=(count, half)).astype(np.int32)
    return np.hstack([np.tile(before, (count, 1)).astype(np.int32), once, once]), len(before), half


def _looks(
    run: Run, ids: Int[Array, "sequences n"], begins: int, half: int, only: int | None = None
) -> dict[str, Array]:
    """Return attention of the second half: to what followed, to the same token, one back, all (sequences, heads);
    by distance (heads, half + 1).

    If `only` is given, it is attention in that layer to what followed; the rest is 0.
    """
    arch = run.architecture
    shape = (len(ids), arch.n_layer, arch.n_head)
    kinds = {half - 1: "copying", half: "duplicate", 1: "previous"}
    found = {key: np.zeros(shape) for key in kinds.values()}
    by_distance = np.zeros((arch.n_layer, arch.n_head, half + 1))

    def see(layer: int, begin: int, weights: Float[Array, "batch heads n n"]) -> None:
        at = slice(begin, begin + len(weights))
        second = weights[:, :, begins + half :]
        for offset in range(1, half + 1) if only is None else (half - 1,):
            mean = np.diagonal(second, begins + half - offset, 2, 3)[..., : half - 1].mean(axis=-1)
            by_distance[layer, :, offset] += mean.sum(axis=0) / len(ids)
            if offset in kinds:
                found[kinds[offset]][at, layer] = mean

    run.attention(ids, see, layers=None if only is None else [only])
    by_head = {key: each.reshape(len(ids), -1) for key, each in found.items()}
    return {**by_head, "by_distance": by_distance.reshape(-1, half + 1)}


def _feeding(
    run: Run,
    ids: Int[Array, "few n"],
    begins: int,
    half: int,
    looks: dict[str, Array],
    best: int,
) -> Feeding | None:
    """Silence heads in front of the copying head; return what feeders take from it; None where there are none."""
    n_head = run.architecture.n_head
    layer = best // n_head
    previous, before = looks["previous"].mean(axis=0), looks["copying"][: len(ids), best]
    front = sorted(range(layer * n_head), key=lambda index: -previous[index])
    if not front:
        return None

    def lost(heads: Sequence[int], few: int) -> tuple[float, float, float]:
        with ExitStack() as silenced:
            for index in heads:
                silenced.enter_context(run.silenced(index // n_head, [index % n_head]))
            left = _looks(run, ids[:few], begins, half, layer)["copying"][:, best]
        return ratio_over_windows(before[:few] - left, before[:few], np.arange(few))

    feeders = [index for index in front if previous[index] >= previous[front[0]] / 2]
    others = [index for index in front if index not in feeders]
    drop, low, high = lost(feeders, len(ids))
    sets = run.affordable(SETS, ids.shape[1], FEWEST_SEQUENCES)
    return Feeding(
        heads=[f"L{index // n_head}H{index % n_head}" for index in feeders],
        strongest=float(previous[front[0]]),
        drop=drop,
        low=low,
        high=high,
        others=[lost(one, min(FEWEST_SEQUENCES, len(ids)))[0] for one in _sets(others, len(feeders), sets)],
    )


def _sets(heads: list[int], size: int, most: int) -> list[list[int]]:
    if len(heads) < size:
        return []
    rng = np.random.default_rng([SEED, 3])
    found: dict[tuple[int, ...], None] = {}
    while len(found) < min(most, comb(len(heads), size)):
        found[tuple(sorted(rng.permutation(heads)[:size].tolist()))] = None
    return [list(one) for one in found]


def _copying(run: Run, ids: Int[Array, "sequences n"], begins: int, half: int, best: int) -> Copying:
    n_head, heads = run.architecture.n_head, run.architecture.n_layer * run.architecture.n_head

    def silenced(head: int, count: int) -> Float[Array, " sequences"]:
        with run.silenced(head // n_head, [head % n_head]):
            return _benefit(run, ids[:count], begins, half)

    whole = _benefit(run, ids, begins, half)
    lost, low, high = ratio_over_windows(whole - silenced(best, len(ids)), whole, np.arange(len(ids)))
    layer = range(best - best % n_head, best - best % n_head + n_head)
    elsewhere = [head for head in range(heads) if head not in layer]
    drawn_heads = [*layer, *np.random.default_rng([SEED, 4]).permutation(elsewhere).tolist()]
    few = min(FEW_SEQUENCES, len(ids))
    return Copying(
        benefit=mean_over_windows(whole, np.arange(len(ids))),
        lost=lost,
        low=low,
        high=high,
        others=[
            ratio_over_windows(whole[:few] - silenced(head, few), whole[:few], np.arange(few))[0]
            for head in drawn_heads[: 1 + run.affordable(SILENCED, ids.shape[1], few)]
            if head != best
        ],
    )


def _benefit(run: Run, ids: Int[Array, "sequences n"], begins: int, half: int) -> Float[Array, " sequences"]:
    """Return the loss on the first half less that on the second, of each sequence, in nats per token."""
    from scipy.special import log_softmax

    found = np.zeros(len(ids))

    def see(begin: int, logits: Float[Array, "batch n V"]) -> None:
        for window, row in enumerate(logits, start=begin):
            wanted = ids[window, begins + 1 :]
            costs = -log_softmax(row[begins:-1], axis=-1)[np.arange(len(wanted)), wanted]
            found[window] = costs[: half - 1].mean() - costs[half:].mean()

    run.logits(ids, see)
    return found
