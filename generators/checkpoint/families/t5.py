"""T5, mT5 and UMT5: unscaled scores get a bias by head and distance, from one table for a stack or a layer."""

from generators.base.architecture import Buckets
from generators.checkpoint.config import ModelConfig
from generators.checkpoint.roles import Family, Fields, Slot, changed, like, linears, norm

UNSCALED = 1.0
BIASES = (
    "Positions enter as a bias on attention scores, by head and distance: this architecture has no position "
    "embedding to look at."
)


def _mlp(stack: str) -> str:
    return f"{stack}.block.{{i}}.layer.{2 if stack == 'decoder' else 1}"


def _gated(family: Family, settings: ModelConfig) -> Family:
    if not str(settings.get("feed_forward_proj") or "").startswith("gated"):
        return family
    dense = f"{_mlp(family.stack)}.DenseReluDense"
    return changed(family, block_slots=linears(dense, {"mlp.gate": "wi_0", "mlp.in": "wi_1"}, bias=False))


def _numbers(settings: ModelConfig, fields: Fields, both_ways: bool) -> Fields:
    settings.ignore("is_decoder", "scale_decoder_outputs", "n_positions")
    count, furthest = (settings.size(f"relative_attention_{what}") for what in ("num_buckets", "max_distance"))
    return {"score_scale": UNSCALED, "buckets": Buckets(count, furthest, both_ways)}


def _blocks(stack: str) -> dict[str, Slot]:
    attention = f"{stack}.block.{{i}}.layer.0"
    first = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    return {
        **norm("ln1", f"{attention}.layer_norm", bias=False),
        **norm("ln2", f"{_mlp(stack)}.layer_norm", bias=False),
        **linears(f"{attention}.SelfAttention", {f"attn.{name}": name for name in "qkvo"}, bias=False),
        **linears(f"{_mlp(stack)}.DenseReluDense", {"mlp.in": "wi", "mlp.out": "wo"}, bias=False),
        "attn.relative_bias": Slot(first, "r h"),
    }


T5_ENCODER = Family(
    name="t5--encoder",
    prefixes=("", "transformer."),
    config={
        "n_layer": "num_layers",
        "n_head": "num_heads",
        "d_model": "d_model",
        "d_head": "d_kv",
        "vocab_size": "vocab_size",
        "norm_eps": "layer_norm_epsilon",
    },
    slots={
        "token_embedding": Slot("shared.weight", "V d"),
        **norm("final_norm", "encoder.final_layer_norm", bias=False),
    },
    block_slots=_blocks("encoder"),
    causal=False,
    positions="relative",
    norm="rms",
    defaults={
        "layer_norm_epsilon": 1e-6,
        "d_kv": 64,
        "relative_attention_num_buckets": 32,
        "relative_attention_max_distance": 128,
    },
    without={"position_embedding": BIASES},
    aliases=(("shared.weight", "encoder.embed_tokens.weight"), ("shared.weight", "decoder.embed_tokens.weight")),
    variant=_gated,
    extra=lambda settings, fields: _numbers(settings, fields, both_ways=True),
)


def _decoder(family: Family, settings: ModelConfig) -> Family:
    own = settings.get("num_decoder_layers") is not None
    return changed(_gated(family, settings), config={"n_layer": "num_decoder_layers" if own else "num_layers"})


T5_DECODER = like(
    T5_ENCODER,
    "t5--decoder",
    slots={
        "unembedding": Slot("lm_head.weight", "V d"),
        **norm("final_norm", "decoder.final_layer_norm", bias=False),
    },
    block_slots=_blocks("decoder"),
    causal=True,
    variant=_decoder,
    extra=lambda settings, fields: _numbers(settings, fields, both_ways=False),
)

GATED = {"feed_forward_proj": "gated-gelu"}

MT5_ENCODER = like(T5_ENCODER, "mt5--encoder", defaults=GATED)
MT5_DECODER = like(T5_DECODER, "mt5--decoder", defaults=GATED)


def _own_biases(half: Family) -> Family:
    attention = f"{half.stack}.block.{{i}}.layer.0.SelfAttention"
    return like(
        half,
        f"umt5--{half.stack}",
        block_slots={"attn.relative_bias": Slot(f"{attention}.relative_attention_bias.weight", "r h")},
        ignores=("scalable_attention",),  # appears in published files but not in their software
    )


UMT5_ENCODER, UMT5_DECODER = _own_biases(MT5_ENCODER), _own_biases(MT5_DECODER)
