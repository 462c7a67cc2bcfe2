"""GPT-2, its predecessor, and what is built like it: a learned table of positions, layer norms with biases."""

from generators.base.errors import InputError
from generators.checkpoint.config import ModelConfig
from generators.checkpoint.roles import QKV, Family, Fields, Slot, changed, fused, like, linears, norm

GPT_CONFIG = {
    "n_layer": "n_layer",
    "n_head": "n_head",
    "d_model": "n_embd",
    "n_ctx": "n_positions",
    "vocab_size": "vocab_size",
    "norm_eps": "layer_norm_epsilon",
}
OUT_AND_MLP = {"attn.o": "attn.c_proj", "mlp.in": "mlp.c_fc", "mlp.out": "mlp.c_proj"}
UNSCALED = 1.0


def _scores(settings: ModelConfig, fields: Fields) -> Fields:
    return {
        "score_scale": None if settings.flag("scale_attn_weights") else UNSCALED,
        "scaled_by_layer": settings.flag("scale_attn_by_inverse_layer_idx"),
    }


GPT2 = Family(
    name="gpt2",
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
        **linears("h.{i}", OUT_AND_MLP, stored="in out"),
    },
    defaults={"scale_attn_weights": True},
    extra=_scores,
)

GPT1 = like(
    GPT2,
    "openai-gpt",
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


def _one_key_head(family: Family, settings: ModelConfig) -> Family:
    """Return the table for one head of keys that all queries share, or for fused heads one after another."""
    if settings.flag("multi_query"):
        return family
    return changed(family, block_slots=fused("h.{i}.attn.c_attn", "a a a", groups="h"))


def _bigcode(settings: ModelConfig, fields: Fields) -> Fields:
    settings.ignore("num_key_value_heads", "scale_attention_softmax_in_fp32")
    settings.must_be("scale_attn_weights", True)
    return {"n_kv_head": 1 if settings.flag("multi_query") else None}


GPT_BIGCODE = like(
    GPT2,
    "gpt_bigcode",
    block_slots={
        **fused("h.{i}.attn.c_attn", "a b b"),
        **linears("h.{i}", OUT_AND_MLP),
    },
    defaults={"multi_query": True},
    variant=_one_key_head,
    extra=_bigcode,
)


def _alternating(settings: ModelConfig, fields: Fields) -> Fields:
    """Return the windows of layers that see only near keys; GPT-Neo's scores are not scaled at all."""
    kinds = [kind for block, count in _attention_types(settings) for _ in range(count) for kind in block]
    n_layer = fields["n_layer"]
    if len(kinds) != n_layer or not set(kinds) <= {"global", "local"}:
        raise InputError(f"config.json gives attention_types that are not {n_layer} times global or local.")
    width = settings.size("window_size")
    local = tuple(width if kind == "local" else None for kind in kinds)
    return {"score_scale": UNSCALED, "windows": local if "local" in kinds else ()}


def _attention_types(settings: ModelConfig) -> list[tuple[list[str], int]]:
    given = settings.get("attention_types")
    try:
        return [([str(kind) for kind in kinds], int(count)) for kinds, count in given]
    except (TypeError, ValueError):
        raise InputError(f"config.json gives {given!r} as attention_types, which the atlas can't read.") from None


GPT_NEO = like(
    GPT2,
    "gpt_neo",
    config={
        "n_layer": "num_layers",
        "n_head": "num_heads",
        "d_model": "hidden_size",
        "n_ctx": "max_position_embeddings",
    },
    block_slots={
        **linears("h.{i}.attn.attention", QKV, bias=False),
        **dict.fromkeys(("attn.q.bias", "attn.k.bias", "attn.v.bias")),
        **linears("h.{i}", {**OUT_AND_MLP, "attn.o": "attn.attention.out_proj"}),
    },
    defaults={"window_size": 256, "attention_types": [[["global", "local"], 12]]},
    ignores=("attention_layers",),
    extra=_alternating,
)

CTRL = like(
    GPT2,
    "ctrl",
    slots={
        "position_embedding": Slot("(computed)", "n d", formula="split"),
        "token_embedding": Slot("w.weight", "V d"),
        "unembedding.bias": Slot("lm_head.bias", "V"),
        **norm("final_norm", "layernorm"),
    },
    block_slots={
        **norm("ln1", "h.{i}.layernorm1"),
        **norm("ln2", "h.{i}.layernorm2"),
        **linears("h.{i}.multi_head_attention", {"attn.q": "Wq", "attn.k": "Wk", "attn.v": "Wv", "attn.o": "dense"}),
        **linears("h.{i}.ffn", {"mlp.in": "0", "mlp.out": "2"}),
    },
    positions="formula",
    defaults={"layer_norm_epsilon": 1e-6},
    extra=lambda settings, fields: {"embedding_scale": fields["d_model"] ** 0.5},
)
