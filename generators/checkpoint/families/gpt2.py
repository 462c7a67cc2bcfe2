"""GPT-2 and its predecessor, as OpenAI published them: fused queries, keys and values, stored input first."""

from collections.abc import Mapping
from typing import Any

from generators.checkpoint.config import Settings
from generators.checkpoint.roles import Family, Sizes, Slot, fused, like, linear, norm

GPT_CONFIG = {
    "n_layer": "n_layer",
    "n_head": "n_head",
    "d_model": "n_embd",
    "n_ctx": "n_positions",
    "vocab_size": "vocab_size",
    "norm_eps": "layer_norm_epsilon",
}
UNSCALED = 1.0


def _scores(settings: Settings, sizes: Sizes) -> Mapping[str, Any]:
    return {
        "score_scale": None if settings.flag("scale_attn_weights") else UNSCALED,
        "scaled_by_layer": settings.flag("scale_attn_by_inverse_layer_idx"),
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
        **norm("final_norm", "ln_f"),
    },
    block_slots={
        **norm("ln1", "h.{i}.ln_1"),
        **norm("ln2", "h.{i}.ln_2"),
        **fused("h.{i}.attn.c_attn", "a a a", stored="in out"),
        **linear("attn.o", "h.{i}.attn.c_proj", stored="in out"),
        **linear("mlp.in", "h.{i}.mlp.c_fc", stored="in out"),
        **linear("mlp.out", "h.{i}.mlp.c_proj", stored="in out"),
    },
    defaults={"scale_attn_weights": True},
    extra=_scores,
)

GPT1 = like(
    GPT2,
    "openai-gpt",
    ("openai-gpt",),
    slots={
        "position_embedding": Slot("positions_embed.weight", "n d"),
        "token_embedding": Slot("tokens_embed.weight", "V d"),
        "final_norm.gain": None,
        "final_norm.bias": None,
    },
    block_slots={**norm("ln1", "h.{j}.ln_2"), **norm("ln2", "h.{i}.ln_1")},
    first_block_slots={"ln1.gain": None, "ln1.bias": None},
    post_norm=True,
    extra=None,
)

FAMILIES = (GPT2, GPT1)
