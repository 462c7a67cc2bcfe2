"""GLM, GLM-4, ERNIE 4.5 and Helium: Llama's blocks, with rotations that pair neighboring channels."""

from collections.abc import Mapping
from typing import Any

from generators.checkpoint.config import ModelConfig
from generators.checkpoint.families.llama import ATTN, BIASED, LLAMA, MLP, attention, gated
from generators.checkpoint.roles import Slot, like, linear, part_of
from generators.checkpoint.rotation import PART, Fields, same_in_all_layers

USES_BIAS = "use_bias"


def _neighbors(settings: ModelConfig, fields: Fields) -> Mapping[str, Any]:
    return same_in_all_layers(settings, fields, adjacent=True)


def _part_of_neighbors(settings: ModelConfig, fields: Fields) -> Mapping[str, Any]:
    return same_in_all_layers(settings, fields, adjacent=True, part_key=PART)


GLM = like(
    LLAMA,
    "glm",
    block_slots={
        "attn.o.bias": None,
        **dict.fromkeys(gated(True)),
        **part_of("mlp.gate", f"{MLP}.gate_up_proj", "f f", 0),
        **part_of("mlp.in", f"{MLP}.gate_up_proj", "f f", 1),
        **linear("mlp.out", f"{MLP}.down_proj", bias=False),
    },
    defaults={
        BIASED: True,
        "head_dim": 128,
        "num_key_value_heads": 2,
        PART: 0.5,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1.5625e-7,
    },
    extra=_part_of_neighbors,
)

GLM4 = like(
    GLM,
    "glm4",
    block_slots={
        "attn.out_norm.gain": Slot("layers.{i}.post_self_attn_layernorm.weight", "d"),
        "mlp.out_norm.gain": Slot("layers.{i}.post_mlp_layernorm.weight", "d"),
    },
)

ERNIE4_5 = like(
    LLAMA,
    "ernie4_5",
    block_slots={**attention(USES_BIAS), **gated(USES_BIAS)},
    tied=True,
    defaults={
        "head_dim": 128,
        "num_key_value_heads": 2,
        "rope_theta": 500_000.0,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
    },
    extra=_neighbors,
)

HELIUM = like(
    LLAMA,
    "helium",
    block_slots={"attn.o.bias": None, **linear("attn.o", f"{ATTN}.o_proj", bias=False)},
    defaults={
        "head_dim": 128,
        "num_key_value_heads": 20,
        "rope_theta": 100_000.0,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-8,
    },
    extra=_neighbors,
)

FAMILIES = (GLM, GLM4, ERNIE4_5, HELIUM)
