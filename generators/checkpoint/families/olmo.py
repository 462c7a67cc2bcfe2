"""OLMo and EXAONE 4: norms without gains, or behind attention and MLP instead of in front of them."""

from collections.abc import Mapping
from typing import Any

from generators.checkpoint.config import ModelConfig
from generators.checkpoint.families.llama import LLAMA, attention, gated, head_norms, unclipped
from generators.checkpoint.roles import Family, Slot, like
from generators.checkpoint.rotation import FULL, SLIDING, Fields, layer_kinds, rotation, windows

EVERY = 4  # in OLMo 3 and EXAONE 4 every fourth layer sees all keys


def _unclipped(family: Family, settings: ModelConfig) -> Family:
    unclipped(settings, "clip_qkv")
    return family


OLMO = like(
    LLAMA,
    "olmo",
    slots={"final_norm.gain": None},
    block_slots={"ln1.gain": None, "ln2.gain": None, **dict.fromkeys(gated(True)), **gated()},
    norm="layer",
    variant=_unclipped,
    without={
        "blocks.*.ln1.gain": "The layer norms of OLMo have no gains or biases: they only centre and scale.",
        "blocks.*.ln2.gain": "The layer norms of OLMo have no gains or biases: they only centre and scale.",
    },
    bare_norms=True,
)


NORMS_OUTPUTS = "This architecture normalizes what attention and MLP put out: they read the residual stream as it is."

OLMO2 = like(
    LLAMA,
    "olmo2",
    block_slots={
        "ln1.gain": None,
        "ln2.gain": None,
        "attn.out_norm.gain": Slot("layers.{i}.post_attention_layernorm.weight", "d"),
        "mlp.out_norm.gain": Slot("layers.{i}.post_feedforward_layernorm.weight", "d"),
        **head_norms("a"),
        **dict.fromkeys(gated(True)),
        **gated(),
    },
    without={"blocks.*.ln1.gain": NORMS_OUTPUTS, "blocks.*.ln2.gain": NORMS_OUTPUTS},
    defaults={"rms_norm_eps": 1e-5},
)


def _every_fourth(settings: ModelConfig, n_layer: int, every: int) -> list[str]:
    return layer_kinds(settings, n_layer, [SLIDING if (i + 1) % every else FULL for i in range(n_layer)])


def _olmo3(settings: ModelConfig, fields: Fields) -> Mapping[str, Any]:
    """Return windows and rotations; only those of layers that see all keys are scaled."""
    n_layer = fields["n_layer"]
    kinds = _every_fourth(settings, n_layer, EVERY)
    turns = {kind: rotation(settings, fields, kind=kind, scaled=kind == FULL) for kind in (FULL, SLIDING)}
    return {"rotary": tuple(turns[kind] for kind in kinds), "windows": windows(settings, n_layer, kinds)}


OLMO3 = like(
    OLMO2,
    "olmo3",
    defaults={"rope_theta": 500_000.0, "sliding_window": 4096, "max_position_embeddings": 2048},
    extra=_olmo3,
)


def _exaone4(settings: ModelConfig, fields: Fields) -> Mapping[str, Any]:
    """Return windows and rotations; where some layers see a window, those that see all keys have no rotation."""
    n_layer, turns = fields["n_layer"], rotation(settings, fields)
    every = EVERY if settings.get("layer_types") else settings.size("sliding_window_pattern")
    settings.ignore("sliding_window_pattern")
    if settings.get("sliding_window") is None:
        return {"rotary": (turns,) * n_layer}
    kinds = _every_fourth(settings, n_layer, every)
    return {
        "rotary": tuple(turns if kind == SLIDING else None for kind in kinds),
        "windows": windows(settings, n_layer, kinds),
    }


EXAONE4 = like(
    OLMO2,
    "exaone4",
    block_slots={**dict.fromkeys(attention(True)), **attention(False), **head_norms()},
    defaults={
        "num_key_value_heads": 32,
        "sliding_window": 4096,
        "sliding_window_pattern": EVERY,
        "max_position_embeddings": 2048,
    },
    extra=_exaone4,
)

FAMILIES = (OLMO, OLMO2, OLMO3, EXAONE4)
