"""Prompts that ask to repeat a token, by example, as a model that only continues text can be asked."""

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

from generators.base.runs import Run

# The text before a token, between it and its repetition, and after that.
TEMPLATES = (("Input: ", "\nOutput: ", "\n"), ("Say ", ", please. ", "\n"), ('"', '" is the same as "', '"\n'))
EXAMPLES = 4  # frequent tokens that each prompt repeats first
FREQUENT = 40  # frequent tokens by which it is seen whether the model can repeat at all


def repeated(
    run: Run, ids: Int[Array, " n"], frequent: Int[Array, " m"]
) -> tuple[Bool[Array, " n"], Float[Array, " n"]]:
    """Return whether any of three prompts brings each token back as the likeliest, and its largest probability."""
    back, probability = np.zeros(len(ids), bool), np.zeros(len(ids))
    for template in TEMPLATES:
        prompts = np.array([_prompt(run, template, int(i), frequent) for i in ids], np.int32)

        def see(begin: int, logits: Float[Array, "batch n V"]) -> None:
            last = logits[:, -1].astype(np.float64)
            wanted = ids[begin : begin + len(last)]
            own = np.take_along_axis(last, wanted[:, None], axis=1)[:, 0]
            at = slice(begin, begin + len(last))
            back[at] |= own >= last.max(axis=1)
            probability[at] = np.maximum(probability[at], np.exp(own - np.logaddexp.reduce(last, axis=1)))

        run.logits(prompts, see)
    return back, probability


def _prompt(run: Run, template: tuple[str, str, str], token: int, frequent: Int[Array, " m"]) -> list[int]:
    """Return the prompt as token ids, up to where the token would be repeated."""
    before, between, after = (list(run.encode(part)) for part in template)
    ids = list(run.text.before)
    examples = [int(i) for i in frequent if int(i) != token][:EXAMPLES]
    for example in examples:
        ids += [*before, example, *between, example, *after]
    return [*ids, *before, token, *between]
