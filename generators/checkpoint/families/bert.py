"""BERT and encoders like it: normed after adding; attention of the first block reads the embeddings' own norm."""

from dataclasses import replace
from typing import Any

from generators.base.architecture import Buckets
from generators.base.errors import InputError
from generators.checkpoint.config import ModelConfig, is_number
from generators.checkpoint.families.llama import ROTATES
from generators.checkpoint.roles import SIZES, Family, Fields, Slot, changed, like, linears, no_norm, norm
from generators.checkpoint.rotation import rotation

LAYER = "encoder.layer.{i}"
OUT_AND_MLP = {"attn.o": "attention.output.dense", "mlp.in": "intermediate.dense", "mlp.out": "output.dense"}
LARGEST_PADDING = 1000  # rows; a padding id beyond it is somewhere in the vocabulary, not before the positions


def _as_set(family: Family, settings: ModelConfig) -> Family:
    """Return the table for an encoder, or for one whose words see only those before them."""
    settings.must_be("position_embedding_type", "absolute", None)
    return changed(family, causal=settings.flag("is_decoder"))


BERT = Family(
    name="bert",
    prefixes=("", "bert."),
    config={**SIZES, "norm_eps": "layer_norm_eps"},
    slots={
        "position_embedding": Slot("embeddings.position_embeddings.weight", "n d"),
        "token_embedding": Slot("embeddings.word_embeddings.weight", "V d"),
        "token_type_embedding": Slot("embeddings.token_type_embeddings.weight", "t d"),  # row 0 is added everywhere
    },
    block_slots={
        **norm("ln1", "encoder.layer.{j}.output.LayerNorm"),
        **norm("ln2", f"{LAYER}.attention.output.LayerNorm"),
        **linears(f"{LAYER}.attention.self", {"attn.q": "query", "attn.k": "key", "attn.v": "value"}),
        **linears(LAYER, OUT_AND_MLP),
    },
    first_block_slots=norm("ln1", "embeddings.LayerNorm"),
    aliases=(("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")),
    causal=False,
    post_norm=True,
    defaults={"layer_norm_eps": 1e-12},
    variant=_as_set,
)


def _after_padding(family: Family, rows: int) -> Family:
    table = replace(family.slots["position_embedding"], skip=rows)
    return changed(family, slots={"position_embedding": table})


def padding_rows(settings: ModelConfig) -> int:
    """Return how many rows come before the first position: up to and including that of the padding token.

    Raises InputError: config.json names no padding token.
    """
    pad = settings.get("pad_token_id")
    if not is_number(pad, int) or not 0 <= pad < LARGEST_PADDING:
        raise InputError(f"config.json gives {pad!r} as pad_token_id; positions are counted from the row after it.")
    return pad + 1


ROBERTA = like(
    BERT,
    "roberta",
    model_types=("roberta", "xlm-roberta", "camembert", "data2vec-text"),
    prefixes=("", "roberta.", "data2vec_text."),
    defaults={"pad_token_id": 1},
    variant=lambda family, settings: _after_padding(_as_set(family, settings), padding_rows(settings)),
    extra=lambda settings, fields: {"n_ctx": fields["n_ctx"] - padding_rows(settings)},  # config.json counts both
)


def _normed_before(base: Family, name: str, ln1: str, ln2: str, final: str, **others: Any) -> Family:
    """Return a family whose norms stand in front of attention and MLP, with one behind the last block."""
    first = norm("ln1", f"{LAYER}.attention.{ln1}")
    return like(
        base,
        name,
        slots=norm("final_norm", f"encoder.{final}"),
        block_slots={**first, **norm("ln2", f"{LAYER}.{ln2}")},
        first_block_slots=first,
        post_norm=False,
        **others,
    )


XLM_ROBERTA_XL = _normed_before(
    ROBERTA, "xlm-roberta-xl", "self_attn_layer_norm", "LayerNorm", "LayerNorm", defaults={"layer_norm_eps": 1e-5}
)
MEGATRON = _normed_before(BERT, "megatron-bert", "ln", "ln", "ln")


ERNIE = like(BERT, "ernie", prefixes=("", "ernie."), only={"use_task_id": (False, None)})

NO_TYPES = {"token_type_embedding": None}
DISTILBERT_LAYER = "transformer.layer.{i}"

