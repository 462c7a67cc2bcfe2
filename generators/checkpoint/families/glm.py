"""GLM, GLM-4, ERNIE 4.5 and Helium: Llama's blocks, with rotations that pair neighboring channels."""

from functools import partial

from generators.checkpoint.families.llama import ATTN, BIASED, GATE_UP, LLAMA, NO_MLP_BIASES, attention, gated
from generators.checkpoint.roles import Slot, like, linear
from generators.checkpoint.rotation import PART, neighbors

USES_BIAS = "use_bias"

GLM = like(
    LLAMA,
    "glm",
    block_slots={
        "attn.o.bias": None,
        **NO_MLP_BIASES,
        **GATE_UP,
    },
    defaults={
        BIASED: True,
        "head_dim": 128,
        "num_key_value_heads": 2,
        PART: 0.5,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1.5625e-7,
    },
    extra=partial(neighbors, part_key=PART),
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
    extra=neighbors,
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
    extra=neighbors,
)
