"""The losses of the models of a series, with intervals: from their records of training, or as measured here.

A record is the `training.json` beside a model's weights: loss on text that was held out of its training, window by
window. Where models have none, it is the loss that the finding on the use of positions measured.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from generators.base import notices
from generators.base.files import read_limited
from generators.checkpoint.registry import FolderSource, Model, Place, explain
from generators.findings.facts import TextLoss
from generators.site.claims_along import SeriesMember
from generators.site.locations import TRAINING_RECORD

LARGEST_RECORD = 2**26  # bytes
STANDARD_ERRORS = 1.96  # to either side of a mean: 95 % of a normal distribution


@dataclass(frozen=True)
class SeriesLoss:
    """One model's mean over windows, with its 95 % interval as far as they are independent; None of a single one."""

    place: Place
    mean: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Losses:
    """The losses along a series, comparable with one another: of which text, in which unit."""

    rows: tuple[SeriesLoss, ...]
    text: str
    unit: str


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


def over_windows(place: Place, values: Float[Array, " windows"]) -> SeriesLoss:
    mean = float(values.mean())
    if len(values) < 2:
        return SeriesLoss(place, mean, None)
    error = STANDARD_ERRORS * float(values.std(ddof=1)) / math.sqrt(len(values))
    return SeriesLoss(place, mean, (mean - error, mean + error))


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


def losses(models: Sequence[tuple[Place, Model]], members: Sequence[SeriesMember]) -> Losses | None:
    """Return the losses of a series, from whichever source has more of them; None where none has two.

    `members` are those of the models that have results. A damaged record costs its own model's loss alone.
    """
    found = [losses for losses in (_recorded(models), _measured(members)) if losses is not None]
    return max(found, key=lambda one: len(one.rows), default=None)


def _recorded(models: Sequence[tuple[Place, Model]]) -> Losses | None:
    records = [(place, record) for place, record in ((p, record_of(m)) for p, m in models) if record is not None]
    if len(records) < 2 or len({record.corpus for _, record in records}) > 1:
        return None
    rows = [
        over_windows(place, np.array(one.held_out_window_losses or [one.held_out_loss])) for place, one in records
    ]
    return Losses(tuple(rows), "held-out text", "nats per token")


def _measured(members: Sequence[SeriesMember]) -> Losses | None:
    known = [(member.place, loss) for member in members for loss in _text_losses(member)]
    if len(known) < 2 or len({(loss.text_sha256, loss.unit) for _, loss in known}) > 1:
        return None
    rows = [SeriesLoss(place, loss.mean, loss.interval) for place, loss in known]
    return Losses(tuple(rows), known[0][1].text, known[0][1].unit)


def _text_losses(member: SeriesMember) -> Iterator[TextLoss]:
    for judged in member.judged.findings:
        if judged.finding.facts.loss is not None and judged.measured is not None:
            yield judged.finding.facts.loss(judged.measured.metrics)
            return
