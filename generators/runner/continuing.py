"""Logits after the last token of rows that begin alike: what they share is run once."""

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Int
from numpy import ndarray as Array

SAME = 1e-3  # largest difference of logits that are the same, relative to the largest logit
TOKENS = 256  # run at once of rows that continue a beginning


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
    only = {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
    return model(input_ids=batch, **options, **only).logits[:, -1]


def continued_from(model: Any, rows: Any, length: int) -> Callable[[Any], Any] | None:
    """Return `last_logits` of rows that begin with the `length` tokens that these share, which are run here.

    None where the model can't continue from them, which is tried: architectures differ in what they cache and in how
    they count positions after it.
    """
    try:
        shared = model(input_ids=rows[:1, :length], use_cache=True).past_key_values

        def continued(batch: Any) -> Any:
            past = copy.deepcopy(shared)  # a run adds to it
            past.batch_repeat_interleave(len(batch))
            return last_logits(model, batch[:, length:], past_key_values=past, use_cache=True)

        tried = continued(rows)
    except Exception:  # transformers raises all kinds of errors
        return None
    whole = last_logits(model, rows, use_cache=False)
    return continued if float((tried - whole).abs().max()) <= SAME * float(whole.abs().max()) else None
