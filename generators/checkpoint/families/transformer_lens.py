"""TransformerLens' HookedTransformer with a learned table of positions, under the names of its own state dicts."""

from collections.abc import Mapping
from dataclasses import replace

from generators.base.architecture import Norm
from generators.base.errors import InputError
from generators.checkpoint.config import ModelConfig, is_number
from generators.checkpoint.roles import Family, Fields, Slot, changed

FOLDED = (
    "TransformerLens has folded this model's layer norms: their gains and biases are part of the matrices that read "
    "them and can't be told from them."
)
ATTENTION_ONLY = "This model has attention alone, no MLPs."
OTHER_TOKENS = "This model's outputs are other tokens than its inputs."
ATTN, MLP = "blocks.{i}.attn", "blocks.{i}.mlp"
NORM_ROLES = ("ln1.gain", "ln1.bias", "ln2.gain", "ln2.bias")
MLPS = ("mlp.in", "mlp.in.bias", "mlp.gate", "mlp.out", "mlp.out.bias", "ln2.gain", "ln2.bias")
NORMS: Mapping[str, Norm] = {"LN": "layer", "LNPre": "layer", "RMS": "rms", "RMSPre": "rms"}
# Options of its software that the atlas doesn't read.
OFF = (
    "use_local_attn",
    "parallel_attn_mlp",
    "use_qk_norm",
    "use_normalization_before_and_after",
    "post_embedding_ln",
    "load_in_4bit",
    "num_experts",
)
UNUSED = (  # unused if off, or visible in the weights
    "rotary_dim",
    "rotary_base",
    "rotary_base_local",
    "rotary_scaling_factor",
    "rotary_adjacent_pairs",
    "window_size",
    "relative_attention_max_distance",
    "relative_attention_num_buckets",
    "ungroup_grouped_query_attention",
    "use_NTK_by_parts_rope",
    "NTK_original_ctx_len",
)


def _as_saved(family: Family, settings: ModelConfig) -> Family:
    """Return the table for what one file holds: norms folded or not, attention alone, a gate."""
    absent = dict.fromkeys(NORM_ROLES if settings.flag("folded") else (), FOLDED)
    absent |= dict.fromkeys(MLPS if settings.flag("attn_only") else (), ATTENTION_ONLY)
    outside = dict.fromkeys(("final_norm.gain", "final_norm.bias") if settings.flag("final_folded") else (), FOLDED)
    if settings.get("d_vocab_out") not in (None, settings.get("d_vocab")):
        outside |= dict.fromkeys(("unembedding", "unembedding.bias"), OTHER_TOKENS)
    reasons = {**{f"blocks.*.{role}": why for role, why in absent.items()}, **outside}
    return replace(
        changed(family, slots=dict.fromkeys(outside), block_slots=dict.fromkeys(absent), without=reasons),
        norm=NORMS[settings.one_of("normalization_type", NORMS)],
        causal=settings.get("attention_dir") != "bidirectional",
        bare_norms=settings.flag("folded"),
    )


def _scores(settings: ModelConfig, fields: Fields) -> Fields:
    """Return what scores are multiplied by: `attn_scale` divides them, and -1 means the root of a head's width."""
    usual, scale = fields["d_head"] ** 0.5, settings.get("attn_scale")
    if settings.get("use_attn_scale") is False:
        scale = 1.0
    if scale in (None, -1):
        scale = usual
    if not is_number(scale) or not scale > 0:
        raise InputError(f"The cfg gives {scale!r} as attn_scale, not a number above 0.")
    return {
        "score_scale": None if abs(scale - usual) < 1e-6 * scale else 1 / scale,
        "scaled_by_layer": settings.flag("scale_attn_by_inverse_layer_idx"),
    }


TRANSFORMER_LENS = Family(
    name="transformer_lens",
    prefixes=("",),
    config={
        "n_layer": "n_layers",
        "n_head": "n_heads",
        "d_model": "d_model",
        "n_ctx": "n_ctx",
        "vocab_size": "d_vocab",
        "d_head": "d_head",
        "n_kv_head": "n_key_value_heads",
        "norm_eps": "eps",
    },
    slots={
        "position_embedding": Slot("pos_embed.W_pos", "n d"),
        "token_embedding": Slot("embed.W_E", "V d"),
        "unembedding": Slot("unembed.W_U", "V d", transposed=True),
        "unembedding.bias": Slot("unembed.b_U", "V"),
        "final_norm.gain": Slot("ln_final.w", "d"),
        "final_norm.bias": Slot("ln_final.b", "d", when="norm_biases"),
    },
    block_slots={
        "ln1.gain": Slot("blocks.{i}.ln1.w", "d"),
        "ln1.bias": Slot("blocks.{i}.ln1.b", "d", when="norm_biases"),
        "ln2.gain": Slot("blocks.{i}.ln2.w", "d"),
        "ln2.bias": Slot("blocks.{i}.ln2.b", "d", when="norm_biases"),
        "attn.q": Slot(f"{ATTN}.W_Q", "d a"),
        "attn.k": Slot(f"{ATTN}.W_K", "d b"),
        "attn.v": Slot(f"{ATTN}.W_V", "d b"),
        "attn.q.bias": Slot(f"{ATTN}.b_Q", "a"),
        "attn.k.bias": Slot(f"{ATTN}.b_K", "b"),
        "attn.v.bias": Slot(f"{ATTN}.b_V", "b"),
        "attn.o": Slot(f"{ATTN}.W_O", "d a", transposed=True),
        "attn.o.bias": Slot(f"{ATTN}.b_O", "d"),
        "mlp.in": Slot(f"{MLP}.W_in", "d f"),
        "mlp.in.bias": Slot(f"{MLP}.b_in", "f"),
        "mlp.gate": Slot(f"{MLP}.W_gate", "d f", when="gated_mlp"),
        "mlp.out": Slot(f"{MLP}.W_out", "d f", transposed=True),
        "mlp.out.bias": Slot(f"{MLP}.b_out", "d"),
    },
    aliases=tuple((f"attn.{name}", f"attn._{name}") for name in ("W_K", "W_V", "b_K", "b_V")),
    tied=False,
    only={
        "positional_embedding_type": ("standard", None),
        "attention_dir": ("causal", "bidirectional", None),
        **dict.fromkeys(OFF, (False, None)),
        **dict.fromkeys(("attn_scores_soft_cap", "output_logits_soft_cap"), (-1.0, 0.0, None)),
    },
    ignores=UNUSED,
    variant=_as_saved,
    extra=_scores,
)
