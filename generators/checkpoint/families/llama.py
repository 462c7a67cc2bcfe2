"""Llama and what is built like it: rotations, RMS norms without biases, grouped queries, a gated MLP."""

from generators.base.errors import InputError
from generators.checkpoint.config import ModelConfig
from generators.checkpoint.positions import rotary
from generators.checkpoint.roles import QKV, SIZES, Family, Fields, Slot, fused, like, linear, linears, norm, part_of
from generators.checkpoint.rotation import FULL, SLIDING, in_turn, part_of_each_head, same_in_all_layers

ROTATES = "Positions enter as rotations inside attention: this architecture has no position embedding to look at."
ROUTES = "Each token is sent to a few of several MLPs: there is no one matrix that every token's MLP reads with."
ATTN = "layers.{i}.self_attn"
MLP = "layers.{i}.mlp"
BIASED = "attention_bias"


def attention(bias: bool | str, output: bool | str | None = None) -> dict[str, Slot]:
    """Return the four matrices of attention; `output` says of the last bias what `bias` says of the others."""
    return {
        **linears(ATTN, QKV, bias=bias),
        **linear("attn.o", f"{ATTN}.o_proj", bias=bias if output is None else output),
    }


def gated(bias: bool | str = False) -> dict[str, Slot]:
    return linears(MLP, {"mlp.in": "up_proj", "mlp.gate": "gate_proj", "mlp.out": "down_proj"}, bias=bias)


def head_norms(width: str = "c", plus: float = 0.0) -> dict[str, Slot]:
    """Return the norms of every head's queries and keys, after their matrices; `width` "a" is one of all heads."""
    keys = "b" if width == "a" else width
    return {
        "attn.q_norm.gain": Slot(f"{ATTN}.q_norm.weight", width, plus=plus),
        "attn.k_norm.gain": Slot(f"{ATTN}.k_norm.weight", keys, plus=plus),
    }


def unclipped(settings: ModelConfig, key: str) -> None:
    """Refuse a model that clips queries, keys and values: their scores are no products of weights."""
    limit = settings.get(key)
    if limit is not None:
        raise InputError(
            f"config.json gives {limit!r} as {key}: queries, keys and values are clipped, which no table describes, "
            "so the model isn't read."
        )


NO_GATE = dict.fromkeys(("mlp.gate", "mlp.gate.bias"))
NO_MLP_BIASES = dict.fromkeys(("mlp.in.bias", "mlp.gate.bias", "mlp.out.bias"))
NO_BIASES = {**dict.fromkeys(f"attn.{name}.bias" for name in "qkvo"), **NO_MLP_BIASES}
NO_MLP = dict.fromkeys(gated(True))
GATE_UP = {  # the MLP's gate and what it gates in one matrix, one after the other
    **part_of("mlp.gate", f"{MLP}.gate_up_proj", "f f", 0),
    **part_of("mlp.in", f"{MLP}.gate_up_proj", "f f", 1),
}

LLAMA = Family(
    name="llama",
    prefixes=("model.", ""),
    config={**SIZES, "norm_eps": "rms_norm_eps"},
    slots={
        "token_embedding": Slot("embed_tokens.weight", "V d"),
        "unembedding": Slot("lm_head.weight", "V d"),
        **norm("final_norm", "norm", bias=False),
    },
    block_slots={
        **norm("ln1", "layers.{i}.input_layernorm", bias=False),
        **norm("ln2", "layers.{i}.post_attention_layernorm", bias=False),
        **attention(BIASED),
        **gated("mlp_bias"),
    },
    tied=False,
    positions="rotary",
    norm="rms",
    defaults={"max_position_embeddings": 2048, "rms_norm_eps": 1e-6},
    without={"position_embedding": ROTATES},
    extra=same_in_all_layers,
)

SEED_OSS = like(
    LLAMA,
    "seed_oss",
    block_slots=attention(BIASED, "attention_out_bias"),
    defaults={BIASED: True, "head_dim": 128, "num_key_value_heads": 8, "max_position_embeddings": 524288},
)

APERTUS_BASE = 12_000_000.0
APERTUS_SCALING = {
    "rope_type": "llama3",
    "factor": 8.0,
    "original_max_position_embeddings": 8192,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}


def _apertus(settings: ModelConfig, fields: Fields) -> Fields:
    """Return the rotation; where config.json names no scaling, its software takes one."""
    settings.must_be("qk_norm", True, None)  # present regardless of the setting
    if settings.get("rope_parameters") is None and settings.get("rope_scaling") is None:
        turns = rotary(fields["d_head"], APERTUS_BASE, fields["n_ctx"], APERTUS_SCALING)
        return {"rotary": (turns,) * fields["n_layer"]}
    return same_in_all_layers(settings, fields)


APERTUS = like(
    LLAMA,
    "apertus",
    block_slots={
        **norm("ln1", "layers.{i}.attention_layernorm", bias=False),
        **norm("ln2", "layers.{i}.feedforward_layernorm", bias=False),
        **head_norms(),
        **NO_GATE,
        **NO_MLP_BIASES,
        # the activation, xIELU
        **{f"mlp.act.{name}": Slot(f"{MLP}.act_fn.{name}", "s") for name in ("alpha_p", "alpha_n")},
        **{f"mlp.act.{name}": Slot(f"{MLP}.act_fn.{name}", "") for name in ("beta", "eps")},
    },
    defaults={"rope_theta": APERTUS_BASE, "max_position_embeddings": 65536, "rms_norm_eps": 1e-5},
    extra=_apertus,
)

