"""Runs of the base model that share what they have in common: the stream of the unchanged model on the same windows.

It is kept for as many windows as there is room for. Who watches it later is shown what is kept, and a run that is
changed from some layer on begins there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.runner import watching
from generators.runner.kept import KeptStates, StatesOfBatch
from generators.runner.resuming import only, same_from_the_middle

Show = Callable[[int, Float[Array, "batch n d"]], None]  # called with a stage and its states
BEFORE = -1  # the layer from which a change counts that is made before the first block


class SharedStates:
    """The base model, the changes in force, and the states kept of windows run without any.

    Stage i of the stream is what block i is given, stage n_layer the last hidden state, and stage n_layer + 1 what
    the last block returns, before the final norm.
    """

    def __init__(
        self, blocks: Callable[[], list[Any]], run: Callable[[Any], Any], on_device: Callable[[Array], Any]
    ) -> None:
        self.changes: list[int] = []  # the first layer of each
        self._find_blocks, self._run, self._on_device = blocks, run, on_device
        self._kept = KeptStates()
        self._beside: tuple[int | None] | None = None  # what blocks return beside the stream, once it is known

    def each_stage(
        self, ids: Int[Array, "windows n"], batches: Iterable[tuple[int, Any]], see: Callable[[int, int, Array], None]
    ) -> None:
        for begin, batch in batches:
            rows = ids[begin : begin + len(batch)]
            if not self.changes and self._kept.has(rows):
                for stage in range(len(self._find_blocks()) + 2):
                    see(stage, begin, self._kept.at(stage, rows))
            else:
                self.run(rows, batch, lambda stage, states, begin=begin: see(stage, begin, states))  # type: ignore[misc]

    def run(self, rows: Int[Array, "batch n"], batch: Any, show: Show | None = None) -> Any:
        """Return the last hidden states of a batch; keep all of its states where there is room, and show them."""
        blocks = self._find_blocks()
        stages = len(blocks) + 2
        keep, states = not self.changes and self._kept.has_room(rows), StatesOfBatch()
        if not keep and show is None:
            return self._run(batch)

        def seen(stage: int, found: Any) -> None:
            array = found.detach().cpu().numpy()
            if keep:
                states[stage] = array.copy()  # a model may write over it
            if show is not None:
                show(stage, array)

        after = watching.outputs([blocks[-1]], lambda _, states: seen(stages - 1, states))
        with watching.stream_before(blocks, seen), after:
            found = self._run(batch)
        seen(stages - 2, found)
        if keep:
            self._kept.keep(rows, states)
        return found

    @contextmanager
    def changed_from(self, layer: int, change: AbstractContextManager[None]) -> Iterator[None]:
        """Run with a change that nothing before `layer` depends on."""
        if layer > BEFORE and not self.changes and self._beside is None:
            self._beside = self._form()
        self.changes.append(layer)
        try:
            with change:
                yield
        finally:
            self.changes.pop()

    def part(self, ids: Int[Array, "windows n"], wanted: Sequence[int]) -> range:
        """Return the blocks that have to be run on windows for what happens in some layers: all, if in doubt."""
        n_layer = len(self._find_blocks())
        first = min([*self.changes, *wanted])
        if first == BEFORE or self._beside is None or not self._kept.has(ids):
            return range(n_layer)
        return range(first, max(wanted) + 1)

    @contextmanager
    def only(self, part: range, rows: Int[Array, "batch n"]) -> Iterator[None]:
        """Run these blocks alone; the others pass on what they are given."""
        blocks = self._find_blocks()
        if len(part) == len(blocks) or self._beside is None:
            yield
            return
        with only(blocks, part, self._on_device(self._kept.at(part[0], rows)), *self._beside):
            yield

    def _form(self) -> tuple[int | None] | None:
        """Return what blocks return beside the stream, None where nothing is kept or blocks can't be passed by."""
        rows = self._kept.first
        if rows is None:
            return None
        middle = len(self._find_blocks()) // 2
        states = self._on_device(self._kept.at(middle, rows))
        tokens = self._on_device(rows.astype(np.int64))
        return same_from_the_middle(self._find_blocks(), middle, states, lambda: self._run(tokens))