DISTILBERT = like(
    BERT,
    "distilbert",
    prefixes=("distilbert.", ""),
    config={"n_layer": "n_layers", "n_head": "n_heads", "d_model": "dim"},
    slots=NO_TYPES,
    block_slots={
        **norm("ln1", "transformer.layer.{j}.output_layer_norm"),
        **norm("ln2", f"{DISTILBERT_LAYER}.sa_layer_norm"),
        **linears(
            f"{DISTILBERT_LAYER}.attention",
            {"attn.q": "q_lin", "attn.k": "k_lin", "attn.v": "v_lin", "attn.o": "out_lin"},
        ),
        **linears(f"{DISTILBERT_LAYER}.ffn", {"mlp.in": "lin1", "mlp.out": "lin2"}),
    },
    ignores=("sinusoidal_pos_embds", "tie_weights_"),  # sines or not, the table is in the file
)

SHARED = "encoder.albert_layer_groups.0.albert_layers.0"


def _projection(tensor: str) -> dict[str, Slot]:
    return {
        "embedding_projection": Slot(f"{tensor}.weight", "e d", transposed=True),
        "embedding_projection.bias": Slot(f"{tensor}.bias", "d"),
    }


OWN_WIDTH = {
    "position_embedding": Slot("embeddings.position_embeddings.weight", "n e"),
    "token_embedding": Slot("embeddings.word_embeddings.weight", "V e"),
    "token_type_embedding": Slot("embeddings.token_type_embeddings.weight", "t e"),
    **norm("embedding_norm", "embeddings.LayerNorm", axis="e"),
}


ALBERT = like(
    BERT,
    "albert",
    prefixes=("albert.", ""),
    config={"d_embedding": "embedding_size"},
    slots={**OWN_WIDTH, **_projection("encoder.embedding_hidden_mapping_in")},
    block_slots={
        **norm("ln1", f"{SHARED}.full_layer_layer_norm"),
        **norm("ln2", f"{SHARED}.attention.LayerNorm"),
        **linears(f"{SHARED}.attention", {"attn.q": "query", "attn.k": "key", "attn.v": "value", "attn.o": "dense"}),
        **linears(SHARED, {"mlp.in": "ffn", "mlp.out": "ffn_output"}),
    },
    first_block_slots=no_norm("ln1"),  # the projection is between it and attention
    defaults={"num_hidden_groups": 1, "inner_group_num": 1, "embedding_size": 128},
    only={"num_hidden_groups": (1,), "inner_group_num": (1,)},  # all layers share one set of weights
    ignores=("down_scale_factor",),
    extra=lambda settings, fields: {"shares_block": fields["n_layer"] > 1},
)


def _electra(family: Family, settings: ModelConfig) -> Family:
    chosen = _as_set(family, settings)
    if settings.get("embedding_size") == settings.get("hidden_size"):
        return chosen
    projected = {**OWN_WIDTH, **_projection("embeddings_project")}
    return changed(chosen, slots=projected, first_block_slots=no_norm("ln1"))


ELECTRA = like(
    BERT,
    "electra",
    prefixes=("electra.", "discriminator.electra.", "generator.electra.", ""),
    config={"d_embedding": "embedding_size"},
    defaults={"embedding_size": 128},
    variant=_electra,
)

MPNET_PADDING = 2  # its software counts from 2 whatever padding the config gives
BUCKETS = Buckets(count=32, max_distance=128, both_ways=True)  # likewise, whatever buckets the config gives


def _mpnet_numbers(settings: ModelConfig, fields: Fields) -> Fields:
    settings.must_be("relative_attention_num_buckets", BUCKETS.count)
    return {"n_ctx": fields["n_ctx"] - MPNET_PADDING, "buckets": BUCKETS}


MPNET = like(
    BERT,
    "mpnet",
    prefixes=("mpnet.", ""),
    slots=NO_TYPES,
    block_slots={
        **norm("ln2", f"{LAYER}.attention.LayerNorm"),
        **linears(f"{LAYER}.attention.attn", {"attn.q": "q", "attn.k": "k", "attn.v": "v", "attn.o": "o"}),
        "attn.relative_bias": Slot("encoder.relative_attention_bias.weight", "r h"),
    },
    defaults={"relative_attention_num_buckets": 32},
    variant=lambda family, settings: _after_padding(_as_set(family, settings), MPNET_PADDING),
    extra=_mpnet_numbers,
)

