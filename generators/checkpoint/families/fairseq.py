"""Models from fairseq: BART, mBART, Pegasus, M2M-100, Marian, Whisper, and decoders alone (OPT, XGLM, BioGPT)."""

from typing import Any

from generators.checkpoint.config import ModelConfig
from generators.checkpoint.roles import QKVO, SIZES, Family, Fields, Slot, changed, like, linears, no_norm, norm

OFFSET = 2  # rows before the first position


def attention(layer: str) -> dict[str, Slot]:
    return {**linears(f"{layer}.self_attn", QKVO), **linears(layer, {"mlp.in": "fc1", "mlp.out": "fc2"})}


def _scaled(settings: ModelConfig, fields: Fields) -> Fields:
    return {"embedding_scale": fields["d_model"] ** 0.5 if settings.flag("scale_embedding") else 1.0}


BIOGPT = Family(
    name="biogpt",
    prefixes=("biogpt.", ""),
    config=SIZES,
    slots={
        "position_embedding": Slot("embed_positions.weight", "n d", skip=OFFSET),
        "token_embedding": Slot("embed_tokens.weight", "V d"),
        "unembedding": Slot("output_projection.weight", "V d"),
        **norm("final_norm", "layer_norm"),
    },
    block_slots={
        **norm("ln1", "layers.{i}.self_attn_layer_norm"),
        **norm("ln2", "layers.{i}.final_layer_norm"),
        **attention("layers.{i}"),
    },
    defaults={"scale_embedding": True},
    extra=_scaled,
)

XGLM = like(
    BIOGPT,
    "xglm",
    prefixes=("model.", ""),
    config={"n_layer": "num_layers", "n_head": "attention_heads", "d_model": "d_model"},
    slots={
        "position_embedding": Slot("(computed)", "n d", formula="fairseq"),
        "unembedding": Slot("lm_head.weight", "V d"),
    },
    positions="formula",
)


def _opt(family: Family, settings: ModelConfig) -> Family:
    """Return the table for norms before or after, and for embeddings of a width of their own (the 350m layout)."""
    chosen = family
    if not settings.flag("do_layer_norm_before"):
        chosen = changed(
            family,
            post_norm=True,
            slots=no_norm("final_norm"),
            block_slots={
                **norm("ln1", "layers.{j}.final_layer_norm"),
                **norm("ln2", "layers.{i}.self_attn_layer_norm"),
            },
            first_block_slots=no_norm("ln1"),
        )
    if settings.flag("_remove_final_layer_norm"):
        chosen = changed(chosen, slots=no_norm("final_norm"))
    if settings.get("word_embed_proj_dim") in (None, settings.get("hidden_size")):
        return chosen
    reads = "embed_tokens.weight" if settings.get("tie_word_embeddings") is not False else "lm_head.weight"
    return changed(
        chosen,
        slots={
            "token_embedding": Slot(
                "embed_tokens.weight", "V e", through=Slot("project_in.weight", "e d", transposed=True)
            ),
            "unembedding": Slot(reads, "V e", through=Slot("project_out.weight", "e d")),
        },
        config={"d_embedding": "word_embed_proj_dim"},
        extra=lambda settings, fields: {"tied": False},  # two matrices, even where they are one times two projections
    )


OPT = like(
    BIOGPT,
    "opt",
    prefixes=("model.decoder.", "decoder.", ""),
    slots={"unembedding": Slot("lm_head.weight", "V d"), **norm("final_norm", "final_layer_norm")},
    defaults={"do_layer_norm_before": True, "enable_bias": True, "layer_norm_elementwise_affine": True},
    only={"enable_bias": (True,), "layer_norm_elementwise_affine": (True,)},
    variant=_opt,
    extra=None,
)


def _bart(stack: str, norm_before_mlp: str, **others: Any) -> Family:
    layer = f"{stack}.layers.{{i}}"
    return Family(
        name=f"bart--{stack}",
        prefixes=("model.", ""),
        config={
            "n_layer": f"{stack}_layers",
            "n_head": f"{stack}_attention_heads",
            "d_model": "d_model",
            "n_ctx": "max_position_embeddings",
            "vocab_size": "vocab_size",
        },
        slots={
            "position_embedding": Slot(f"{stack}.embed_positions.weight", "n d", skip=OFFSET),
            "token_embedding": Slot(f"{stack}.embed_tokens.weight", "V d"),
        },
        block_slots={
            **norm("ln1", f"{stack}.layers.{{j}}.final_layer_norm"),
            **norm("ln2", f"{layer}.{norm_before_mlp}"),
            **attention(layer),
        },
        first_block_slots=norm("ln1", f"{stack}.layernorm_embedding"),
        post_norm=True,
        aliases=((f"{stack}.embed_tokens.weight", "shared.weight"),),
        ignores=("is_decoder", "normalize_before", "add_bias_logits"),
        extra=_scaled,
        **others,
    )


