"""Losses: nats per token, or how far the last hidden states move under a change."""

import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

from generators.base.files import replace_file
from generators.base.runs import SeePredictions, WindowLoss, Windows
from generators.runner.errors import CannotRunError

MASKED_SHARE = 0.15
MASK_SEED = 20231115
# Runs the model on windows and calls back with the first window of each batch and its logits, or hidden states.
RunBatches = Callable[[Int[Array, "windows n"], Callable[[int, Any], None]], None]


class PredictedTokens:
    """Nats that tokens cost, a mean over each window: the next ones of causal models, else masked ones.

    Every window has the same number of masked tokens, always the same ones.
    """

    def __init__(self, run_logits: RunBatches, windows: Windows, *, causal: bool) -> None:
        self._run_logits, self._ids, self._given = run_logits, windows.ids, windows.ids
        self._masked: Bool[Array, "windows n"] | None = None
        self.unit = "nats per token" if causal else "nats per masked token"
        if not causal:
            if windows.mask_id is None:
                raise CannotRunError("The tokenizer names no mask token.")
            self._masked = masked_places(windows)
            self._given = np.where(self._masked, windows.mask_id, windows.ids)

    def per_window(self, see: SeePredictions | None = None) -> Float[Array, " windows"]:
        losses = np.empty(len(self._ids))

        def measure(begin: int, logits: Any) -> None:
            at = slice(begin, begin + len(logits))
            ids = torch.from_numpy(self._ids[at].astype(np.int64)).to(logits.device)
            if self._masked is None:
                predictions, wanted = logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
            else:
                there = torch.from_numpy(self._masked[at]).to(logits.device)
                predictions, wanted = logits[there], ids[there]
            losses[at] = _costs(begin, predictions, wanted, see).reshape(len(ids), -1).mean(axis=1, dtype=np.float64)

        self._run_logits(self._given, measure)
        return losses


class Drift:
    """How far the last hidden states have moved: 1 - cosine with those of the model as it was, a mean over tokens."""

    unit = "1 - cosine"

    def __init__(self, run_states: RunBatches, windows: Windows) -> None:
        self._run_states, self._ids = run_states, windows.ids
        self._before: dict[int, Any] = {}
        run_states(self._ids, lambda begin, states: self._before.update({begin: _unit(states).cpu()}))

    def per_window(self, see: SeePredictions | None = None) -> Float[Array, " windows"]:
        losses = np.empty(len(self._ids))

        def measure(begin: int, states: Any) -> None:
            # Half the squared distance of unit vectors is 1 - cosine, but loses no digits where the two are close.
            apart = (_unit(states).cpu() - self._before[begin]).square().sum(dim=-1) / 2
            losses[begin : begin + len(states)] = apart.double().mean(dim=1).numpy()

        self._run_states(self._ids, measure)
        return losses


class StoredLoss:
    """A loss that stores every measurement in a folder, so that an interrupted run loses one measurement at most.

    The folder belongs to one unfinished result. Every attempt measures the same things in the same order, so the
    number of a measurement names its file.
    """

    def __init__(self, loss: WindowLoss, folder: Path, passed: Callable[[int], None]) -> None:
        self.unit = loss.unit
        self._loss, self._folder, self._passed = loss, folder, passed
        self._count = 0

    def per_window(self, see: SeePredictions | None = None) -> Float[Array, " windows"]:
        """Return the value stored before an interruption, or measure; always measure if `see` is given."""
        self._count += 1
        if see is not None:
            return self._loss.per_window(see)
        file = self._folder / f"{self._count}.npy"
        stored: Array | None = None
        with suppress(OSError, ValueError, EOFError):
            stored = np.load(file, allow_pickle=False)
        if stored is not None:
            self._passed(len(stored))
            return stored
        found = self._loss.per_window()
        buffer = io.BytesIO()
        np.save(buffer, found, allow_pickle=False)
        replace_file(file, buffer.getvalue())
        return found


def masked_places(windows: Windows) -> Bool[Array, "windows n"]:
    """Return which tokens are masked: 15 % of each window's own, at least one; the same for the same windows."""
    first, last = windows.inner
    masked = np.zeros(windows.ids.shape, bool)
    count = max(1, round(MASKED_SHARE * (last - first)))
    for window, row in enumerate(masked):
        drawn = np.random.default_rng([MASK_SEED, window]).permutation(last - first)[:count]
        row[first + drawn] = True
    return masked


def _costs(begin: int, logits: Any, wanted: Any, see: SeePredictions | None) -> Float[Array, " tokens"]:
    if see is None:
        return torch.nn.functional.cross_entropy(logits, wanted, reduction="none").cpu().numpy()
    predictions = torch.log_softmax(logits, dim=-1)
    see(begin, predictions.cpu().numpy(), wanted.cpu().numpy())
    return -predictions.gather(1, wanted[:, None])[:, 0].cpu().numpy()


def _unit(states: Any) -> Any:
    return torch.nn.functional.normalize(states, dim=-1)
