"""Checkpoints of nanoGPT, whose `model_args` are the config, and of nanochat.

No table describes nanochat's model, which changes often, but its tokens can be measured.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from generators.base import notices
from generators.base.errors import InputError
from generators.checkpoint.sources.dialects import Dialect
from generators.checkpoint.sources.formats import Header

KNOWN = ("n_layer", "n_head", "n_embd", "block_size", "vocab_size", "bias", "dropout")
TOKENIZER = "tokenizer.json"
OURS = frozenset(("n_layer", "n_embd", "block_size"))  # scripts of other models have `model_args`, too
OF_NANOCHAT = re.compile(r"(^|\.)transformer\.h\.(\d+)\.attn\.c_q\.weight$")
TOKENS = "transformer.wte.weight"


def nanogpt(
    settings: Mapping[str, Any], names: Collection[str], beside: Collection[str], place: str
) -> Dialect | None:
    """Return how to read a checkpoint of nanoGPT; None where it is none. Raises InputError: it is a changed one."""
    args = settings.get("model_args")
    if not isinstance(args, Mapping) or not args.keys() >= OURS:
        return None
    other = next((key for key, value in args.items() if key not in KNOWN and value), None)
    if other is not None:
        raise InputError(
            f"{place} is a checkpoint of a changed nanoGPT: its model_args set {other} to {str(args[other])[:40]}, "
            "which nanoGPT itself doesn't have. The atlas reads nanoGPT's own model."
        )
    if TOKENIZER not in beside:
        notices.say_once(
            f"{place} is of nanoGPT, which stores no tokenizer (a meta.pkl is a pickle, which isn't read): its "
            f"tokens have no names. If it was trained on GPT-2's, put {TOKENIZER} beside it."
        )
    has_biases = any(name.endswith("c_attn.bias") for name in names)
    own = {key: args[key] for key in KNOWN if key in args}
    return Dialect("nanoGPT", {"model_type": "nanogpt", "bias": has_biases, **own})


def nanochat(
    names: Sequence[str], header: Callable[[str], Header], said_in: Callable[[str], Mapping[str, Any]], stem: str
) -> Dialect | None:
    """Return how to read a checkpoint of nanochat; None where it is none.

    `said_in` reads a file beside it, whose own name has the `stem` model_STEP.
    """
    layers = [match for name in names if (match := OF_NANOCHAT.search(name))]
    tokens = next((name for name in names if name.endswith(TOKENS)), None)
    if not layers or tokens is None or not header(tokens).shape:
        return None
    said = said_in(f"meta_{stem.rpartition('_')[2]}.json").get("model_config")
    sizes = said if isinstance(said, Mapping) else {}
    config = {"model_type": "nanochat", "n_layer": len(layers), "vocab_size": header(tokens).shape[0]}
    config |= {ours: sizes[key] for ours, key in (("n_head", "n_head"), ("n_ctx", "sequence_len")) if key in sizes}
    return Dialect("nanochat", config)
