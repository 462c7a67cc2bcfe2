"""State dicts of TransformerLens' HookedTransformer: a tensor per matrix and head, the layer norms perhaps folded."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.base import notices
from generators.base.errors import InputError
from generators.checkpoint.single_files import ENCODER
from generators.checkpoint.sources.dialects import Dialect, Layout
from generators.checkpoint.sources.formats import Header

TOKENS, POSITIONS = "embed.W_E", "pos_embed.W_pos"
LAYOUTS = (
    (r"\.attn\._?W_[QKV]$", Layout("heads first")),
    (r"\.attn\._?b_[QKV]$", Layout("flat heads")),
    (r"\.attn\.W_O$", Layout("flat heads")),
)
CENTERED = 1e-4  # mean over standard deviation of a row: what rounding leaves of zero
SOFTWARE = "TransformerLens"


def is_of_transformer_lens(names: Collection[str]) -> bool:
    return any(re.search(rf"(^|\.){re.escape(TOKENS)}$", name) for name in names)


def transformer_lens(
    names: Collection[str],
    header: Callable[[str], Header],
    read: Callable[[str], Array],
    said: Mapping[str, Any],
    place: str,
) -> Dialect:
    """Return how to read a state dict of TransformerLens.

    `said` is its cfg as plain data; empty where only names and shapes are known.

    Raises InputError: names and shapes don't say enough.
    """
    prefix = next(name for name in names if name.endswith(TOKENS)).removesuffix(TOKENS)
    named = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    if f"embed.{TOKENS}" in names:
        raise InputError(f"{place} is {ENCODER}")
    cfg = {**said, **_of_shapes(named, lambda name: header(prefix + name).shape, place)}
    folded = "blocks.0.ln1.w" not in named
    if "normalization_type" not in said:
        cfg["normalization_type"] = _normalization(named, folded, lambda: read(prefix + POSITIONS), place)
    norms = {
        "folded": folded,
        "final_folded": "ln_final.w" not in named,
        "attn_only": "blocks.0.mlp.W_in" not in named,
        "norm_biases": not named.isdisjoint(("blocks.0.ln1.b", "ln_final.b")),
        "gated_mlp": "blocks.0.mlp.W_gate" in named,
        "tie_word_embeddings": False,  # the file has a matrix of its own
    }
    if folded and cfg["normalization_type"] is not None:
        notices.say_once(
            f"{place}: TransformerLens has folded the gains and biases of layer norms into the matrices that read "
            "them. The model computes the same, but its gains can't be measured. By default TransformerLens also "
            "centers W_E, W_pos, W_U and what blocks write, which can't be undone."
        )
    if not said:
        notices.say_once(
            f"{place} has no cfg beside it (config.json or cfg.json): sizes are read from shapes, and all else is "
            "taken to be TransformerLens' default."
        )
    return Dialect(SOFTWARE, {**cfg, **norms, "model_type": "transformer_lens"}, layouts=LAYOUTS)


def _of_shapes(names: Collection[str], shape: Callable[[str], tuple[int, ...]], place: str) -> dict[str, Any]:
    layers = {int(found[1]) for name in names if (found := re.match(r"blocks\.(\d+)\.", name))}
    if not layers or "blocks.0.attn.W_Q" not in names or POSITIONS not in names:
        raise InputError(
            f"{place} has names of TransformerLens, but not {POSITIONS} and blocks.0.attn.W_Q; the atlas reads its "
            "models with a learned table of positions. Read the original that it was converted from."
        )
    keys = next((name for name in ("blocks.0.attn._W_K", "blocks.0.attn.W_K") if name in names), None)
    for name in sorted({"blocks.0.attn.W_Q", TOKENS, POSITIONS, keys or TOKENS, "unembed.W_U"} & {*names}):
        if len(shape(name)) != (3 if "attn" in name else 2):
            raise InputError(f"{place}: {name} of shape {shape(name)} is no weight of TransformerLens.")
    (n_heads, d_model, d_head), (d_vocab, _) = shape("blocks.0.attn.W_Q"), shape(TOKENS)
    return {
        "n_layers": max(layers) + 1,
        "n_heads": n_heads,
        "d_model": d_model,
        "d_head": d_head,
        "n_ctx": shape(POSITIONS)[0],
        "d_vocab": d_vocab,
        "n_key_value_heads": n_heads if keys is None else shape(keys)[0],
        "d_vocab_out": shape("unembed.W_U")[1] if "unembed.W_U" in names else d_vocab,
    }


def _normalization(names: Collection[str], folded: bool, positions: Callable[[], Array], place: str) -> str:
    """Return which norms the model has, by its names; without any, folded ones have left the embeddings centered."""
    if not folded:
        return "LN" if "blocks.0.ln1.b" in names else "RMS"
    P = positions().astype(np.float64)
    if np.abs(P.mean(axis=1)).max() > CENTERED * P.std():
        raise InputError(
            f"{place} doesn't say whether the model has layer norms that were folded or none at all. Put its cfg "
            "beside it as cfg.json: json.dump({'normalization_type': model.cfg.normalization_type}, ...)."
        )
    return "LNPre"
