"""Nemotron: rotations and grouped queries as in Llama, layer norms whose gains are 1 + g, an MLP without a gate."""

from generators.checkpoint.families.llama import LLAMA, NO_GATE
from generators.checkpoint.roles import like, norm
from generators.checkpoint.rotation import part_of_each_head

ONE = 1.0  # added to every gain

NEMOTRON = like(
    LLAMA,
    "nemotron",
    config={"norm_eps": "norm_eps"},
    slots=norm("final_norm", "norm", plus=ONE),
    block_slots={
        **norm("ln1", "layers.{i}.input_layernorm", plus=ONE),
        **norm("ln2", "layers.{i}.post_attention_layernorm", plus=ONE),
        **NO_GATE,
    },
    norm="layer",
    defaults={"partial_rotary_factor": 0.5, "norm_eps": 1e-5, "max_position_embeddings": 4096},
    extra=part_of_each_head,
)