BART_ENCODER = _bart("encoder", "self_attn_layer_norm", causal=False)
BART_DECODER = changed(
    _bart("decoder", "encoder_attn_layer_norm"), slots={"unembedding": Slot("lm_head.weight", "V d")}
)


def _computed(base: Family, formula: str) -> dict[str, Any]:
    return {
        "slots": {"position_embedding": Slot("(computed)", "n d", formula=formula)},
        "positions": "formula",
        "ignores": (*base.ignores, "static_position_embeddings"),
    }


def _one_size_fits(family: Family, settings: ModelConfig) -> Family:
    """Return the table for a vocabulary of the decoder's own, or the one that both share."""
    own = settings.get("decoder_vocab_size") is not None
    return changed(family, config={"vocab_size": "decoder_vocab_size" if own else "vocab_size"})


MARIAN_ENCODER = like(
    BART_ENCODER, "marian--encoder", first_block_slots=no_norm("ln1"), **_computed(BART_ENCODER, "split")
)
MARIAN_DECODER = like(
    BART_DECODER,
    "marian--decoder",
    first_block_slots=no_norm("ln1"),
    variant=_one_size_fits,
    **_computed(BART_DECODER, "split"),
)


def _normed_before(base: Family, kind: str, **others: Any) -> Family:
    """Return a family with norms before attention and MLP, and a last one behind all blocks."""
    layer = f"{base.stack}.layers.{{i}}"
    ln1 = norm("ln1", f"{layer}.self_attn_layer_norm")
    return like(
        base,
        f"{kind}--{base.stack}",
        slots=norm("final_norm", f"{base.stack}.layer_norm"),
        block_slots={**ln1, **norm("ln2", f"{layer}.final_layer_norm")},
        first_block_slots=ln1,
        post_norm=False,
        **others,
    )


def _pre_norm_pair(kind: str, formula: str | None = None, **others: Any) -> tuple[Family, Family]:
    """Return the tables of both stacks of such a model; `formula` is that which computes its positions."""

    def stack(base: Family) -> Family:
        chosen = _normed_before(base, kind, **others)
        if formula is not None:
            return changed(chosen, **_computed(base, formula))
        return changed(chosen, slots=norm("embedding_norm", f"{base.stack}.layernorm_embedding"))

    return stack(BART_ENCODER), stack(BART_DECODER)


def _after_one_padding(settings: ModelConfig, fields: Fields) -> Fields:
    """Check the padding token, from whose id positions are counted: the formula begins at 2."""
    settings.must_be("pad_token_id", 1)
    return _scaled(settings, fields)


MBART_ENCODER, MBART_DECODER = _pre_norm_pair("mbart")
PEGASUS_ENCODER, PEGASUS_DECODER = _pre_norm_pair("pegasus", "split")
M2M_100_ENCODER, M2M_100_DECODER = _pre_norm_pair(
    "m2m_100", "fairseq", extra=_after_one_padding, defaults={"scale_embedding": True, "pad_token_id": 1}
)


def _whisper(base: Family, n_ctx: str, unread: str) -> Family:
    chosen = _normed_before(base, "whisper", aliases=(), ignores=(unread,))
    return changed(
        chosen,
        config={"n_ctx": n_ctx},
        slots={"position_embedding": Slot(f"{base.stack}.embed_positions.weight", "n d")},
        block_slots={"attn.k.bias": None},
    )


WHISPER_ENCODER = changed(
    _whisper(BART_ENCODER, "max_source_positions", unread="max_target_positions"),
    config={"vocab_size": None},
    slots={"token_embedding": None},
    positions="formula",  # sines, stored in the file
    without={"token_embedding": "Whisper's encoder hears sound: it has no tokens."},
)
WHISPER_DECODER = changed(
    _whisper(BART_DECODER, "max_target_positions", unread="max_source_positions"),
    slots={"unembedding": Slot("proj_out.weight", "V d")},
)
