"""Prompts that ask to repeat a token, by example, as a model that only continues text can be asked."""

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

from generators.base.runs import Run

# Text before a token, between it and its repetition, and after that.
TEMPLATES = (("Input: ", "\nOutput: ", "\n"), ("Say ", ", please. ", "\n"), ('"', '" is the same as "', '"\n'))
EXAMPLES = 4  # repeated tokens at the start of each prompt; fewer in models with a short context
FREQUENT = 40  # frequent tokens used to test whether the model can repeat at all


def repeated(
    run: Run, ids: Int[Array, " n"], frequent: Int[Array, " m"]
) -> tuple[Bool[Array, " n"], Float[Array, " n"]]:
    """Return whether any of three prompts brings each token back as the likeliest, and its largest probability.

    A prompt that has no room for one example is left out; no token comes back where none of the three has room.
    """
    back, probability = np.zeros(len(ids), bool), np.zeros(len(ids))
    for template in TEMPLATES:
        parts = [list(run.encode(part)) for part in template]
        examples = _fitting(run, parts)
        if not examples:
            continue
        prompts = np.array([_prompt(run, parts, int(i), frequent, examples) for i in ids], np.int32)

        def see(at: Int[Array, " batch"], logits: Float[Array, "batch V"]) -> None:
            last = logits.astype(np.float64)
            own = np.take_along_axis(last, ids[at][:, None], axis=1)[:, 0]
            back[at] |= own >= last.max(axis=1)
            probability[at] = np.maximum(probability[at], np.exp(own - np.logaddexp.reduce(last, axis=1)))

        run.last_logits(prompts, see)
    return back, probability


def _fitting(run: Run, parts: list[list[int]]) -> int:
    if run.architecture.n_ctx is None:
        return EXAMPLES
    before, between, after = (len(part) for part in parts)
    asked = len(run.text.before) + before + 1 + between
    room = max(0, run.architecture.n_ctx - asked)
    return min(EXAMPLES, room // (before + 1 + between + 1 + after))


def _prompt(run: Run, parts: list[list[int]], token: int, frequent: Int[Array, " m"], examples: int) -> list[int]:
    before, between, after = parts
    ids = list(run.text.before)
    for example in [int(i) for i in frequent if int(i) != token][:examples]:
        ids += [*before, example, *between, example, *after]
    return [*ids, *before, token, *between]
