"""Half of a finding's losses, taken by a worker that would be idle.

Losses of an unfinished result are stored one by one, so that an interrupted run goes on where it was. A helper makes
use of that: it goes through the same finding, some way ahead, and stores every second loss; whoever measures finds
them. What is stored and read is the same whether anyone helped or not.
"""

from typing import Any, cast

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.runs import Run, Windows
from generators.runner.losses import StoredLoss

LEAD = 3  # losses: a helper leaves those alone to which the other is nearer
# What a helper may ask of a model beside losses. All else is measured, which the other does by itself.
FREE = ("architecture", "predicts", "position_kind", "record", "text", "windows", "affordable", "encode", "replaced")


class EnoughError(Exception):
    """A helper has nothing more to do."""


class Ahead:
    """A model whose losses are taken by two: every second one here, for the other a number that means nothing."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __getattr__(self, name: str) -> Any:
        """Return what the model has. Raises EnoughError: it would have to be measured."""
        if name not in FREE:
            raise EnoughError
        return getattr(self._run, name)

    def loss(self, windows: Windows) -> "EverySecond":
        """Return the losses on these windows. They are stored: `begin` was told where."""
        return EverySecond(cast(StoredLoss, self._run.loss(windows)), len(windows.ids))


class EverySecond:
    """A loss of which every second measurement is made, unless the other will soon be there."""

    def __init__(self, stored: StoredLoss, windows: int) -> None:
        self.unit = stored.unit
        self._stored, self._folder, self._windows = stored, stored._folder, windows

    def per_window(self, see: Any = None) -> Float[Array, " windows"]:
        """Measure and store, or pass over. Raises EnoughError: the finding is done, or what is asked isn't stored."""
        if see is not None or not self._is_measured_elsewhere():
            raise EnoughError
        number = self._stored._count + 1
        if number % 2 == 0 and number > LEAD and not (self._folder / f"{number - LEAD}.npy").exists():
            return self._stored.per_window()
        self._stored._count = number
        return np.full(self._windows, float(number))

    def _is_measured_elsewhere(self) -> bool:
        """Return whether a first loss is there. It is never taken here, and all losses go once the finding is done.

        (The folder alone says nothing: what is stored here at that moment makes it anew.)
        """
        return any(self._folder.parent.glob("*/1.npy"))


def as_helper(run: Run) -> Run:
    """Return a model as it is given to a finding that another worker measures."""
    return cast(Run, Ahead(run))
