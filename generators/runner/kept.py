"""What the unchanged model made of windows: kept, since most findings run it on the same ones."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.base.runs import SeePredictions, WindowLoss, Windows
from generators.runner.budget import FLOAT_BYTES, KEPT_BYTES

StatesOfBatch = dict[int, Float[Array, "batch n d"]]  # by stage


class KeptStates:
    """The stream of windows at all stages, by their tokens, until `most` bytes are full."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._free = most
        self._windows: dict[bytes, tuple[StatesOfBatch, int]] = {}  # with the place in the batch
        self.first: Int[Array, "1 n"] | None = None  # the tokens of the first window that was kept

    def has(self, ids: Int[Array, "windows n"]) -> bool:
        return all(row.tobytes() in self._windows for row in ids)

    def at(self, stage: int, ids: Int[Array, "windows n"]) -> Float[Array, "windows n d"]:
        found = (self._windows[row.tobytes()] for row in ids)
        return np.stack([batch[stage][place] for batch, place in found])

    def has_room(self, ids: Int[Array, "windows n"]) -> bool:
        """Return whether the states of windows are to be kept: there is room for some, and they aren't here."""
        return self._free > 0 and not self.has(ids)

    def keep(self, ids: Int[Array, "windows n"], states: StatesOfBatch) -> None:
        self._free -= FLOAT_BYTES * sum(each.size for each in states.values())
        if self._free < 0:
            return
        self._windows.update({row.tobytes(): (states, place) for place, row in enumerate(ids)})
        self.first = ids[:1] if self.first is None else self.first


class KeptLoss:
    def __init__(
        self,
        loss: WindowLoss,
        windows: Windows,
        known: dict[tuple[int, bytes], float],
        is_changed: Callable[[], bool],
        passed: Callable[[int], None],
    ) -> None:
        self.unit = loss.unit
        self._loss, self._known, self._is_changed, self._passed = loss, known, is_changed, passed
        self._names = [(window, row.tobytes()) for window, row in enumerate(windows.ids)]  # masks go by the number

    def per_window(self, see: SeePredictions | None = None) -> Float[Array, " windows"]:
        if see is not None or self._is_changed():
            return self._loss.per_window(see)
        if all(name in self._known for name in self._names):
            self._passed(len(self._names))
        else:
            self._known.update(zip(self._names, self._loss.per_window().tolist(), strict=True))
        return np.array([self._known[name] for name in self._names])
