from collections.abc import Iterator
from typing import Literal

import numpy as np
from typing_extensions import TypedDict

from generators.base.architecture import Rotary
from generators.base.runs import Rotations
from generators.findings import running
from generators.findings.inputs import Inputs, NotApplicableError, model_of
from generators.findings.measured import Measurements, table_of
from generators.findings.positional import NO_ROTATIONS

Setting = Literal["theta / 10", "theta × 10", "other pairs", "layers exchanged"]
WINDOWS = 8
MOST_SETTINGS = 5  # with the config's own
PASSES = MOST_SETTINGS * WINDOWS


class RotationRow(TypedDict):
    """What another setting adds to the loss of the config's own, on the same windows."""

    setting: Setting
    added: float
    low: float
    high: float


class RotationCheckMetrics(TypedDict):
    """`thetas` are the bases of unscaled rotations; `entropy` is that of the frequencies of the text's tokens."""

    thetas: list[float]
    unit: str
    own: running.WindowMean
    entropy: float
    settings: list[RotationRow]
    ran: running.Ran


def measure(inputs: Inputs) -> Measurements[RotationCheckMetrics]:
    """Measure the loss with rotations as in the config and with others, on the shipped text.

    A model's own samples would favor the rotations with which it wrote them.
    """
    run = model_of(inputs)
    rotations = list(dict.fromkeys(each for each in inputs.architecture.rotary if each is not None))
    if run.position_kind != "rotary" or not rotations or rotations[0].dim < 4:
        raise NotApplicableError(NO_ROTATIONS)
    if not run.predicts:
        raise NotApplicableError("It predicts no tokens, so there is no loss by which to compare rotations.")
    others = dict(other_settings(rotations))
    windows = run.windows(WINDOWS, running.SEED, 1 + len(others), shipped=True)
    loss = run.loss(windows)
    own, rows = loss.per_window(), []
    for setting, how in others.items():
        with run.replaced(rotations=how):
            found = running.mean_over_windows(loss.per_window() - own, windows.files)
        rows.append(RotationRow(setting=setting, added=found["mean"], low=found["low"], high=found["high"]))
    shares = np.unique(run.shipped.ids, return_counts=True)[1] / len(run.shipped.ids)
    metrics = RotationCheckMetrics(
        thetas=[theta for each in rotations if (theta := _theta(each)) is not None],
        unit=loss.unit,
        own=running.mean_over_windows(own, windows.files),
        entropy=float(-(shares * np.log(shares)).sum()),
        settings=rows,
        ran=running.ran(run, windows, run.shipped),
    )
    return Measurements(metrics, {"settings": table_of("What other rotations add to the loss", RotationRow, rows)})


def other_settings(rotations: list[Rotary]) -> Iterator[tuple[Setting, Rotations]]:
    one = rotations[0]
    yield "theta / 10", Rotations(theta=0.1)
    yield "theta × 10", Rotations(theta=10.0)
    channels = np.arange(one.dim).reshape((2, -1) if one.adjacent else (-1, 2)).T
    yield "other pairs", Rotations(channels=channels.ravel().tolist())
    if len(rotations) > 1:
        yield "layers exchanged", Rotations(exchanged=True)


def _theta(rotation: Rotary) -> float | None:
    """Return the base to six digits, None where a config's scaling changed it."""
    if rotation.scaling != "default":
        return None
    return float(f"{(rotation.periods[1] / rotation.periods[0]) ** (rotation.dim / 2):.6g}")
