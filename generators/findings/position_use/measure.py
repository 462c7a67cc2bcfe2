from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, WindowLoss
from generators.findings import running
from generators.findings.inputs import Inputs, NotApplicableError, model_of
from generators.findings.measured import Measurements, table_of
from generators.findings.position_use import variants
from generators.findings.position_use.variants import ChangedPositions, Kind
from generators.findings.sizes import nonconstant_positions
from generators.maths.curve import grouped

PASSES = 27  # approximate passes over all windows

# Of models that rotate, these are GPT-J and CodeGen: no module of their own turns position ids into rotations.
WITHIN = "This model rotates queries and keys within its attention layers, where positions can't be replaced."
FIXED = "Nothing in the positions of this model can be replaced while it runs."


class Damage(TypedDict):
    """What one change costs: in the unit of the loss, and as shares.

    `share` is that of what it costs to remove all rows but the first, with its 95 % interval over files; `damage` is
    that of removing all of them. Where positions are no table the two are the same.
    """

    kind: Kind
    amount: float | None
    cost: float
    share: float
    share_low: float
    share_high: float
    damage: float


class PositionUseMetrics(TypedDict):
    """Numbers by what was done to positions.

    `removed` is what it costs to make all rows alike, `removed_but_first` all rows after the first.
    """

    positions: Literal["table", "rotary", "alibi"]
    unit: str
    base: running.WindowMean
    removed: running.WindowMean
    removed_but_first: running.WindowMean
    damages: list[Damage]
    ran: running.Ran


def measure(inputs: Inputs) -> Measurements[PositionUseMetrics]:
    """Measure the loss with positions (rows or ids) replaced by coarser, smoother, fewer and shuffled ones."""
    run = model_of(inputs)
    kind = run.position_kind
    if kind is None:
        raise NotApplicableError(WITHIN if run.architecture.positions == "rotary" else FIXED)
    if kind == "table" and nonconstant_positions(inputs.weights) is None:
        raise NotApplicableError("The rows of P are alike, all or all but the first: there are no positions to take.")
    windows = run.windows(running.WINDOWS, running.SEED, PASSES)
    m = windows.ids.shape[1]
    loss = run.loss(windows)
    base = loss.per_window()
    P = np.asarray(inputs.weights["position_embedding"], np.float64) if kind == "table" else None
    costs = PositionCosts(run, loss, base, windows.files)
    lost = costs.of(np.zeros(m) if P is None else grouped(P[:m], m))
    lost_but_first = lost if P is None else costs.of(grouped(P[:m], m, (0,)))
    tried = variants.of_ids(m) if P is None else variants.of_table(P, m)
    damages = [damage(variant, costs, lost_but_first, lost) for variant in tried]
    metrics = PositionUseMetrics(
        positions=kind,
        unit=loss.unit,
        base=running.mean_over_windows(base, windows.files),
        removed=running.mean_over_windows(lost, windows.files),
        removed_but_first=running.mean_over_windows(lost_but_first, windows.files),
        damages=damages,
        ran=running.ran(run, windows),
    )
    return Measurements(metrics, {"damages": table_of("What each change of positions costs", Damage, damages)})


@dataclass(frozen=True)
class PositionCosts:
    """The cost of changed positions: their loss minus the original loss, per window."""

    run: Run
    loss: WindowLoss
    base: Float[Array, " windows"]
    files: Int[Array, " windows"]

    def of(self, positions: Float[Array, "m ..."]) -> Float[Array, " windows"]:
        with self.run.replaced(rows=positions) if positions.ndim == 2 else self.run.replaced(ids=positions):
            return self.loss.per_window() - self.base


def damage(
    variant: ChangedPositions,
    costs: PositionCosts,
    lost_but_first: Float[Array, " windows"],
    lost: Float[Array, " windows"],
) -> Damage:
    changed = costs.of(variant.positions)
    share, share_low, share_high = running.ratio_over_windows(changed, lost_but_first, costs.files)
    return Damage(
        kind=variant.kind,
        amount=variant.amount,
        cost=running.mean_over_windows(changed, costs.files)["mean"],
        share=share,
        share_low=share_low,
        share_high=share_high,
        damage=running.ratio_over_windows(changed, lost, costs.files)[0],
    )