UNMASKED = 1 - 0.15 * 0.8  # share of embeddings left by the masking that ESM was trained with


def _esm(family: Family, settings: ModelConfig) -> Family:
    kind = settings.one_of("position_embedding_type", ("absolute", "rotary"))
    before = norm("embedding_norm", "embeddings.layer_norm") if settings.flag("emb_layer_norm_before") else {}
    chosen = changed(family, causal=settings.flag("is_decoder"), slots=before)
    if kind == "absolute":
        return _after_padding(chosen, padding_rows(settings))
    return changed(
        chosen, positions="rotary", slots={"position_embedding": None}, without={"position_embedding": ROTATES}
    )


def _esm_numbers(settings: ModelConfig, fields: Fields) -> Fields:
    settings.must_be("is_folding_model", False, None)
    numbers: dict[str, Any] = {"embedding_scale": UNMASKED if settings.flag("token_dropout") else 1.0}
    if settings.get("position_embedding_type") == "rotary":
        return {**numbers, "rotary": (rotation(settings, fields),) * fields["n_layer"]}
    settings.ignore("rope_theta", "rope_parameters")
    return {**numbers, "n_ctx": fields["n_ctx"] - padding_rows(settings)}


ESM = like(
    BERT,
    "esm",
    prefixes=("esm.", ""),
    slots={**NO_TYPES, **norm("final_norm", "encoder.emb_layer_norm_after")},
    block_slots={**norm("ln1", f"{LAYER}.attention.LayerNorm"), **norm("ln2", f"{LAYER}.LayerNorm")},
    first_block_slots=norm("ln1", f"{LAYER}.attention.LayerNorm"),
    post_norm=False,
    defaults={"position_embedding_type": "absolute", "rope_theta": 10000.0},
    variant=_esm,
    extra=_esm_numbers,
)

MIXED = (
    "Positions enter as distances that words and places attend to together (DeBERTa): there is no position "
    "embedding that is added to the stream."
)


def _deberta(family: Family, settings: ModelConfig) -> Family:
    relative, added = settings.flag("relative_attention"), settings.flag("position_biased_input")
    slots: dict[str, Slot | None] = {} if settings.get("type_vocab_size") else {**NO_TYPES}
    if relative:
        slots["relative_embedding"] = Slot("encoder.rel_embeddings.weight", "r d")
    if relative and "layer_norm" in str(settings.get("norm_rel_ebd") or ""):
        slots |= norm("relative_norm", "encoder.LayerNorm")
    # a convolution of the embeddings is added to what the first block gives, and normed with it
    convolves = settings.get("conv_kernel_size") not in (None, 0) and settings.size("conv_kernel_size") > 0
    without = {}
    if not added:
        slots["position_embedding"], without = None, {"position_embedding": MIXED}
    return changed(
        family,
        slots=slots,
        without=without,
        positions="relative" if relative else "learned" if added else "none",
        second_block_slots=norm("ln1", "encoder.conv.LayerNorm") if convolves else {},
    )


def _deberta_numbers(settings: ModelConfig, fields: Fields) -> Fields:
    """Return the scale of scores that are sums of up to three parts."""
    width = settings.get("embedding_size")
    if width not in (None, fields["d_model"]):
        raise InputError(
            f"config.json gives embeddings a width of {width!r}, which the table of DeBERTa does not know."
        )
    settings.ignore("max_relative_positions", "position_buckets", "pos_att_type", "share_att_key", "norm_rel_ebd")
    if not settings.flag("relative_attention"):
        return {}
    kinds = settings.get("pos_att_type") or ()
    kinds = kinds.split("|") if isinstance(kinds, str) else kinds
    parts = 1 + sum(kind in kinds for kind in ("c2p", "p2c"))
    return {"score_scale": (fields["d_head"] * parts) ** -0.5}


DEBERTA = like(
    BERT,
    "deberta-v2",
    prefixes=("deberta.", ""),
    block_slots=linears(
        f"{LAYER}.attention.self", {"attn.q": "query_proj", "attn.k": "key_proj", "attn.v": "value_proj"}
    ),
    defaults={"position_biased_input": True, "layer_norm_eps": 1e-7},
    variant=_deberta,
    extra=_deberta_numbers,
)
