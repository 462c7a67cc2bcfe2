from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, WindowLoss, Windows
from generators.findings import running
from generators.findings.anchor import first_token, largest
from generators.findings.inputs import Inputs, model_of
from generators.findings.measured import Measurements, StoredChance, table_of
from generators.findings.nulls import drawn
from generators.findings.sizes import nonconstant_positions

WINDOWS = 64
FIRST_QUERY = 64  # first query that counts for attention to the first token; at most half a window
OTHER_ROWS = 99  # other rows of P, each replaced alone
FEW_WINDOWS = 4  # windows per single-row ablation
MORE = (first_token.RUNS * first_token.LENGTH + largest.RUNS * largest.LENGTH) // 256  # windows of 256 tokens
PASSES = 5 * WINDOWS + (OTHER_ROWS + 2) * FEW_WINDOWS + MORE
FEWEST_POSITIONS = 100  # positions needed for a null over positions, including the first


class AnchorHeadRow(TypedDict):
    """One head: its mean attention to the first token, from queries that are 64 tokens in or more."""

    layer: int
    head: int
    on_first: float
    low: float
    high: float


class AnchorStageRow(TypedDict):
    """The stream at one depth, position 0 against the others.

    `channel` has the largest mean |activation| at position 0; `over_median` is that over the median |activation|,
    `over_elsewhere` over the same channel's mean at other positions. `others_median` is the largest |activation| over
    the median at a typical other position.
    """

    layer: int
    channel: int
    over_median: float
    over_elsewhere: float
    others_median: float


class RowCosts(TypedDict):
    """Loss added by replacing rows of P: row 0 by the mean row and by row 1, and all.

    `share` is that of row 0 alone in the cost of all; `others` are costs of other single rows, `few_first` that of
    row 0 on the same few windows.
    """

    unit: str
    first_by_mean: running.WindowMean
    first_by_second: running.WindowMean
    all_rows: running.WindowMean
    share: float
    share_low: float
    share_high: float
    few_first: float
    others: list[float]


class AnchorMetrics(TypedDict):
    """Numbers of heads and depths; `other_positions` is the most that any head gives another early position."""

    heads: list[AnchorHeadRow]
    uniform: float
    other_positions: float
    stages: list[AnchorStageRow]
    massive_by_chance: StoredChance | None
    rows: RowCosts | None
    first_token: first_token.FirstToken | None
    largest: list[largest.LargestRow]
    one_number: largest.OneNumber | None
    ran: running.Ran


