"""Checkpoints of nanoGPT's training script: `model_args` is the config, beside the tensors."""

from collections.abc import Collection, Mapping
from typing import Any

from generators.base import notices
from generators.base.errors import InputError
from generators.checkpoint.sources.dialects import Dialect

KNOWN = ("n_layer", "n_head", "n_embd", "block_size", "vocab_size", "bias", "dropout")
META, TOKENIZER = "meta.pkl", "tokenizer.json"
PICKLE = f"and its {META} is a pickle, which isn't read: its tokens have no names."
ABSENT = (
    f"which stores no tokenizer: its tokens have no names. If it was trained on GPT-2's, put {TOKENIZER} beside it."
)
OURS = frozenset(("n_layer", "n_embd", "block_size"))  # scripts of other models have `model_args`, too


def nanogpt(
    settings: Mapping[str, Any], names: Collection[str], beside: Collection[str], place: str
) -> Dialect | None:
    """Return how to read a checkpoint of nanoGPT; None where it is none. `beside`: the files in its folder.

    Raises InputError: it is of a script that was changed in a way that the tables don't know.
    """
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
        notices.say_once(f"{place} is of nanoGPT, {PICKLE if META in beside else ABSENT}")
    has_biases = any(name.endswith("c_attn.bias") for name in names)
    own = {key: args[key] for key in KNOWN if key in args}
    return Dialect("nanoGPT", {"model_type": "nanogpt", "bias": has_biases, **own})
