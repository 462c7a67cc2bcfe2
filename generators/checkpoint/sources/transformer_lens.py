"""State dicts of TransformerLens' HookedTransformer: a tensor per matrix and head, the layer norms perhaps folded."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from generators.base import notices
from generators.base.errors import InputError
from generators.checkpoint.single_files import ENCODER
from generators.checkpoint.sources.dialects import Dialect, Layout

TOKENS = "embed.W_E"
LAYOUTS = (
    (r"\.attn\._?W_[QKV]$", Layout("heads first")),
    (r"\.attn\._?b_[QKV]$", Layout("flat heads")),
    (r"\.attn\.W_O$", Layout("flat heads")),
)
SOFTWARE = "TransformerLens"


def is_of_transformer_lens(names: Collection[str]) -> bool:
    return any(re.search(rf"(^|\.){re.escape(TOKENS)}$", name) for name in names)


def transformer_lens(names: Collection[str], cfg: Mapping[str, Any], place: str) -> Dialect:
    """Return how to read a state dict of TransformerLens, given its cfg as plain data. Raises InputError: no cfg."""
    prefix = next(name for name in names if name.endswith(TOKENS)).removesuffix(TOKENS)
    named = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    if f"embed.{TOKENS}" in names:
        raise InputError(f"{place} is {ENCODER}")
    if not cfg:
        raise InputError(
            f"{place} is of TransformerLens, and its cfg isn't beside it, which says how its weights are used. Put "
            "it there as cfg.json: json.dump(model.cfg.to_dict(), open('cfg.json', 'w'), default=str)."
        )
    norms = {
        "folded": "blocks.0.ln1.w" not in named,
        "final_folded": "ln_final.w" not in named,
        "attn_only": "blocks.0.mlp.W_in" not in named,
        "norm_biases": not named.isdisjoint(("blocks.0.ln1.b", "ln_final.b")),
        "gated_mlp": "blocks.0.mlp.W_gate" in named,
        "tie_word_embeddings": False,  # the file has a matrix of its own
    }
    if norms["folded"] and cfg.get("normalization_type") is not None:
        notices.say_once(
            f"{place}: TransformerLens has folded the gains and biases of layer norms into the matrices that read "
            "them. The model computes the same, but its gains can't be measured. By default TransformerLens also "
            "centers W_E, W_pos, W_U and what blocks write, which can't be undone."
        )
    return Dialect(SOFTWARE, {**cfg, **norms, "model_type": "transformer_lens"}, layouts=LAYOUTS)