def measure(inputs: Inputs) -> Measurements[AnchorMetrics]:
    """Measure attention to the first token, activations there, and the loss without its row of P."""
    run, arch = model_of(inputs), inputs.architecture
    windows = run.windows(WINDOWS, running.SEED, PASSES / WINDOWS)
    n = windows.ids.shape[1]
    early = min(FIRST_QUERY, n // 2)
    begun = first_token.length_of(run, windows)
    parts = (slice(early, n), slice(begun // 2, begun))
    looks, on_windows = first_token.looks_at(run, windows.ids, *parts)
    stages = [_Sizes(np.zeros((n, arch.d_model))) for _ in range(arch.n_layer + 1)]
    run.hidden_states(windows.ids, lambda stage, _, states: stages[stage].add(states))
    stage_rows = [sizes.row(layer) for layer, sizes in enumerate(stages)]
    largest_rows = [sizes.largest(layer) for layer, sizes in enumerate(stages)]
    massive = max(range(len(stages)), key=lambda layer: stage_rows[layer]["over_median"])
    means = [running.mean_over_windows(on_first, windows.files) for on_first in looks[:, :, 0].T]
    rows = [
        AnchorHeadRow(
            layer=i // arch.n_head, head=i % arch.n_head, on_first=mean["mean"], low=mean["low"], high=mean["high"]
        )
        for i, mean in enumerate(means)
    ]
    P = nonconstant_positions(inputs.weights) if run.position_kind == "table" else None
    costs = None if P is None else _row_costs(run, windows, P[:n])
    begins = first_token.first_token(run, windows, on_windows, inputs.vocabulary) if arch.causal else None
    queries = np.arange(early, n)
    metrics = AnchorMetrics(
        heads=rows,
        uniform=float(np.mean(1 / (queries + 1))) if arch.causal else 1 / n,
        other_positions=float(looks[:, :, 1:].mean(axis=0).max()),
        stages=stage_rows,
        massive_by_chance=stages[massive].chance(),
        rows=costs,
        first_token=begins,
        largest=largest_rows,
        one_number=largest.one_number(run, windows, [each.sums for each in stages[:-1]]) if run.predicts else None,
        ran=running.ran(run, windows),
    )
    tables = {
        "heads": table_of("Heads by attention to the first token", AnchorHeadRow, rows),
        "stages": table_of("Activations at the first token by layer", AnchorStageRow, stage_rows),
        "largest": table_of("The largest activation by layer", largest.LargestRow, largest_rows),
    }
    if begins is not None:
        title = "Heads that rest on the first token, by kind of tokens"
        tables["first"] = table_of(title, first_token.FirstTokenRow, begins["rows"])
    return Measurements(metrics, tables)


@dataclass
class _Sizes:
    """Mean sizes of activations at every position of one stage."""

    sums: Float[Array, "n d"]
    count: int = 0
    medians: float = 0.0
    top: tuple[float, int, int] = (-1.0, 0, 0)  # the largest |activation|, its position and channel

    def add(self, states: Float[Array, "batch n d"]) -> None:
        sizes = np.abs(states)
        _, position, channel = np.unravel_index(np.argmax(sizes), sizes.shape)
        self.top = max(self.top, (float(sizes.max()), int(position), int(channel)))
        self.count += len(states)
        self.sums += sizes.sum(axis=0, dtype=np.float64)
        self.medians += float(np.median(sizes, axis=(1, 2)).sum())

    def over_median(self) -> Float[Array, " n"]:
        largest = self.sums.max(axis=1)
        return largest / self.medians if self.medians > 0 else np.zeros_like(largest)

    def chance(self) -> StoredChance | None:
        sizes = self.over_median()
        return drawn("other positions", sizes[1:]) if len(sizes) >= FEWEST_POSITIONS else None

    def largest(self, layer: int) -> largest.LargestRow:
        (size, position, channel), median = self.top, self.medians / self.count
        ratio = size / median if median > 0 else 0.0
        return largest.LargestRow(layer=layer, size=size, channel=channel, position=position, over_median=ratio)

    def row(self, layer: int) -> AnchorStageRow:
        channel = int(np.argmax(self.sums[0]))
        elsewhere, sizes = float(self.sums[1:, channel].mean()), self.over_median()
        return AnchorStageRow(
            layer=layer,
            channel=channel,
            over_median=float(sizes[0]),
            over_elsewhere=float(self.sums[0, channel]) / elsewhere if elsewhere > 0 else 0.0,
            others_median=float(np.median(sizes[1:])),
        )


def _row_costs(run: Run, windows: Windows, P: Float[Array, "n d"]) -> RowCosts:
    loss = run.loss(windows)
    base = loss.per_window()
    mean = P[1:].mean(axis=0)

    def without(row: int) -> Float[Array, "n d"]:
        changed = P.copy()
        changed[row] = mean
        return changed

    by_mean = _extra(run, loss, without(0), base)
    everything = _extra(run, loss, np.broadcast_to(mean, P.shape), base)
    share, low, high = running.ratio_over_windows(by_mean, everything, windows.files)
    few = running.first_windows(windows, FEW_WINDOWS)
    few_loss = run.loss(few)
    few_base = few_loss.per_window()
    count = run.affordable(OTHER_ROWS, len(P), FEW_WINDOWS)
    others = np.random.default_rng(running.SEED).permutation(np.arange(1, len(P)))[:count].tolist()
    costs = [float(_extra(run, few_loss, without(row), few_base).mean()) for row in (0, *others)]
    return RowCosts(
        unit=loss.unit,
        first_by_mean=running.mean_over_windows(by_mean, windows.files),
        first_by_second=running.mean_over_windows(_extra(run, loss, np.vstack([P[1:2], P[1:]]), base), windows.files),
        all_rows=running.mean_over_windows(everything, windows.files),
        share=share,
        share_low=low,
        share_high=high,
        few_first=costs[0],
        others=costs[1:],
    )


def _extra(
    run: Run, loss: WindowLoss, rows: Float[Array, "n d"], base: Float[Array, " windows"]
) -> Float[Array, " windows"]:
    with run.replaced(rows=rows):
        return loss.per_window() - base
