import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, Windows
from generators.findings.running import (
    SEED,
    first_windows,
    mean_over_windows,
    ratio_over_windows,
)

WINDOWS = 4
SHIFTS = 9  # shifts in random directions


class MeanRemoved(TypedDict):
    """What it costs to take the mean away, and what the costliest of some random shifts of that length costs.

    `share` is that of the mean in the mean squared length; `times` is the first cost over the second, None where no
    random shift costs anything.
    """

    unit: str
    share: float
    cost: float
    low: float
    high: float
    random: float
    shifts: int
    times: float | None
    times_low: float
    times_high: float
    windows: int


def mean_removed(run: Run, windows: Windows, mean: Float[Array, " d"], share: float) -> MeanRemoved:
    """Return what is lost with the mean of what the first block is given, over all positions."""
    few = first_windows(windows, WINDOWS)
    loss = run.loss(few)
    base = loss.per_window()

    def cost(by: Float[Array, " d"]) -> Float[Array, " windows"]:
        with run.shifted(by):
            return loss.per_window() - base

    lost = cost(-mean)
    rng = np.random.default_rng(SEED)
    directions = rng.standard_normal((SHIFTS, len(mean)))
    directions *= np.linalg.norm(mean) / np.linalg.norm(directions, axis=1, keepdims=True)
    others = [cost(by) for by in directions]
    largest = max(others, key=lambda each: float(each.mean()))
    removed = mean_over_windows(lost, few.files)
    times, low, high = ratio_over_windows(lost, largest, few.files)
    return MeanRemoved(
        unit=loss.unit,
        share=share,
        cost=removed["mean"],
        low=removed["low"],
        high=removed["high"],
        random=float(largest.mean()),
        shifts=SHIFTS,
        times=times if largest.mean() > 0 else None,
        times_low=low,
        times_high=high,
        windows=len(few.ids),
    )
