"""Whether a model can read the shipped text; where it can't, its own samples are the text that it is run on.

A causal model that predicts the shipped text worse than the frequencies of its tokens do shows nothing on it. What it
writes itself is text that it knows.
"""

from typing import Any

import numpy as np
from jaxtyping import Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.runner import budget
from generators.runner.errors import CannotRunError
from generators.runner.texts import TokenizedText, digest_of_ids, window_length

NAME = "the model's own samples"
SEED = 20240229
MOST_SAMPLES = 128  # twice as many as any finding reads
MOST_WINDOWS = 64  # windows of shipped text used to decide whether the model can read it
OPERATIONS = 30 * budget.ASSUMED_SPEED["cpu"]  # for either text; independent of the user's budget
LARGEST_BATCH, CACHE_BYTES = 64, 256 * 2**20  # samples written at once; bytes of their keys and values


class TextChoice(TypedDict):
    """How well a model predicts the shipped text, in nats per token, and its samples where that is too badly."""

    loss: float
    entropy: float
    start: int
    ids: list[int] | None


# `run` is a `run.OpenedModel`, whose module imports this one.


def known_text(run: Any, shipped: TokenizedText) -> TokenizedText:
    """Return the shipped text if the model predicts it better than token frequencies do, else its own samples."""
    found = run.remember(lambda: _known(run, shipped))
    if found["loss"] < found["entropy"]:
        return shipped
    if found["ids"] is None:
        raise CannotRunError(
            f"The model can't be run on a text that it knows: in the shipped text it predicts tokens worse "
            f"({found['loss']:.2f} nats) than their frequencies do ({found['entropy']:.2f})."
        )
    return _as_text(run, found["start"], np.array(found["ids"], np.int32))


def written_by(run: Any) -> TokenizedText:
    """Return a model's own samples: at temperature 1, nothing cut off, from its start token, from a fixed seed."""
    start = start_token(run.config, run.architecture.vocab_size or 0)
    length = window_length(run.architecture.n_ctx) - 1
    count = _affordable(run, MOST_SAMPLES)
    sample_bytes = 8 * run.architecture.n_layer * run.architecture.d_model * length
    batch = max(1, min(LARGEST_BATCH, CACHE_BYTES // sample_bytes))
    # Each sample has random numbers of its own, so the first ones are the same however many there are.
    drawn = np.stack([np.random.default_rng([SEED, sample]).random(length) for sample in range(count)])
    rows = [run.write(start, drawn[begin : begin + batch]) for begin in range(0, count, batch)]
    return _as_text(run, start, np.concatenate(rows).ravel())


def start_token(config: Any, vocab_size: int) -> int:
    """Return the token that a model's texts begin with: its own, else the one that ends them."""
    settings = config.get_text_config()
    named = (getattr(settings, name, None) for name in ("bos_token_id", "eos_token_id"))
    found = [token for token in named if isinstance(token, int) and 0 <= token < vocab_size]
    if not found:
        raise CannotRunError("The model can't be run on its own samples: its config names no start token.")
    return found[0]


def _known(run: Any, shipped: TokenizedText) -> TextChoice:
    from scipy.stats import entropy

    windows = shipped.windows(_affordable(run, MOST_WINDOWS), window_length(run.architecture.n_ctx), SEED)
    loss = float(run.unstored_loss(windows).per_window().mean())
    if not np.isfinite(loss):
        raise CannotRunError("The model can't be run on text: what it predicts is not a number.")
    found = TextChoice(loss=loss, entropy=float(entropy(np.bincount(shipped.ids))), start=0, ids=None)
    if found["loss"] >= found["entropy"] and run.architecture.causal:
        text = written_by(run)
        found |= {"start": text.before[0], "ids": text.ids.tolist()}
    return found


def _affordable(run: Any, count: int) -> int:
    each = run.operations(window_length(run.architecture.n_ctx))
    return budget.affordable(count, each, OPERATIONS, 1.0)


def _as_text(run: Any, start: int, ids: Int[Array, " tokens"]) -> TokenizedText:
    # Samples are independent of one another, so each counts as a file when intervals are made.
    starts = range(0, len(ids), window_length(run.architecture.n_ctx) - 1)
    return TokenizedText(NAME, digest_of_ids(ids), ids.astype(np.int32), before=(start,), starts=tuple(starts))