EUROBERT = like(
    LLAMA,
    "eurobert",
    slots={"unembedding.bias": Slot("lm_head.bias", "V", when="mlp_bias")},
    causal=False,
    defaults={"max_position_embeddings": 8192, "rms_norm_eps": 1e-5},
)

MISTRAL = like(
    LLAMA,
    "mistral",
    block_slots=NO_BIASES,
    defaults={"sliding_window": 4096, "max_position_embeddings": 131072, "num_key_value_heads": 8},
)

MIXTRAL = like(
    MISTRAL,
    "mixtral",
    block_slots={**NO_MLP, "mlp.router": Slot("layers.{i}.block_sparse_moe.gate.weight", "d x", transposed=True)},
    defaults={"sliding_window": None, "rope_theta": 1e6, "rms_norm_eps": 1e-5},
    without={"blocks.*.mlp.in": ROUTES, "blocks.*.mlp.gate": ROUTES, "blocks.*.mlp.out": ROUTES},
    ignores=("router_aux_loss_coef", "router_jitter_noise"),
)


def _windows_above(settings: ModelConfig, fields: Fields) -> Fields:
    first = settings.get("max_window_layers")
    first = first if isinstance(first, int) else 0
    return same_in_all_layers(settings, fields, [SLIDING if i >= first else FULL for i in range(fields["n_layer"])])


QWEN2 = like(
    LLAMA,
    "qwen2",
    block_slots={**attention(True), "attn.o.bias": None, **NO_MLP_BIASES},
    defaults={
        "use_sliding_window": False,
        "sliding_window": 4096,
        "max_window_layers": 28,
        "max_position_embeddings": 32768,
        "num_key_value_heads": 32,
    },
    extra=_windows_above,
)

QWEN3 = like(QWEN2, "qwen3", block_slots={**attention(BIASED), **head_norms()}, defaults={"head_dim": 128})


QWEN3_MOE = like(
    QWEN3,
    "qwen3_moe",
    block_slots={**NO_MLP, "mlp.router": Slot(f"{MLP}.gate.weight", "d x", transposed=True)},
    without=MIXTRAL.without,
    defaults={"head_dim": None, "num_key_value_heads": 4, "decoder_sparse_step": 1, "max_window_layers": 0},
    only={"decoder_sparse_step": (1, None), "mlp_only_layers": ([], None)},  # all layers send tokens to experts
)


def _smollm3(settings: ModelConfig, fields: Fields) -> Fields:
    """Return the rotations of a model in which every fourth layer has none."""
    n_layer = fields["n_layer"]
    interval = settings.optional(settings.size, "no_rope_layer_interval") or 4
    rotates = settings.get("no_rope_layers") or [int((i + 1) % interval != 0) for i in range(n_layer)]
    if not isinstance(rotates, list) or len(rotates) < n_layer or any(one not in (0, 1) for one in rotates):
        raise InputError(f"config.json gives no_rope_layers that are not {n_layer} times 0 or 1.")
    found = same_in_all_layers(settings, fields, [FULL if rotates[i] else SLIDING for i in range(n_layer)])
    return {**found, "rotary": tuple(turns if rotates[i] else None for i, turns in enumerate(found["rotary"]))}


SMOLLM3 = like(
    LLAMA,
    "smollm3",
    defaults={
        "rope_theta": 2_000_000.0,
        "use_sliding_window": False,
        "max_position_embeddings": 32768,
        "num_key_value_heads": 4,
    },
    tied=True,
    extra=_smollm3,
)


def _granite(settings: ModelConfig, fields: Fields) -> Fields:
    settings.ignore("residual_multiplier", "logits_scaling")  # scale of the residual; scale of the output
    return {
        **same_in_all_layers(settings, fields),
        "score_scale": settings.number("attention_multiplier"),
        "embedding_scale": settings.number("embedding_multiplier"),
    }


GRANITE = like(LLAMA, "granite", defaults={"attention_multiplier": 1.0, "embedding_multiplier": 1.0}, extra=_granite)

PHI3 = like(
    MISTRAL,
    "phi3",
    block_slots={
        **fused(f"{ATTN}.qkv_proj", "a b b", bias=False),
        **GATE_UP,
    },
    defaults={
        "sliding_window": None,
        "num_key_value_heads": None,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "original_max_position_embeddings": 4096,
    },
    extra=part_of_each_head,
)


GPT_OSS = like(
    LLAMA,
    "gpt_oss",
    block_slots={
        **NO_MLP,
        **attention(True),
        "attn.sinks": Slot(f"{ATTN}.sinks", "h"),
        "mlp.router": Slot(f"{MLP}.router.weight", "d x", transposed=True),
        "mlp.router.bias": Slot(f"{MLP}.router.bias", "x"),
    },
    without=MIXTRAL.without,
    defaults={
        "head_dim": 64,
        "num_key_value_heads": 8,
        "sliding_window": 128,
        "rope_theta": 150_000.0,
        "rms_norm_eps": 1e-5,
        "max_position_embeddings": 131072,
        "rope_parameters": None,
    },
    ignores=("router_aux_loss_coef", "initial_context_length", "experts_per_token"),
    extra=in_turn,
)
