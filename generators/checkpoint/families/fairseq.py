"""Models from fairseq: BART, mBART, Pegasus, M2M-100, Marian, Whisper, and decoders alone (OPT, XGLM, BioGPT)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from generators.checkpoint.config import ModelConfig
from generators.checkpoint.roles import SIZES, Family, Slot, changed, like, linears, norm
from generators.checkpoint.rotation import Fields

OFFSET = 2  # rows before the first position


def attention(layer: str) -> dict[str, Slot]:
    return {
        **linears(
            f"{layer}.self_attn", {"attn.q": "q_proj", "attn.k": "k_proj", "attn.v": "v_proj", "attn.o": "out_proj"}
        ),
        **linears(layer, {"mlp.in": "fc1", "mlp.out": "fc2"}),
    }


def _scaled(settings: ModelConfig, fields: Fields) -> Mapping[str, Any]:
    return {"embedding_scale": fields["d_model"] ** 0.5 if settings.flag("scale_embedding") else 1.0}


BIOGPT = Family(
    name="biogpt",
    model_types=("biogpt",),
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
    settings.must_be("enable_bias", True)
    settings.must_be("layer_norm_elementwise_affine", True)
    chosen = family if settings.flag("do_layer_norm_before") else changed(family, **_normed_after())
    if settings.flag("_remove_final_layer_norm"):
        chosen = changed(chosen, slots={"final_norm.gain": None, "final_norm.bias": None})
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
        extra=_untied,
    )


def _untied(settings: ModelConfig, fields: Fields) -> Mapping[str, Any]:
    """Tell that words are read and written by two matrices, even where they are one times two projections."""
    return {"tied": False}


def _normed_after() -> dict[str, Any]:
    return {
        "post_norm": True,
        "slots": {"final_norm.gain": None, "final_norm.bias": None},
        "block_slots": {
            **norm("ln1", "layers.{j}.final_layer_norm"),
            **norm("ln2", "layers.{i}.self_attn_layer_norm"),
        },
        "first_block_slots": {"ln1.gain": None, "ln1.bias": None},
    }


OPT = like(
    BIOGPT,
    "opt",
    prefixes=("model.decoder.", "decoder.", ""),
    slots={"unembedding": Slot("lm_head.weight", "V d"), **norm("final_norm", "final_layer_norm")},
    defaults={"do_layer_norm_before": True, "enable_bias": True, "layer_norm_elementwise_affine": True},
    variant=_opt,
    extra=None,
)

ENCODER, DECODER = "encoder.layers.{i}", "decoder.layers.{i}"


def _tokens(stack: str) -> tuple[tuple[str, str], ...]:
    return ((f"{stack}.embed_tokens.weight", "shared.weight"),)


BART_ENCODER = Family(
    name="bart--encoder",
    model_types=("bart",),
    prefixes=("model.", ""),
    config={
        "n_layer": "encoder_layers",
        "n_head": "encoder_attention_heads",
        "d_model": "d_model",
        "n_ctx": "max_position_embeddings",
        "vocab_size": "vocab_size",
    },
    slots={
        "position_embedding": Slot("encoder.embed_positions.weight", "n d", skip=OFFSET),
        "token_embedding": Slot("encoder.embed_tokens.weight", "V d"),
    },
    block_slots={
        **norm("ln1", "encoder.layers.{j}.final_layer_norm"),
        **norm("ln2", f"{ENCODER}.self_attn_layer_norm"),
        **attention(ENCODER),
    },
    first_block_slots=norm("ln1", "encoder.layernorm_embedding"),
    causal=False,
    post_norm=True,
    aliases=_tokens("encoder"),
    stack="encoder",
    ignores=("is_decoder", "normalize_before", "add_bias_logits"),
    extra=_scaled,
)

BART_DECODER = like(
    BART_ENCODER,
    "bart--decoder",
    model_types=("bart",),
    config={"n_layer": "decoder_layers", "n_head": "decoder_attention_heads"},
    slots={
        "position_embedding": Slot("decoder.embed_positions.weight", "n d", skip=OFFSET),
        "token_embedding": Slot("decoder.embed_tokens.weight", "V d"),
        "unembedding": Slot("lm_head.weight", "V d"),
    },
    block_slots={
        **norm("ln1", "decoder.layers.{j}.final_layer_norm"),
        **norm("ln2", f"{DECODER}.encoder_attn_layer_norm"),
        **attention(DECODER),
    },
    first_block_slots=norm("ln1", "decoder.layernorm_embedding"),
    causal=True,
    aliases=_tokens("decoder"),
    stack="decoder",
)

NO_NORM = {"ln1.gain": None, "ln1.bias": None}
COMPUTED = {"position_embedding": Slot("(computed)", "n d", formula="split")}

MARIAN_ENCODER = like(
    BART_ENCODER,
    "marian--encoder",
    model_types=("marian",),
    slots=COMPUTED,
    first_block_slots=NO_NORM,
    positions="formula",
    ignores=(*BART_ENCODER.ignores, "static_position_embeddings"),
)
MARIAN_DECODER = like(
    BART_DECODER,
    "marian--decoder",
    model_types=("marian",),
    slots=COMPUTED,
    first_block_slots=NO_NORM,
    positions="formula",
    ignores=(*BART_ENCODER.ignores, "static_position_embeddings"),
    config={"vocab_size": "decoder_vocab_size"},
)


def _one_size_fits(family: Family, settings: ModelConfig) -> Family:
    """Return the table for a vocabulary of the decoder's own, or the one that both share."""
    if settings.get("decoder_vocab_size") is not None:
        return family
    return changed(family, config={"vocab_size": "vocab_size"})


