"""Gemma: gains are 1 + g; embeddings are multiplied by the square root of the width; later ones norm outputs too."""

import math

from generators.checkpoint.config import ModelConfig
from generators.checkpoint.families.llama import LLAMA, NO_MLP_BIASES, head_norms
from generators.checkpoint.roles import Fields, Slot, like, norm
from generators.checkpoint.rotation import FULL, SLIDING, by_kind, in_turn, rotation, same_in_all_layers

ONE = 1.0  # added to every gain
PATTERN = 6  # in Gemma 3 every sixth layer sees all keys


def _bidirectional(settings: ModelConfig) -> None:
    settings.must_be("use_bidirectional_attention", None, False)


def _gemma(settings: ModelConfig, fields: Fields) -> Fields:
    _bidirectional(settings)
    return {**same_in_all_layers(settings, fields), "embedding_scale": math.sqrt(fields["d_model"])}


GEMMA = like(
    LLAMA,
    "gemma",
    slots=norm("final_norm", "norm", bias=False, plus=ONE),
    block_slots={
        **norm("ln1", "layers.{i}.input_layernorm", bias=False, plus=ONE),
        **norm("ln2", "layers.{i}.post_attention_layernorm", bias=False, plus=ONE),
        **NO_MLP_BIASES,
    },
    tied=True,
    defaults={"head_dim": 256, "num_key_value_heads": 16, "max_position_embeddings": 8192},
    extra=_gemma,
)


def _capped(settings: ModelConfig, fields: Fields) -> Fields:
    """Return scale and cap of scores; the scale is that of a width named in config.json, not of the head's own."""
    settings.ignore("final_logit_softcapping")
    return {
        "score_scale": settings.number("query_pre_attn_scalar") ** -0.5,
        "score_cap": settings.optional(settings.number, "attn_logit_softcapping"),
        "embedding_scale": math.sqrt(fields["d_model"]),
    }


def _gemma2(settings: ModelConfig, fields: Fields) -> Fields:
    _bidirectional(settings)
    return {**_capped(settings, fields), **in_turn(settings, fields)}


GEMMA2 = like(
    GEMMA,
    "gemma2",
    block_slots={
        **norm("ln2", "layers.{i}.pre_feedforward_layernorm", bias=False, plus=ONE),
        "attn.out_norm.gain": Slot("layers.{i}.post_attention_layernorm.weight", "d", plus=ONE),
        "mlp.out_norm.gain": Slot("layers.{i}.post_feedforward_layernorm.weight", "d", plus=ONE),
    },
    defaults={
        "num_key_value_heads": 4,
        "query_pre_attn_scalar": 256,
        "sliding_window": 4096,
        "attn_logit_softcapping": 50.0,
    },
    extra=_gemma2,
)


def _gemma3(settings: ModelConfig, fields: Fields) -> Fields:
    """Return the rotations of layers that see a window (unscaled, base 10,000) and of those that see all."""
    _bidirectional(settings)
    keys = ("sliding_window_pattern", "_sliding_window_pattern")
    pattern = next((found for key in keys if (found := settings.optional(settings.size, key))), PATTERN)
    settings.ignore(*keys)
    turns = {
        FULL: rotation(settings, fields, kind=FULL),
        SLIDING: rotation(settings, fields, kind=SLIDING, base_key="rope_local_base_freq", scaled=False),
    }
    return {
        **_capped(settings, fields),
        "score_cap": None,  # its software never reads the setting
        **by_kind(settings, fields, turns, pattern),
    }


GEMMA3 = like(
    GEMMA2,
    "gemma3_text",
    block_slots=head_norms(plus=ONE),
    defaults={
        "attn_logit_softcapping": None,
        "max_position_embeddings": 131072,
        "rope_theta": 1e6,
        "rope_local_base_freq": 1e4,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "hidden_size": 2304,
        "vocab_size": 262208,
    },
    extra=_gemma3,
)

GEMMA3_NESTED = like(
    GEMMA3,
    "gemma3",
    prefixes=("language_model.model.", "model.language_model.", "language_model.", "model."),
    at="text_config",
)
