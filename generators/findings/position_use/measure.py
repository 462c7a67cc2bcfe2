"""What it costs a model to run with positions that are coarser, smoother, fewer or shuffled."""

from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, WindowLoss
from generators.findings.inputs import Inputs, NotApplicableError, model_of
from generators.findings.measured import Measurements, table_of
from generators.findings.nonconstant_rows import nonconstant_positions
from generators.findings.position_use import variants
from generators.findings.position_use.variants import ChangedPositions, Kind
from generators.findings.running import (
    SEED,
    WINDOWS,
    Ran,
    WindowMean,
    grouped,
    mean_over_windows,
    ran,
    ratio_over_windows,
)

PASSES = 30  # over all windows, about
DRAWN_GROUP, DRAWN_WIDTH = 10, 4  # of the curves that are drawn

# Of models that rotate, these are GPT-J and CodeGen: no module of their own turns position ids into rotations.
WITHIN = "This model rotates queries and keys within its attention layers, where positions can't be replaced."
FIXED = "Nothing in the positions of this model can be replaced while it runs."


class Damage(TypedDict):
    """What one change costs, as a share of what it costs to have no positions at all, with its 95 % interval."""

    kind: Kind
    amount: float | None
    loss: float
    damage: float
    low: float
    high: float


class PositionUseMetrics(TypedDict):
    """Numbers by what was done to positions; `removed` is what it costs to make them all alike."""

    positions: Literal["table", "rotary", "alibi"]
    unit: str
    base: WindowMean
    removed: WindowMean
    damages: list[Damage]
    ran: Ran


def measure(inputs: Inputs) -> Measurements[PositionUseMetrics]:
    """Measure the loss with positions replaced by coarser, smoother, fewer and shuffled ones.

    Runs the model on 64 windows about 30 times. Reads `position_embedding` (n, d) where the model has one; others are
    given position ids.

    Raises:
        NotApplicableError: nothing in this model's positions can be replaced.
    """
    run = model_of(inputs)
    kind = run.position_kind
    if kind is None:
        raise NotApplicableError(WITHIN if run.architecture.positions == "rotary" else FIXED)
    if kind == "table" and nonconstant_positions(inputs.weights) is None:
        raise NotApplicableError("The rows of P are alike, all or all but the first: there are no positions to take.")
    windows = run.windows(WINDOWS, SEED, PASSES)
    m = windows.ids.shape[1]
    loss = run.loss(windows)
    base = loss.per_window()
    P = np.asarray(inputs.weights["position_embedding"], np.float64) if kind == "table" else None
    nowhere = np.zeros(m) if P is None else grouped(P[:m], m)
    lost = _loss_with(run, loss, nowhere) - base
    tried = list(variants.of_ids(m) if P is None else variants.of_table(P, m))
    damages = [
        _damage(variant, base, _loss_with(run, loss, variant.positions), lost, windows.files) for variant in tried
    ]
    metrics = PositionUseMetrics(
        positions=kind,
        unit=loss.unit,
        base=mean_over_windows(base, windows.files),
        removed=mean_over_windows(lost, windows.files),
        damages=damages,
        ran=ran(run, windows),
    )
    title = "What each change of positions costs, as a share of removing them"
    arrays = {} if P is None else _curves(P, tried, m)
    return Measurements(metrics, {"damages": table_of(title, list(Damage.__annotations__), damages)}, arrays)


def _loss_with(run: Run, loss: WindowLoss, positions: Float[Array, "m ..."]) -> Float[Array, " windows"]:
    replaced = run.replaced(rows=positions) if positions.ndim == 2 else run.replaced(ids=positions)
    with replaced:
        return loss.per_window()


def _damage(
    variant: ChangedPositions,
    base: Float[Array, " windows"],
    changed: Float[Array, " windows"],
    lost: Float[Array, " windows"],
    files: Int[Array, " windows"],
) -> Damage:
    damage, low, high = ratio_over_windows(changed - base, lost, files)
    return Damage(
        kind=variant.kind,
        amount=variant.amount,
        loss=float(changed.mean()),
        damage=damage,
        low=low,
        high=high,
    )


def _curves(P: Float[Array, "n d"], tried: list[ChangedPositions], m: int) -> dict[str, Array]:
    """Return the curve in its three components, as it is and as the model sees it when it is changed."""
    mean, directions = P[1:].mean(axis=0), variants.principal_directions(P[1:])[:3]
    drawn = {"as it is": P[:m]}
    for variant in tried:
        if (variant.kind, variant.amount) in (("groups", DRAWN_GROUP), ("smoothed", DRAWN_WIDTH)):
            drawn[variant.kind] = variant.positions
    if len(directions) < 3:
        return {}
    return {
        "curves": np.stack([(rows[1:] - mean) @ directions.T for rows in drawn.values()]).astype(np.float32),
        "curve_names": np.array(list(drawn), np.str_),
    }