MARIAN_DECODER = replace(MARIAN_DECODER, variant=_one_size_fits)

WHISPER_ENCODER = like(
    BART_ENCODER,
    "whisper--encoder",
    model_types=("whisper",),
    config={"n_ctx": "max_source_positions", "vocab_size": None},
    slots={
        "position_embedding": Slot("encoder.embed_positions.weight", "n d"),
        "token_embedding": None,
        **norm("final_norm", "encoder.layer_norm"),
    },
    block_slots={
        **norm("ln1", f"{ENCODER}.self_attn_layer_norm"),
        **norm("ln2", f"{ENCODER}.final_layer_norm"),
        "attn.k.bias": None,
    },
    first_block_slots=norm("ln1", f"{ENCODER}.self_attn_layer_norm"),
    post_norm=False,
    positions="formula",  # sines, stored in the file
    without={"token_embedding": "Whisper's encoder hears sound: it has no tokens."},
    aliases=(),
    ignores=("max_target_positions",),
)
WHISPER_DECODER = like(
    BART_DECODER,
    "whisper--decoder",
    model_types=("whisper",),
    config={"n_ctx": "max_target_positions"},
    slots={
        "position_embedding": Slot("decoder.embed_positions.weight", "n d"),
        "unembedding": Slot("proj_out.weight", "V d"),
        **norm("final_norm", "decoder.layer_norm"),
    },
    block_slots={
        **norm("ln1", f"{DECODER}.self_attn_layer_norm"),
        **norm("ln2", f"{DECODER}.final_layer_norm"),
        "attn.k.bias": None,
    },
    first_block_slots=norm("ln1", f"{DECODER}.self_attn_layer_norm"),
    post_norm=False,
    aliases=(),
    ignores=("max_source_positions",),
)


def _normed_before(stack: str) -> dict[str, Any]:
    """Return what differs where norms come before attention and MLP, and a last one behind all blocks."""
    layer = f"{stack}.layers.{{i}}"
    ln1 = norm("ln1", f"{layer}.self_attn_layer_norm")
    return {
        "slots": norm("final_norm", f"{stack}.layer_norm"),
        "block_slots": {**ln1, **norm("ln2", f"{layer}.final_layer_norm")},
        "first_block_slots": ln1,
        "post_norm": False,
    }


def _pre_norm_pair(kind: str, positions: str | None = None, extra: Any = _scaled) -> tuple[Family, Family]:
    """Return the tables of both stacks of such a model; `positions` is the formula that computes them."""

    def stack(base: Family) -> Family:
        chosen = like(base, f"{kind}--{base.stack}", model_types=(kind,), extra=extra, **_normed_before(base.stack))
        if positions is None:
            return changed(chosen, slots=norm("embedding_norm", f"{base.stack}.layernorm_embedding"))
        return changed(
            chosen,
            slots={"position_embedding": Slot("(computed)", "n d", formula=positions)},
            positions="formula",
            ignores=(*base.ignores, "static_position_embeddings"),
        )

    return stack(BART_ENCODER), stack(BART_DECODER)


def _after_one_padding(settings: ModelConfig, fields: Fields) -> Mapping[str, Any]:
    """Check the padding token, from whose id positions are counted: the formula begins at 2."""
    settings.must_be("pad_token_id", 1)
    return _scaled(settings, fields)


MBART = _pre_norm_pair("mbart")
PEGASUS = _pre_norm_pair("pegasus", "split")
M2M_100 = tuple(
    changed(family, defaults={"scale_embedding": True, "pad_token_id": 1})
    for family in _pre_norm_pair("m2m_100", "fairseq", _after_one_padding)
)

FAMILIES = (
    BIOGPT,
    XGLM,
    OPT,
    BART_ENCODER,
    BART_DECODER,
    *MBART,
    *PEGASUS,
    *M2M_100,
    MARIAN_ENCODER,
    MARIAN_DECODER,
    WHISPER_ENCODER,
    WHISPER_DECODER,
)
