"""Logits after the last token of rows that begin alike: what they share is run once."""

import copy
import inspect
from typing import Any

import numpy as np
from jaxtyping import Bool, Int
from numpy import ndarray as Array

SAME = 1e-3  # largest difference of logits that are the same, relative to the largest logit
TOKENS = 256  # run at once of rows that continue a beginning
LAST_ONLY = "logits_to_keep"


def common_beginning(ids: Int[Array, "rows n"]) -> tuple[int, Bool[Array, " rows"]]:
    """Return how many leading tokens most rows share with the last one, and which rows do; never whole rows.

    Example:
        >>> common_beginning(np.array([[1, 2, 3], [9, 2, 3], [1, 2, 4]]))
        (2, array([ True, False,  True]))
    """
    alike = np.cumprod(ids == ids[-1], axis=1).sum(axis=1)
    length = min(int(np.median(alike)), ids.shape[1] - 1)
    return length, alike >= length


def last_logits(model: Any, batch: Any, **options: Any) -> Any:
    only = {LAST_ONLY: 1} if LAST_ONLY in inspect.signature(model.forward).parameters else {}
    return model(input_ids=batch, **options, **only).logits[:, -1]


class Beginning:
    """What a causal model computed of a row of tokens (1, m), for rows that begin with them."""

    def __init__(self, model: Any, tokens: Any) -> None:
        self._model, self.length = model, tokens.shape[1]
        self._past = model(input_ids=tokens, use_cache=True).past_key_values

    def last_logits(self, batch: Any) -> Any:
        """Return the logits after the last token of rows (rows, n) that begin with these tokens."""
        past = copy.deepcopy(self._past)  # a run adds to it
        past.batch_repeat_interleave(len(batch))
        return last_logits(self._model, batch[:, self.length :], past_key_values=past, use_cache=True)


def beginning_of(model: Any, rows: Any, length: int) -> Beginning | None:
    """Return the first `length` tokens of rows that share them, None where the model can't continue from them.

    Whether it can is tried: architectures differ in what they cache and in how they count positions after it.
    """
    try:
        found = Beginning(model, rows[:1, :length])
        continued = found.last_logits(rows)
    except Exception:  # transformers raises all kinds of errors
        return None
    whole = last_logits(model, rows, use_cache=False)
    return found if float((continued - whole).abs().max()) <= SAME * float(whole.abs().max()) else None
