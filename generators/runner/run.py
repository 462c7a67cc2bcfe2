"""A model that is ready to be run: token ids in, NumPy out, a batch of windows at a time (`Run` in `base/runs.py`).

Within a context of `replaced` or `held` it runs changed; afterwards it is what it was, whatever happens.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, cached_property, partial
from importlib import metadata
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.base.architecture import Architecture
from generators.base.runs import (
    PositionKind,
    Rotations,
    SeeAttention,
    SeeCompared,
    SeeLogits,
    SeeRows,
    SeeStates,
    WindowLoss,
    Windows,
)
from generators.runner import budget, changing, modules, watching
from generators.runner.budget import BATCH_BYTES, FLOAT_BYTES
from generators.runner.errors import CannotRunError
from generators.runner.kept import KeptLoss
from generators.runner.losses import Drift, PredictedTokens, StoredLoss
from generators.runner.own_samples import TextChoice, known_text, written_by
from generators.runner.positions import find_positions
from generators.runner.shared import BEFORE, SharedStates
from generators.runner.texts import TokenizedText, encode, text_for, window_length

LARGEST_BATCH = 4  # larger batches are slower: their logits don't fit the processor's cache
DIGITS = 16  # digest digits in a folder name

Watch = Callable[[float], None]  # called with the share done of a finding's runs
Remember = Callable[[Callable[[], TextChoice]], TextChoice]  # returns the stored value for this model, or makes it


class OpenedModel:
    """One model and its text. Not for several threads at once: what is replaced is replaced for all.

    Args:
        position_tensor: the name of the tensor that holds the position embedding, by the family's table; None for
            models without one.
        first_row: the row of that tensor that belongs to position 0 (2 where a padding token has rows of its own).
        budget_s: what a finding may take, by which it chooses how many windows it reads.
    """

    def __init__(
        self,
        model: Any,
        folder: Path,
        architecture: Architecture,
        *,
        position_tensor: str | None = None,
        first_row: int = 0,
        device: str,
        budget_s: float = budget.DEFAULT_BUDGET_S,
        text: TokenizedText | None = None,
        largest_batch: int = LARGEST_BATCH,
        remember: Remember = lambda make: make(),
    ) -> None:
        self.architecture, self.remember = architecture, remember
        self.device, self.largest_batch = device, largest_batch
        self._folder, self._text = folder, text
        self.encode = cache(partial(encode, folder))  # each call opens the tokenizer
        self._model, self.config = model, model.config
        self._base = model.base_model
        self.predicts = model is not model.base_model
        self._position_tensor, self._first_row = position_tensor, first_row
        self._shared = SharedStates(lambda: self._blocks, self._base_states, self._as_it_is)
        self._known_losses: dict[tuple[int, bytes], float] = {}
        self.begin(budget_s)

    def begin(self, budget_s: float, watch: Watch | None = None, unfinished: Path | None = None) -> None:
        """Begin to measure something, with losses stored in the folder `unfinished` until it is done."""
        self.budget_s, self._watch, self._unfinished = budget_s, watch, unfinished
        self._losses = 0
        self.was_cut = False  # whether fewer windows were read than asked for, for lack of time
        self._due, self._done = 0.0, 0  # windows, counted once per run

    # Properties

    @property
    def record(self) -> dict[str, str]:
        return {
            "torch": torch.__version__,
            "transformers": metadata.version("transformers"),
            "dtype": "float32",
            "device": self.device,
            "threads": str(budget.THREADS),
        }

    @property
    def position_kind(self) -> PositionKind | None:
        return self._positions.kind if self._positions else None

    @property
    def bos(self) -> int | None:
        named = getattr(self.config, "bos_token_id", None)
        return named if isinstance(named, int) and 0 <= named < (self.architecture.vocab_size or 0) else None

    @cached_property
    def shipped(self) -> TokenizedText:
        if self.architecture.vocab_size is None:
            raise CannotRunError("The model can't be run on text: it has no tokens.")
        return text_for(self._folder, self.architecture.vocab_size, self._text)

    @cached_property
    def text(self) -> TokenizedText:
        text, done = self.shipped, self._done
        unjudged = not self.predicts or (not self.architecture.causal and text.mask_id is None)
        if not unjudged and not text.carried:
            text = known_text(self, text)
            self._done = done  # choosing a text is not part of a finding's progress
        return text

    @cached_property
    def own_samples(self) -> TokenizedText:
        return written_by(self)

    def windows(
        self, count: int, seed: int, passes: float = 1.0, fixed: float = 0.0, *, shipped: bool = False
    ) -> Windows:
        length = window_length(self.architecture.n_ctx)
        text = self.shipped if shipped else self.text
        found = text.windows(self.affordable(count, length, passes), length, seed)
        self._due = len(found.ids) * (passes - fixed / count) + fixed
        return found

    def affordable(self, count: int, length: int, passes: float) -> int:
        speed = budget.assumed_speed(self.device)
        found = budget.affordable(count, self.operations(length) * passes, self.budget_s, speed)
        self.was_cut |= found < count
        return found

    def operations(self, length: int) -> float:
        return budget.operations(self._model, self.architecture, length, predicts=self.predicts)

    # Outputs

    def loss(self, windows: Windows) -> WindowLoss:
        loss = self.unstored_loss(windows)
        if self._unfinished is None:
            return loss
        self._losses += 1
        text = hashlib.sha256(windows.ids.tobytes()).hexdigest()[:DIGITS]
        return StoredLoss(loss, self._unfinished / f"{self._losses}-{text}", self._pass)

    def logits(self, ids: Int[Array, "windows n"], see: SeeLogits) -> None:
        self.logits_on_device(ids, lambda begin, logits: see(begin, logits.cpu().numpy()))

    def last_logits(self, ids: Int[Array, "rows n"], see: SeeRows) -> None:
        self._check_head()
        only = {"logits_to_keep": 1} if "logits_to_keep" in signature(self._model.forward).parameters else {}
        for begin, batch in self._batches(ids, 3 * FLOAT_BYTES * (self.architecture.vocab_size or 0)):
            see(begin, self._model(input_ids=batch, **self._options(), **only).logits[:, -1].cpu().numpy())

    def states_on_device(self, ids: Int[Array, "windows n"], see: Callable[[int, Any], None]) -> None:
        """Call `see` with the first window of every batch and its last hidden states, a tensor on the device."""
        for begin, batch in self._batches(ids):
            see(begin, self._base_states(batch))

    def logits_on_device(self, ids: Int[Array, "windows n"], see: Callable[[int, Any], None]) -> None:
        self._check_head()
        of_logits = 3 * FLOAT_BYTES * ids.shape[1] * (self.architecture.vocab_size or 0)
        changed = max(self._shared.changes, default=BEFORE) > BEFORE  # else all blocks are run anyway
        part = self._shared.part(ids, [len(self._blocks) - 1]) if changed else range(0)
        for begin, batch in self._batches(ids, of_logits):
            with self._shared.only(part, ids[begin : begin + len(batch)]) if changed else nullcontext():
                see(begin, self._model(input_ids=batch, **self._options()).logits)

    def write(self, start: int, drawn: Float[Array, "samples n"]) -> Int[Array, "samples n"]:
        """Return what a causal model writes after the token `start`, at temperature 1 and with nothing cut off.

        Each of the uniform numbers `drawn` chooses a token by the cumulated probabilities.

        Raises CannotRunError: the model can't continue from what it computed before.
        """
        tokens = torch.full((len(drawn), 1), start, device=self.device)
        past, written = None, []
        with self._computing():
            for at in torch.as_tensor(drawn.T, device=self.device):
                found = self._model(input_ids=tokens, past_key_values=past, use_cache=True)
                past = getattr(found, "past_key_values", None)
                if past is None:
                    raise CannotRunError("This architecture can't write text token by token.")
                upto = found.logits[:, -1].double().softmax(dim=-1).cumsum(dim=-1)
                tokens = torch.searchsorted(upto, at[:, None] * upto[:, -1:], right=True)
                tokens.clamp_(max=upto.shape[1] - 1)
                written.append(tokens.cpu().numpy())
        return np.hstack(written).astype(np.int32)

    def hidden_states(self, ids: Int[Array, "windows n"], see: SeeStates) -> None:
        returned = len(self._blocks) + 1

        def show(stage: int, begin: int, states: Float[Array, "batch n d"]) -> None:
            if stage != returned:
                see(stage, begin, states)

        self._shared.each_stage(ids, self._batches(ids), show)

    def mlp_outputs(self, ids: Int[Array, "windows n"], see: SeeStates) -> bool:
        found = [watching.mlp_of(block) for block in self._blocks]
        if None in found:
            return False
        first, shape = 0, (-1, ids.shape[1], self.architecture.d_model)

        def wrote(layer: int, output: Any) -> None:
            see(layer, first, output.detach().reshape(shape).cpu().numpy())

        with watching.outputs(found, wrote):
            for begin, batch in self._batches(ids):
                first = begin
                self._base_states(batch)
        return True

    def attention(
        self,
        ids: Int[Array, "windows n"],
        see: SeeAttention,
        *,
        scores: bool = False,
        layers: Sequence[int] | None = None,
    ) -> None:
        wanted, at = range(len(self._blocks)) if layers is None else layers, 0

        def looked(layer: int, found: Any) -> None:
            if layer in wanted:
                see(layer, at, found.detach().cpu().numpy())

        part = self._shared.part(ids, wanted)
        run = self._shared.run if len(part) == len(self._blocks) else lambda _, batch: self._base_states(batch)
        with watching.attention(self._blocks, looked, part, scores=scores) as end:
            for begin, batch in self._batches(ids):
                at, rows = begin, ids[begin : begin + len(batch)]
                with self._shared.only(part, rows):
                    run(rows, batch)
                end()

    def queries_keys_values(self, ids: Int[Array, "windows n"], see: SeeCompared) -> bool:
        begin = layer = 0

        def compared(*arrays: Any) -> None:
            nonlocal layer
            see(layer, begin, *(array.detach().cpu().numpy() for array in arrays))
            layer += 1

        try:
            with watching.compared(self._base, compared):
                for begin, batch in self._batches(ids):  # noqa: B007 (`compared` reads it)
                    layer = 0
                    self._base_states(batch)
        except CannotRunError:
            return False
        return layer == self.architecture.n_layer

    # Changes

    @contextmanager
    def replaced(
        self,
        *,
        rows: Float[Array, "m d"] | None = None,
        ids: Float[Array, " n"] | None = None,
        rotations: Rotations | None = None,
    ) -> Iterator[None]:
        found = self._positions
        if found is None:
            raise CannotRunError("Nothing in this model's positions can be replaced.")
        if rows is not None:
            change = found.rows(rows)
        elif ids is not None:
            change = found.ids(ids)
        elif rotations is not None:
            change = found.rotations(rotations)
        else:
            raise ValueError("rows, ids or rotations are to be given")
        with self._shared.changed_from(BEFORE, change):
            yield

    def held(
        self, channels: Sequence[int], values: Float[Array, "stages ... channels"], *, last: bool = True
    ) -> AbstractContextManager[None]:
        places = torch.as_tensor(list(channels), device=self.device)
        change = changing.held(self._blocks, places, self._on_device(values), last=last)
        first = next((i for i, level in enumerate(values[:-1]) if not np.isnan(level).all()), 0)
        return self._shared.changed_from(first or BEFORE, change)

    def shifted(self, by: Float[Array, " d"]) -> AbstractContextManager[None]:
        return self._shared.changed_from(BEFORE, changing.shifted(self._blocks[0], self._on_device(by)))

    def silenced(self, layer: int, heads: Sequence[int]) -> AbstractContextManager[None]:
        width = self.architecture.d_head
        channels = [head * width + i for head in heads for i in range(width)]
        return self._shared.changed_from(layer, changing.silenced(self._outputs[layer], channels))

    def stage_means(self, ids: Int[Array, "windows n"]) -> Float[Array, "stages n d"]:
        last = len(self._blocks)
        sums = np.zeros((last + 1, ids.shape[1], self.architecture.d_model))

        def add(stage: int, begin: int, states: Float[Array, "batch n d"]) -> None:
            if stage != last:  # that is after the final norm; what the last block returns comes next
                sums[min(stage, last)] += states.sum(axis=0, dtype=np.float64)

        self._shared.each_stage(ids, self._batches(ids), add)
        return sums / len(ids)

    # Running

    def unstored_loss(self, windows: Windows) -> WindowLoss:
        if not self.predicts:
            return Drift(self.states_on_device, windows)
        loss = PredictedTokens(self.logits_on_device, windows, causal=self.architecture.causal)
        return KeptLoss(loss, windows, self._known_losses, lambda: bool(self._shared.changes), self._pass)

    def _check_head(self) -> None:
        if not self.predicts:
            raise CannotRunError("This checkpoint has no head that predicts tokens.")

    def _tokens(self, ids: Int[Array, "rows n"]) -> Any:
        return self._as_it_is(ids.astype(np.int64))

    def _pass(self, windows: int) -> None:
        self._done += windows
        if self._watch is not None and self._due:
            self._watch(min(1.0, self._done / self._due))

    @cached_property
    def _blocks(self) -> list[Any]:
        return modules.find_blocks(self._base, self.architecture.n_layer)

    @cached_property
    def _outputs(self) -> list[Any]:
        with self._computing():
            two = self._as_it_is(np.zeros((1, 2), np.int64))
            width = self.architecture.n_head * self.architecture.d_head
            return modules.find_joining(self._blocks, width, lambda: self._base_states(two))

    @cached_property
    def _positions(self) -> Any:
        alibi = self._position_tensor is None
        return find_positions(self._model, self._blocks if alibi else [], self._position_tensor, self._first_row)

    def _as_it_is(self, array: Array) -> Any:
        return torch.as_tensor(array, device=self.device)

    def _on_device(self, array: Float[Array, "..."]) -> Any:
        return self._as_it_is(np.asarray(array, np.float32))

    def _options(self) -> dict[str, Any]:
        return {"use_cache": False} if self.architecture.causal else {}

    def _base_states(self, batch: Any) -> Any:
        return self._base(input_ids=batch, **self._options()).last_hidden_state

    def _batches(self, ids: Int[Array, "windows n"], more_bytes: int = 0) -> Iterator[tuple[int, Any]]:
        """Yield batches of windows, as large as attention, states and `more_bytes` of each allow."""
        n, a = ids.shape[1], self.architecture
        window_bytes = FLOAT_BYTES * n * (3 * a.n_head * n + 12 * a.d_model) + more_bytes
        size = max(1, min(self.largest_batch, BATCH_BYTES // window_bytes))
        with self._computing():
            for begin in range(0, len(ids), size):
                batch = ids[begin : begin + size]
                yield begin, self._tokens(batch)
                self._pass(len(batch))

    @contextmanager
    def _computing(self) -> Iterator[None]:
        threads = torch.get_num_threads()
        torch.set_num_threads(budget.THREADS)
        try:
            with torch.inference_mode():
                yield
        finally:
            torch.set_num_threads(threads)
