"""Decoders whose scores fall with distance (ALiBi): BLOOM, MPT, Falcon; Falcon also with rotations."""

from generators.base.errors import InputError
from generators.checkpoint.config import ModelConfig
from generators.checkpoint.families.llama import ROTATES, unclipped
from generators.checkpoint.families.neox import NEOX
from generators.checkpoint.positions import alibi_slopes
from generators.checkpoint.roles import Family, Fields, Slot, changed, fused, like, linear, linears, no_norm, norm
from generators.checkpoint.rotation import rotation

STEEPEST = 8  # MPT's slopes end at 2^-8

FALLS = (
    "Positions enter as a penalty on distance inside attention (ALiBi): this architecture has no position "
    "embedding to look at."
)


BLOOM = like(
    NEOX,
    "bloom",
    prefixes=("transformer.", ""),
    config={"n_layer": "n_layer", "n_head": "n_head", "n_ctx": None, "norm_eps": "layer_norm_epsilon"},
    second_names={"n_layer": "num_hidden_layers", "n_head": "num_attention_heads", "hidden_size": "n_embed"},
    slots={
        "token_embedding": Slot("word_embeddings.weight", "V d"),
        "unembedding": Slot("lm_head.weight", "V d"),
        **norm("embedding_norm", "word_embeddings_layernorm"),
        **norm("final_norm", "ln_f"),
    },
    block_slots={
        **norm("ln1", "h.{i}.input_layernorm"),
        **norm("ln2", "h.{i}.post_attention_layernorm"),
        **fused("h.{i}.self_attention.query_key_value", "a a a", groups="h"),
        **linear("attn.o", "h.{i}.self_attention.dense"),
        **linears("h.{i}.mlp", {"mlp.in": "dense_h_to_4h", "mlp.out": "dense_4h_to_h"}),
    },
    tied=True,
    positions="alibi",
    without={"position_embedding": FALLS},
    ignores=("apply_residual_connection_post_layernorm", "n_positions", "seq_length", "offset_alibi"),
    extra=lambda settings, fields: {"slopes": alibi_slopes(fields["n_head"])},
)


def _mpt(settings: ModelConfig, fields: Fields) -> Fields:
    settings.must_be("attn_config.alibi", True)
    settings.must_be("attn_config.qk_ln", False, None)
    settings.must_be("attn_config.prefix_lm", False, None)
    if settings.get("attn_config.clip_qkv"):
        unclipped(settings, "attn_config.clip_qkv")
    settings.ignore("learned_pos_emb", "logit_scale", "attn_config")  # models with slopes add no table
    steepest = settings.get("attn_config.alibi_bias_max")
    if steepest != STEEPEST:
        raise InputError(
            f"config.json gives {steepest!r} as attn_config.alibi_bias_max; transformers computes with {STEEPEST} "
            "whatever it says, so the model isn't read."
        )
    return {
        "slopes": alibi_slopes(fields["n_head"]),
        "score_scale": settings.optional(settings.number, "attn_config.softmax_scale"),
    }


MPT = like(
    BLOOM,
    "mpt",
    config={"n_layer": "n_layers", "n_head": "n_heads", "d_model": "d_model", "n_ctx": "max_seq_len"},
    second_names={},
    slots={
        "token_embedding": Slot("wte.weight", "V d"),
        **norm("final_norm", "norm_f", bias=False),
        "final_norm.bias": None,
        **no_norm("embedding_norm"),
    },
    block_slots={
        **dict.fromkeys(role for role in BLOOM.block_slots if role.endswith(".bias")),
        **norm("ln1", "blocks.{i}.norm_1", bias=False),
        **norm("ln2", "blocks.{i}.norm_2", bias=False),
        **fused("blocks.{i}.attn.Wqkv", "a a a", bias=False),
        **linear("attn.o", "blocks.{i}.attn.out_proj", bias=False),
        **linears("blocks.{i}.ffn", {"mlp.in": "up_proj", "mlp.out": "down_proj"}, bias=False),
    },
    defaults={"attn_config.alibi": True, "attn_config.alibi_bias_max": STEEPEST, "layer_norm_epsilon": 1e-5},
    extra=_mpt,
)


def _falcon(family: Family, settings: ModelConfig) -> Family:
    """Return the table of one of three layouts: grouped keys, one head of keys, or heads one after another."""
    grouped, one, side_by_side = (
        settings.flag(key) for key in ("new_decoder_architecture", "multi_query", "parallel_attn")
    )
    parts, groups = ("a b b", "g") if grouped else ("a b b", 1) if one else ("a a a", "h")
    slots = fused("h.{i}.self_attention.query_key_value", parts, bias="bias", groups=groups)
    if grouped and settings.get("num_ln_in_parallel_attn") in (None, 2):
        slots |= {**norm("ln1", "h.{i}.ln_attn"), **norm("ln2", "h.{i}.ln_mlp")}
    elif grouped or side_by_side:
        slots |= norm("ln2", "h.{i}.input_layernorm")
    alibi = settings.flag("alibi")
    return changed(
        family,
        block_slots=slots,
        positions="alibi" if alibi else "rotary",
        without={"position_embedding": FALLS if alibi else ROTATES},
    )


def _falcon_numbers(settings: ModelConfig, fields: Fields) -> Fields:
    """Return heads of keys, and slopes or rotations; Falcon scales its slopes as it scales scores."""
    grouped, one = settings.flag("new_decoder_architecture"), settings.flag("multi_query")
    kv = settings.get("num_kv_heads") if grouped else None
    settings.ignore("num_kv_heads")
    heads = {"n_kv_head": settings.size("num_kv_heads") if kv else 1 if one and not grouped else None}
    if settings.flag("alibi"):
        settings.ignore("rope_theta", "rope_scaling", "rope_parameters")
        return {**heads, "slopes": tuple(s / fields["d_head"] ** 0.5 for s in alibi_slopes(fields["n_head"]))}
    return {**heads, "rotary": (rotation(settings, fields),) * fields["n_layer"]}


FALCON = like(
    BLOOM,
    "falcon",
    config={"n_layer": "num_hidden_layers", "n_head": "num_attention_heads", "n_ctx": "max_position_embeddings"},
    second_names={"hidden_size": "n_embed"},
    slots=no_norm("embedding_norm"),
    block_slots={
        **linear("attn.o", "h.{i}.self_attention.dense", bias="bias"),
        **linears("h.{i}.mlp", {"mlp.in": "dense_h_to_4h", "mlp.out": "dense_4h_to_h"}, bias="bias"),
    },
    defaults={"multi_query": True, "parallel_attn": True, "max_position_embeddings": 2048},
    variant=_falcon,
    extra=_falcon_numbers,
)
