"""The training trajectory: the model at its start, and at steps evenly spaced on a logarithmic scale."""

from pathlib import Path

import numpy as np

from models.training.corpus import Encoded
from models.training.files import write_model
from models.training.run import TrainingRun

COUNT = 24


def steps_of(last: int) -> list[int]:
    """Return the steps at which the model is written, from 0 to the last; about 24 if there are that many."""
    return [0, *sorted({int(step) for step in np.geomspace(1, last, COUNT).round()})]


def folder_of(step: int, folder: Path) -> Path:
    """Return where the model of a step is."""
    return folder / f"step-{step}"


def write_step(run: TrainingRun, *, text: Encoded, steps: list[int], folder: Path) -> None:
    """Write the model if it is at one of those steps."""
    if run.step in steps:
        write_model(run, text, folder_of(run.step, folder))
