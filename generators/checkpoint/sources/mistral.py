"""Mistral's own files: consolidated.safetensors, with params.json beside it."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from generators.base.errors import InputError
from generators.checkpoint.sources.dialects import Dialect, neighbors_turned

PARAMS = "params.json"
QUERIES, OUTPUT = ".attention.wq.weight", "output.weight"
OURS = frozenset(("dim", "n_layers", "n_heads", "head_dim", "hidden_dim"))  # Meta's params.json lacks the last two
KEYS = {  # of params.json -> of config.json
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "hidden_dim": "intermediate_size",
    "norm_eps": "rms_norm_eps",
    "vocab_size": "vocab_size",
    "rope_theta": "rope_theta",
    "sliding_window": "sliding_window",
    "max_seq_len": "max_position_embeddings",
    "max_position_embeddings": "max_position_embeddings",
}
HARMLESS = ("model_type", "tied_embeddings", "dtype", "max_batch_size")
MODULES = {
    "embed_tokens": "tok_embeddings",
    "norm": "norm",
    "lm_head": "output",
    "layers.{i}.input_layernorm": "layers.{i}.attention_norm",
    "layers.{i}.post_attention_layernorm": "layers.{i}.ffn_norm",
    "layers.{i}.self_attn.q_proj": "layers.{i}.attention.wq",
    "layers.{i}.self_attn.k_proj": "layers.{i}.attention.wk",
    "layers.{i}.self_attn.v_proj": "layers.{i}.attention.wv",
    "layers.{i}.self_attn.o_proj": "layers.{i}.attention.wo",
    "layers.{i}.mlp.gate_proj": "layers.{i}.feed_forward.w1",
    "layers.{i}.mlp.up_proj": "layers.{i}.feed_forward.w3",
    "layers.{i}.mlp.down_proj": "layers.{i}.feed_forward.w2",
}
# What mistral-inference takes where params.json is silent: the smaller one for models with a window.
BASE, BASE_WITH_WINDOW = 1e6, 1e4


def mistral(names: Collection[str], said_in: Callable[[str], Mapping[str, Any]], place: str) -> Dialect | None:
    """Return how to read Mistral's own files; None where these are none. Raises InputError: params.json is odd."""
    if not any(name.endswith(QUERIES) for name in names) or not (params := said_in(PARAMS)).keys() >= OURS:
        return None
    other = next((key for key, value in params.items() if key not in (*KEYS, *HARMLESS) and value), None)
    if other is not None:
        raise InputError(
            f"{place} holds Mistral's own files, whose {PARAMS} sets {other} to {str(params[other])[:40]}, which the "
            "atlas doesn't read. Name the model in transformers' format."
        )
    config: dict[str, Any] = {"model_type": "mistral", "sliding_window": None}
    config["tie_word_embeddings"] = OUTPUT not in names
    config |= {KEYS[key]: value for key, value in params.items() if key in KEYS}
    if not config.get("rope_theta"):
        config["rope_theta"] = BASE_WITH_WINDOW if config["sliding_window"] else BASE
    layouts = neighbors_turned(config, r"\.wq\.", r"\.wk\.")
    return Dialect("Mistral", config, MODULES, layouts=layouts, names_all=True)
