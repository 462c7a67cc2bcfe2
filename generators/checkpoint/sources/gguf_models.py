"""What a GGUF file says of its model, in the words of transformers: its config, names and layouts."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, pi
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.base.errors import InputError
from generators.checkpoint.config import is_number
from generators.checkpoint.sources.dialects import Dialect, Layout, neighbors_turned
from generators.checkpoint.sources.formats import Header
from generators.checkpoint.sources.gguf_files import IN_BLOCKS, Gguf

ARCHITECTURE = "general.architecture"
ROPE_FACTORS = "rope_freqs.weight"
MOST_FACTORS = 4096  # pairs of channels that a head turns
OUTPUT = "output.weight"
DIGIT = re.compile(r"\d")  # in the name of a type: the bits of its weights
MERGE = (
    "Merge it with llama.cpp's `llama-export-lora -m BASE.gguf --lora ADAPTER.gguf -o MERGED.gguf`, and name the "
    "file that this writes."
)
AGAIN = "Convert the original again: llama.cpp's convert_hf_to_gguf.py with --outtype f16, bf16 or q8_0."

LLAMA_MODULES = {
    "embed_tokens": "token_embd",
    "lm_head": "output",
    "norm": "output_norm",
    "layers.{i}.input_layernorm": "blk.{i}.attn_norm",
    "layers.{i}.post_attention_layernorm": "blk.{i}.ffn_norm",
    "layers.{i}.self_attn.q_proj": "blk.{i}.attn_q",
    "layers.{i}.self_attn.k_proj": "blk.{i}.attn_k",
    "layers.{i}.self_attn.v_proj": "blk.{i}.attn_v",
    "layers.{i}.self_attn.o_proj": "blk.{i}.attn_output",
    "layers.{i}.self_attn.q_norm": "blk.{i}.attn_q_norm",
    "layers.{i}.self_attn.k_norm": "blk.{i}.attn_k_norm",
    "layers.{i}.mlp.gate_proj": "blk.{i}.ffn_gate",
    "layers.{i}.mlp.up_proj": "blk.{i}.ffn_up",
    "layers.{i}.mlp.down_proj": "blk.{i}.ffn_down",
}
GEMMA2_MODULES = {
    **LLAMA_MODULES,
    "layers.{i}.post_attention_layernorm": "blk.{i}.post_attention_norm",
    "layers.{i}.pre_feedforward_layernorm": "blk.{i}.ffn_norm",
    "layers.{i}.post_feedforward_layernorm": "blk.{i}.post_ffw_norm",
}
GPT2_MODULES = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "lm_head": "output",
    "ln_f": "output_norm",
    "h.{i}.ln_1": "blk.{i}.attn_norm",
    "h.{i}.ln_2": "blk.{i}.ffn_norm",
    "h.{i}.attn.c_attn": "blk.{i}.attn_qkv",
    "h.{i}.attn.c_proj": "blk.{i}.attn_output",
    "h.{i}.mlp.c_fc": "blk.{i}.ffn_up",
    "h.{i}.mlp.c_proj": "blk.{i}.ffn_down",
}
LLAMA_KEYS = {  # of the metadata, behind the name of the architecture -> of config.json
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
}
GEMMA2_KEYS = {
    **LLAMA_KEYS,
    "attention.sliding_window": "sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
GEMMA3_KEYS = {
    **GEMMA2_KEYS,
    "attention.sliding_window_pattern": "sliding_window_pattern",
    "rope.freq_base_swa": "rope_local_base_freq",
}
GPT2_KEYS = {
    "block_count": "n_layer",
    "context_length": "n_positions",
    "embedding_length": "n_embd",
    "feed_forward_length": "n_inner",
    "attention.head_count": "n_head",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
}
# llama.cpp turns neighboring channels of Llama's queries and keys, transformers halves.
TURNED_PAIRS = r"\.attn_q\.", r"\.attn_k\."
TURNED = ("rope.dimension_count", "rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length")
SAID_TWICE = ("attention.value_length", "rope.scaling.finetuned")


@dataclass(frozen=True)
class Kind:
    """One architecture of llama.cpp's that the tables know.

    `biases`: config.json says which matrices have them. `turned`: queries and keys turn neighboring channels.
    `unlike`: the number of layers of the one size whose scores are scaled by the width of its stream, per head.
    """

    keys: Mapping[str, str]
    modules: Mapping[str, str]
    model_type: str = ""
    rotary: bool = True
    layouts: tuple[tuple[str, Layout], ...] = ()
    biases: tuple[str, ...] = ()
    turned: bool = False
    adds_one: bool = False
    unlike: int | None = None


# llama.cpp stores GPT-2's matrices (out, in), transformers (in, out)
LINEAR = ((r"attn_(qkv|output)\.weight$|ffn_.*\.weight$", Layout("transposed")),)
BIASES = {"attention_bias": "blk.0.attn_q.bias", "mlp_bias": "blk.0.ffn_up.bias"}
KINDS = {
    "llama": Kind(LLAMA_KEYS, LLAMA_MODULES, biases=("attention_bias", "mlp_bias"), turned=True),
    "qwen2": Kind(LLAMA_KEYS, LLAMA_MODULES),
    "qwen3": Kind(LLAMA_KEYS, LLAMA_MODULES, biases=("attention_bias",)),
    "gpt2": Kind(GPT2_KEYS, GPT2_MODULES, rotary=False, layouts=LINEAR),
    "gemma": Kind(LLAMA_KEYS, LLAMA_MODULES, adds_one=True),
    "gemma2": Kind(GEMMA2_KEYS, GEMMA2_MODULES, adds_one=True, unlike=46),
    "gemma3": Kind(GEMMA3_KEYS, GEMMA2_MODULES, "gemma3_text", adds_one=True, unlike=62),
}


def of_gguf(
    said: Mapping[str, Any], headers: Mapping[str, Header], read: Callable[[str], Array], place: str
) -> Dialect:
    """Return how to read a GGUF file with the metadata `said`. Raises InputError: the atlas reads none like it."""
    _check(said, headers, place)
    name = said[ARCHITECTURE]
    kind = KINDS[name]
    ours = {key.removeprefix(f"{name}."): _short(value) for key, value in said.items() if key.startswith(f"{name}.")}
    if ours.get("expert_count"):
        raise InputError(f"{place} is a GGUF file with several MLPs per layer; name the original.")
    config = {kind.keys[key]: value for key, value in ours.items() if key in kind.keys}
    unread = {key: value for key, value in ours.items() if key not in (*kind.keys, *TURNED, *SAID_TWICE)}
    config |= {**unread, "model_type": kind.model_type or name, "tie_word_embeddings": OUTPUT not in headers}
    config |= {switch: BIASES[switch] in headers for switch in kind.biases}
    if "token_embd.weight" in headers and headers["token_embd.weight"].shape:
        config.setdefault("vocab_size", headers["token_embd.weight"].shape[0])
    layouts, factors = kind.layouts, headers.get(ROPE_FACTORS)
    if kind.rotary:
        if factors is not None and not (len(factors.shape) == 1 and 0 < factors.shape[0] <= MOST_FACTORS):
            raise InputError(f"{place} is a GGUF file whose {ROPE_FACTORS} is no short row of numbers.")
        config |= _rotation(ours, None if factors is None else read(ROPE_FACTORS), place)
    if kind.turned:
        layouts = neighbors_turned(config, *TURNED_PAIRS)
    if kind.unlike is not None:
        config["query_pre_attn_scalar"] = _scale_of(ours, kind.unlike)
    return Dialect(
        "llama.cpp",
        config,
        kind.modules,
        layouts=layouts,
        adds_one=kind.adds_one,
        names_all=True,
        note=_rounding(headers),
    )


def _check(said: Mapping[str, Any], headers: Mapping[str, Header], place: str) -> None:
    name, count = said.get(ARCHITECTURE), said.get("split.tensors.count")
    if said.get("general.type") == "adapter":
        raise InputError(f"{place} is a LoRA adapter in GGUF (general.type adapter), which changes a model. {MERGE}")
    if not isinstance(name, str) or name not in KINDS:
        raise InputError(
            f"{place} is a GGUF file of the architecture {str(name)[:60]!r}. The atlas reads GGUF files of "
            f"{', '.join(KINDS)}; name the original that it was converted from."
        )
    if isinstance(count, int) and count != len(headers):
        raise InputError(
            f"{place} has {len(headers)} tensors, and its first file says {count}: its shards aren't of one model."
        )
    other = next((header.dtype for header in headers.values() if header.dtype not in Gguf.dtypes), None)
    if other is not None:
        raise InputError(
            f"{place} has tensors of the type {other}, and the atlas reads floating point and blocks of it. {AGAIN}"
        )


def _rounding(headers: Mapping[str, Header]) -> str | None:
    kinds = Counter(header.dtype for header in headers.values())
    if not kinds.keys() & {*IN_BLOCKS}:
        return None
    bits = sorted(int(number[0]) for kind in kinds if kind in IN_BLOCKS and (number := DIGIT.search(kind)))
    width = f"{bits[0]}" if bits[0] == bits[-1] else f"{bits[0]} to {bits[-1]}"
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return f"A quantized copy, with {width} bits per weight (tensors: {counted}). All its numbers carry rounding."


def _scale_of(said: Mapping[str, Any], unlike: int) -> Any:
    """Return the width whose root Gemma's scores are divided by, which llama.cpp knows by the number of layers."""
    heads, width = said.get("attention.head_count"), said.get("embedding_length")
    if said.get("block_count") == unlike and isinstance(heads, int) and isinstance(width, int) and heads > 0:
        return width // heads
    return said.get("attention.key_length")


