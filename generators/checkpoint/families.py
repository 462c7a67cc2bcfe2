"""One table per architecture family: role -> tensor. Adding a family is adding a table.

A *role* is what a tensor does (`blocks.3.attn.q`), not what a checkpoint calls it. Weights that read from the
residual stream and weights that write to it are both handed out as (d, m), stream side first; a table says with
`transposed` where the file stores the other way round. Norms are named by function: `blocks.{i}.ln1.gain`
belongs to the norm whose output attention i reads, `blocks.{i}.ln2.gain` to the one whose output MLP i reads.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from generators.base.architecture import Architecture
from generators.base.errors import InputError

LARGEST_SIZE = 10_000_000  # no width or vocabulary is larger; a config that says so is damaged
MOST_LAYERS = 10_000  # every role of every layer is looked up: more would keep a damaged config busy for minutes


@dataclass(frozen=True)
class Slot:
    """Where a role lives: a tensor name with {i} (this layer) or {j} (the layer before), and its layout.

    `shape` names the axes of what is handed out: n positions, V tokens, d stream width, a attention width,
    b attention width of keys and values, f MLP width. `part` (index, count) is one of several equal column blocks of
    a fused tensor.
    """

    tensor: str
    shape: str
    transposed: bool = False
    part: tuple[int, int] | None = None


@dataclass(frozen=True)
class Family:
    """How one family of checkpoints is configured and what it calls its tensors."""

    name: str
    model_types: tuple[str, ...]
    prefixes: tuple[str, ...]
    config: Mapping[str, str]  # field of Architecture -> key of config.json
    slots: Mapping[str, Slot]  # roles outside the blocks
    block_slots: Mapping[str, Slot]  # roles inside block i, without their "blocks.{i}."
    first_block_slots: Mapping[str, Slot | None] = field(default_factory=lambda: MappingProxyType({}))
    causal: bool = True
    post_norm: bool = False
    tied: bool = True  # unless config.json says otherwise
    aliases: tuple[tuple[str, str], ...] = ()  # endings of tensor names, and what older files write instead
    without: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # role -> why there is none

    def spellings(self, tensor: str) -> Iterator[str]:
        """Yield every name that a file of this family may give a tensor."""
        old = [tensor.removesuffix(new) + old for new, old in self.aliases if tensor.endswith(new)]
        for name in (tensor, *old):
            for prefix in self.prefixes:
                yield prefix + name

    def roles(self, n_layer: int) -> Iterator[tuple[str, Slot]]:
        """Yield every role of a model of `n_layer` layers with its slot, names filled in."""
        yield from self.slots.items()
        for i in range(n_layer):
            slots = {**self.block_slots, **(self.first_block_slots if i == 0 else {})}
            for role, slot in slots.items():
                if slot is not None:
                    yield f"blocks.{i}.{role}", _filled(slot, i)


def _filled(slot: Slot, layer: int) -> Slot:
    return Slot(slot.tensor.format(i=layer, j=layer - 1), slot.shape, slot.transposed, slot.part)


def _conv1d_blocks(block: str) -> dict[str, Slot]:
    """Return the attention and MLP tensors that GPT-1 and GPT-2 share: fused Q, K, V, stored input first."""
    slots = {}
    for index, name in enumerate("qkv"):
        slots[f"attn.{name}"] = Slot(f"{block}.attn.c_attn.weight", "d a", part=(index, 3))
        slots[f"attn.{name}.bias"] = Slot(f"{block}.attn.c_attn.bias", "a", part=(index, 3))
    slots["attn.o"] = Slot(f"{block}.attn.c_proj.weight", "d a", transposed=True)
    slots["mlp.in"] = Slot(f"{block}.mlp.c_fc.weight", "d f")
    slots["mlp.out"] = Slot(f"{block}.mlp.c_proj.weight", "d f", transposed=True)
    return slots


def _norm(role: str, tensor: str) -> dict[str, Slot]:
    return {f"{role}.gain": Slot(f"{tensor}.weight", "d"), f"{role}.bias": Slot(f"{tensor}.bias", "d")}


GPT_CONFIG = {
    "n_layer": "n_layer",
    "n_head": "n_head",
    "d_model": "n_embd",
    "n_ctx": "n_positions",
    "vocab_size": "vocab_size",
    "norm_eps": "layer_norm_epsilon",
}

GPT2 = Family(
    name="gpt2",
    model_types=("gpt2",),
    prefixes=("", "transformer."),
    config=GPT_CONFIG,
    slots={
        "position_embedding": Slot("wpe.weight", "n d"),
        "token_embedding": Slot("wte.weight", "V d"),
        "unembedding": Slot("lm_head.weight", "V d"),
        **_norm("final_norm", "ln_f"),
    },
    block_slots={
        **_norm("ln1", "h.{i}.ln_1"),
        **_norm("ln2", "h.{i}.ln_2"),
        **_conv1d_blocks("h.{i}"),
    },
)

GPT1 = Family(
    name="openai-gpt",
    model_types=("openai-gpt",),
    prefixes=("", "transformer."),
    config=GPT_CONFIG,
    slots={
        "position_embedding": Slot("positions_embed.weight", "n d"),
        "token_embedding": Slot("tokens_embed.weight", "V d"),
    },
    block_slots={
        **_norm("ln1", "h.{j}.ln_2"),
        **_norm("ln2", "h.{i}.ln_1"),
        **_conv1d_blocks("h.{i}"),
    },
    first_block_slots={"ln1.gain": None, "ln1.bias": None},
    post_norm=True,
)


def _bert_attention(block: str) -> dict[str, Slot]:
    slots = {}
    for role, name in (("q", "query"), ("k", "key"), ("v", "value")):
        slots[f"attn.{role}"] = Slot(f"{block}.attention.self.{name}.weight", "d a", transposed=True)
        slots[f"attn.{role}.bias"] = Slot(f"{block}.attention.self.{name}.bias", "a")
    slots["attn.o"] = Slot(f"{block}.attention.output.dense.weight", "d a")
    return slots


BERT = Family(
    name="bert",
    model_types=("bert",),
    prefixes=("", "bert."),
    config={
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "d_model": "hidden_size",
        "n_ctx": "max_position_embeddings",
        "vocab_size": "vocab_size",
        "norm_eps": "layer_norm_eps",
    },
    slots={
        "position_embedding": Slot("embeddings.position_embeddings.weight", "n d"),
        "token_embedding": Slot("embeddings.word_embeddings.weight", "V d"),
    },
    block_slots={
        **_norm("ln1", "encoder.layer.{j}.output.LayerNorm"),
        **_norm("ln2", "encoder.layer.{i}.attention.output.LayerNorm"),
        **_bert_attention("encoder.layer.{i}"),
        "mlp.in": Slot("encoder.layer.{i}.intermediate.dense.weight", "d f", transposed=True),
        "mlp.out": Slot("encoder.layer.{i}.output.dense.weight", "d f"),
    },
    first_block_slots=_norm("ln1", "embeddings.LayerNorm"),
    aliases=(("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")),
    causal=False,
    post_norm=True,
)

LLAMA = Family(
    name="llama",
    model_types=("llama", "mistral", "qwen2"),
    prefixes=("model.", ""),
    config={
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "d_model": "hidden_size",
        "n_ctx": "max_position_embeddings",
        "vocab_size": "vocab_size",
        "norm_eps": "rms_norm_eps",
    },
    slots={
        "token_embedding": Slot("embed_tokens.weight", "V d"),
        "unembedding": Slot("lm_head.weight", "V d"),
        "final_norm.gain": Slot("norm.weight", "d"),
    },
    block_slots={
        "ln1.gain": Slot("layers.{i}.input_layernorm.weight", "d"),
        "ln2.gain": Slot("layers.{i}.post_attention_layernorm.weight", "d"),
        "attn.q": Slot("layers.{i}.self_attn.q_proj.weight", "d a", transposed=True),
        "attn.k": Slot("layers.{i}.self_attn.k_proj.weight", "d b", transposed=True),
        "attn.v": Slot("layers.{i}.self_attn.v_proj.weight", "d b", transposed=True),
        "attn.o": Slot("layers.{i}.self_attn.o_proj.weight", "d a"),
        "mlp.in": Slot("layers.{i}.mlp.up_proj.weight", "d f", transposed=True),
        "mlp.gate": Slot("layers.{i}.mlp.gate_proj.weight", "d f", transposed=True),
        "mlp.out": Slot("layers.{i}.mlp.down_proj.weight", "d f"),
    },
    tied=False,
    without={
        "position_embedding": "Positions enter as rotations inside attention: this architecture has no position "
        "embedding to look at."
    },
)

FAMILIES = (GPT2, GPT1, BERT, LLAMA)


def read_config(path: Path) -> dict[str, Any]:
    """Read a checkpoint's config.json.

    Raises:
        InputError: it can't be read or isn't a JSON object.
    """
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read: {error}.") from error
    except (ValueError, RecursionError) as error:  # ValueError: not JSON, or a number of thousands of digits
        raise InputError(f"{path} isn't valid JSON: {error}.") from error
    if not isinstance(config, dict):
        raise InputError(f"{path} must hold a JSON object, not {type(config).__name__}.")
    return config


def choose_family(config: Mapping[str, Any], family: str | None) -> Family:
    """Return the family called `family`, or the one that config.json's `model_type` names.

    Raises:
        InputError: no such family; names those there are.
    """
    wanted = family or config.get("model_type")
    for known in FAMILIES:
        if wanted == known.name or (family is None and wanted in known.model_types):
            return known
    names = ", ".join(known.name for known in FAMILIES)
    if wanted is None:
        raise InputError(f"config.json has no model_type; the atlas knows the families {names}.")
    raise InputError(f"The architecture family {wanted!r} is unknown; the atlas knows {names}.")


def read_architecture(config: Mapping[str, Any], family: Family) -> Architecture:
    """Read the sizes that findings need from config.json.

    Raises:
        InputError: a size is absent or can't be.
    """
    sizes = {
        name: _size(config, key, MOST_LAYERS if name == "n_layer" else LARGEST_SIZE)
        for name, key in family.config.items()
        if name != "norm_eps"
    }
    if not config.get("head_dim") and sizes["d_model"] % sizes["n_head"]:
        raise InputError(
            f"config.json says {sizes['n_head']} heads share a width of {sizes['d_model']}, which doesn't divide."
        )
    eps = config.get(family.config["norm_eps"], 1e-5)
    if isinstance(eps, bool) or not isinstance(eps, int | float) or not 0 <= eps < 1:
        raise InputError(f"config.json gives {eps!r} as {family.config['norm_eps']}, not a small number.")
    return Architecture(
        family=family.name,
        n_layer=sizes["n_layer"],
        n_head=sizes["n_head"],
        d_model=sizes["d_model"],
        n_ctx=sizes["n_ctx"],
        vocab_size=sizes["vocab_size"],
        d_head=_size(config, "head_dim") if config.get("head_dim") else sizes["d_model"] // sizes["n_head"],
        norm_eps=float(eps),
        causal=family.causal,
        post_norm=family.post_norm,
        scaled_by_layer=config.get("scale_attn_by_inverse_layer_idx") is True,
        n_kv_head=_size(config, "num_key_value_heads") if config.get("num_key_value_heads") else None,
        tied=bool(config.get("tie_word_embeddings", family.tied)),
    )


def _size(config: Mapping[str, Any], key: str, largest: int = LARGEST_SIZE) -> int:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= largest:
        raise InputError(f"config.json gives {value!r} as {key}, not a whole number from 1 to {largest}.")
    return value
