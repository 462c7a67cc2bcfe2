"""The losses of the models of a series, with intervals, from their records of training.

A record is the `training.json` beside a model's weights: loss on text that was held out of its training, window by
window.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from generators.base import notices
from generators.base.files import read_limited
from generators.checkpoint.registry import FolderSource, Model, Place, explain
from generators.site.locations import TRAINING_RECORD

LARGEST_RECORD = 2**26  # bytes
STANDARD_ERRORS = 1.96  # to either side of a mean: 95 % of a normal distribution


@dataclass(frozen=True)
class LossMean:
    """A mean over windows with its 95 % interval, as far as the windows are independent; None of a single one."""

    mean: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class SeriesLoss:
    """One model's loss, and how far it is from the first model's, taken window by window where both have them."""

    place: Place
    loss: LossMean
    difference: LossMean | None = None


@dataclass(frozen=True)
class Losses:
    """The losses along a series, on one text, in nats per token."""

    rows: tuple[SeriesLoss, ...]

    def fallen(self, place: Place) -> float | None:
        """Return which share of the fall from the first loss to the last is done at a place; None without a fall."""
        at = {row.place: row.loss.mean for row in self.rows}
        first, last = self.rows[0].loss.mean, self.rows[-1].loss.mean
        return (first - at[place]) / (first - last) if place in at and first > last else None


class TrainingText(BaseModel):
    """Of what a model was trained on, and is held out from it."""

    model_config = ConfigDict(frozen=True)
    sha256: str


class Recorded(BaseModel):
    """Of a record of training what is shown: losses in nats per token, overall and window by window."""

    model_config = ConfigDict(frozen=True)
    held_out_loss: float = Field(allow_inf_nan=False)
    held_out_window_losses: tuple[Annotated[float, Field(allow_inf_nan=False)], ...] = ()
    corpus: TrainingText

    @property
    def loss(self) -> LossMean:
        windows = np.array(self.held_out_window_losses)
        return over_windows(windows) if len(windows) else LossMean(self.held_out_loss, None)

    def less(self, other: "Recorded") -> LossMean | None:
        """Return this loss less another, window by window; None where the windows are not the same."""
        ours, theirs = self.held_out_window_losses, other.held_out_window_losses
        same = self.corpus == other.corpus and len(ours) == len(theirs) > 0
        return over_windows(np.subtract(ours, theirs)) if same else None


def over_windows(values: Float[Array, " windows"]) -> LossMean:
    mean = float(values.mean())
    if len(values) < 2:
        return LossMean(mean, None)
    error = STANDARD_ERRORS * float(values.std(ddof=1)) / math.sqrt(len(values))
    return LossMean(mean, (mean - error, mean + error))


def record_of(model: Model) -> Recorded | None:
    """Return the record of a model's training, None without one, or where it is damaged, which is said."""
    for source in model.sources:
        if isinstance(source, FolderSource) and (path := source.folder / TRAINING_RECORD).is_file():
            try:
                return Recorded.model_validate(json.loads(read_limited(path, LARGEST_RECORD)))
            except ValidationError as error:
                wrong = f"is no record of a training: {explain(error)}"
            except (OSError, ValueError, RecursionError) as error:
                wrong = f"can't be read: {' '.join(str(error).split())}"
            notices.say_once(f"{path} {wrong}. In its series, {model.name} has no loss.")
    return None


def losses(models: Sequence[tuple[Place, Model]]) -> Losses | None:
    """Return the losses of a series; None where fewer than two of its models have one, or not on one text.

    A damaged record costs its own model's loss alone.
    """
    records = [(place, record) for place, record in ((p, record_of(m)) for p, m in models) if record is not None]
    if len(records) < 2 or len({record.corpus for _, record in records}) > 1:
        return None
    first = records[0][1]
    rows = [SeriesLoss(place, one.loss, None if one is first else one.less(first)) for place, one in records]
    return Losses(tuple(rows))