def _short(value: Any) -> Any:
    """Return a number as it was before it was stored in 32 bits: 1e-05, and not 9.999999747378752e-06."""
    return float(str(np.float32(value))) if isinstance(value, float) else value


def _rotation(said: Mapping[str, Any], factors: Array | None, place: str) -> dict[str, Any]:
    heads, width = said.get("attention.head_count"), said.get("embedding_length")
    usual = width // heads if isinstance(heads, int) and isinstance(width, int) and heads else None
    head = said.get("attention.key_length", usual)
    if said.get("rope.dimension_count", head) != head or said.get("attention.value_length", head) != head:
        raise InputError(f"{place} is a GGUF file whose heads are turned in part; name the original.")
    kind, factor = said.get("rope.scaling.type", "none"), said.get("rope.scaling.factor")
    for key in ("rope.scaling.factor", "rope.freq_base"):
        value = said.get(key)
        if value and not (is_number(value) and 0 < value < inf):
            raise InputError(f"{place} is a GGUF file that gives {str(value)[:40]!r} as {key}, no number above 0.")
    if factors is not None:
        return {"rope_scaling": _stretched(factors, said.get("rope.freq_base", 10000.0), place)}
    if kind == "linear" and factor:
        return {"rope_scaling": {"rope_type": "linear", "factor": float(factor)}}
    if kind not in ("none", "linear"):
        raise InputError(f"{place} is a GGUF file whose rotations are scaled by {kind!r}; name the original.")
    return {}


def _stretched(factors: Array, base: float, place: str) -> dict[str, Any]:
    """Return the rule of Llama 3.1 that gives these factors, by which each pair's period is multiplied.

    The file holds what the rule gives, and not its numbers. All published models have these but for the largest
    factor, so they are tried, and taken if they give the factors exactly.
    """
    rule = {"factor": float(factors.max()), "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    original = 8192
    periods = 2 * pi * base ** (np.arange(len(factors)) / len(factors))
    smooth = (original / periods - rule["low_freq_factor"]) / (rule["high_freq_factor"] - rule["low_freq_factor"])
    share = np.clip(smooth, 0, 1)
    if np.abs(1 / ((1 - share) / rule["factor"] + share) / factors - 1).max() > 1e-4:
        raise InputError(
            f"{place} is a GGUF file whose rotations are scaled by a rule of its own; name the original."
        )
    return {"rope_type": "llama3", **rule, "original_max_position_embeddings": original}
